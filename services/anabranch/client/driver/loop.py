"""A thread with an event loop in it, on which synchronous programs have their calls done."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from anabranch.core.errors import Unavailable

A = TypeVar("A")


class LoopThread:
    """Ends with the program at the latest; `stop` ends it sooner."""

    def __init__(self) -> None:
        # Only here: a program that only looks around doesn't wait for it.
        import uvloop

        self.loop = uvloop.new_event_loop()
        self._stopping = asyncio.Event()
        self._lock = threading.Lock()
        """Whoever holds it and finds the thread not closed may still give the loop something."""
        self._closed = False
        self._thread = threading.Thread(target=self._live, name="anabranch-client", daemon=True)
        self._thread.start()

    @property
    def closed(self) -> bool:
        return self._closed

    def run(self, work: Coroutine[Any, Any, A]) -> A:
        """Have it done, and wait; if the wait is interrupted, so is the work.

        Unavailable if the thread was stopped before it was done.
        """
        future = self._begin(work)
        if future is None:
            raise _closed()
        try:
            return future.result()
        except CancelledError:
            if self._closed:
                raise _closed() from None
            raise
        finally:
            future.cancel()

    def run_last(self, work: Coroutine[Any, Any, None]) -> None:
        """Have it done and stop, whatever came of it; nothing if the thread was stopped before."""
        future = self._begin(work)
        if future is None:
            return
        try:
            future.result()
        except CancelledError:
            if not self._closed:
                raise
        finally:
            future.cancel()
            self.stop()

    def stop(self) -> None:
        """What still runs is cancelled."""
        with self._lock:
            if not self._closed:
                self.loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def _begin(self, work: Coroutine[Any, Any, A]) -> "Future[A] | None":
        """None, and nothing of it is done, if the thread was stopped."""
        assert threading.current_thread() is not self._thread, "its loop would wait for itself"
        with self._lock:
            if not self._closed:
                return asyncio.run_coroutine_threadsafe(work, self.loop)
        work.close()
        return None

    def _live(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(self._until_stopped())

    async def _until_stopped(self) -> None:
        await self._stopping.wait()
        with self._lock:
            self._closed = True
        # What was given before has begun after this turn, and is cancelled with all that runs: work
        # that never began would be waited for without end.
        await asyncio.sleep(0)


def _closed() -> Unavailable:
    return Unavailable("this client", "it was closed")
