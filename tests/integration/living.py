"""Something that lives on a loop in a thread of its own, while a test talks to it."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import uvloop

PATIENCE_S = 60.0

Live = Callable[[Callable[[], None], asyncio.Event], Coroutine[Any, Any, None]]
"""Calls the one when it is ready, and returns when the other is set."""


@contextmanager
def living(live: Live) -> Iterator[list[BaseException]]:
    """From when it is ready until it has stopped; what comes is what has ended it, if anything.

    Raises what kept it from getting ready.
    """
    ready = threading.Event()
    ended: list[BaseException] = []
    stops: list[Callable[[], object]] = []

    async def begin() -> None:
        stop = asyncio.Event()
        stops.append(partial(asyncio.get_running_loop().call_soon_threadsafe, stop.set))
        await live(ready.set, stop)

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(begin())
        except BaseException as error:
            ended.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(PATIENCE_S)
    if ended:
        thread.join()
        raise ended[0]
    try:
        yield ended
    finally:
        if thread.is_alive():
            stops[0]()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
