"""Who waits for a part of a session, which keeps its waiter without knowing what it is."""

import asyncio
from typing import cast

Waiter = asyncio.Future[None]


def wake(waiter: object) -> None:
    """If there is one."""
    if waiter is not None:
        future = cast("Waiter", waiter)
        if not future.done():
            future.set_result(None)


def wake_all(waiters: list[Waiter]) -> None:
    for waiter in waiters:
        wake(waiter)
    waiters.clear()
