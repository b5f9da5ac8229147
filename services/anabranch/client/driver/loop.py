"""A thread with an event loop in it, on which synchronous programs have their calls done."""

import asyncio
import threading
from collections.abc import Coroutine
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
        self._thread = threading.Thread(target=self._live, name="anabranch-client", daemon=True)
        self._thread.start()

    @property
    def closed(self) -> bool:
        return not self._thread.is_alive()

    def run(self, work: Coroutine[Any, Any, A]) -> A:
        """Have it done, and wait; if the wait is interrupted, so is the work."""
        assert threading.current_thread() is not self._thread, "its loop would wait for itself"
        if self.closed:
            work.close()
            raise Unavailable("this client", "it was closed")
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        finally:
            future.cancel()

    def run_last(self, work: Coroutine[Any, Any, None]) -> None:
        """Have it done and stop, whatever came of it; nothing if the thread was stopped before."""
        if self.closed:
            work.close()
            return
        try:
            self.run(work)
        finally:
            self.stop()

    def stop(self) -> None:
        """What still runs is cancelled."""
        self.loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def _live(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(self._stopping.wait())
