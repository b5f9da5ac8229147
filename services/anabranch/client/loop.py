"""A thread with an event loop in it, on which synchronous programs have their calls done."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

A = TypeVar("A")


class LoopThread:
    """Ends with the program at the latest; `stop` ends it sooner."""

    def __init__(self) -> None:
        # Only here: a program that only looks around doesn't wait for it.
        import uvloop

        self.loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._live, name="anabranch-client", daemon=True)
        self._thread.start()

    @property
    def closed(self) -> bool:
        return not self._thread.is_alive()

    def run(self, work: Coroutine[Any, Any, A]) -> A:
        """Have it done, and wait; if the wait is interrupted, so is the work."""
        if self.closed or threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("this client is closed, or was called from its own loop")
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        finally:
            future.cancel()

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def _live(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()
