"""Say what holds an append up, while it waits for the decision of a promotable fork."""

import asyncio
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from anabranch.client.aio import Service
from anabranch.core.errors import AnabranchError

A = TypeVar("A")

_QUIET_S = 1.0
"""How long an append may take before the user is told why."""


async def told_what_holds(service: Service, log: str, append: Coroutine[Any, Any, A]) -> A:
    """Append, and print which fork holds it up if it isn't acknowledged in a moment."""
    appending = asyncio.ensure_future(append)
    try:
        await asyncio.wait([appending], timeout=_QUIET_S)
        if not appending.done():
            await _print_what_holds(service, log)
        return await appending
    finally:
        appending.cancel()


async def _print_what_holds(service: Service, log: str) -> None:
    """An answer that doesn't come is no reason to fail: the append itself will say so."""
    with suppress(AnabranchError):
        found = await service.log(log)
        fork = (await found.describe(timeout=_QUIET_S)).append_blocked_by
        if fork is not None:
            print(f"waiting: promotable fork {fork} is undecided", file=sys.stderr)
