"""A cancellation that comes just when what a task waits for comes as well."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

TURNS = range(4)
"""Of the event loop between the two: one of them hits the instant at which both are there."""


async def is_heeded(
    work: Coroutine[Any, Any, object], end: Callable[[], object], turns: int
) -> bool:
    """Start `work`, `end` what it waits for, and cancel it so many turns later: either it was over
    by then, or it is cancelled.
    """
    task = asyncio.ensure_future(work)
    for _ in TURNS:
        await asyncio.sleep(0)
    assert not task.done(), "it waits"
    end()
    for _ in range(turns):
        await asyncio.sleep(0)
    was_cancelled = task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return task.cancelled() or not was_cancelled
