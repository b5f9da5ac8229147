"""What a process waits for while it starts."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from tests.unit.shell.cancellation import TURNS, is_heeded
from tests.unit.shell.nodes import run

from anabranch.apps.pods.base_settings import ProcessSettings
from anabranch.apps.pods.pod import Pod
from anabranch.core.errors import Unavailable


async def refuse() -> None:
    raise Unavailable("what it needs", "it isn't there yet")


def process(stack: AsyncExitStack, stop: asyncio.Event) -> Pod[ProcessSettings]:
    return Pod(ProcessSettings(cluster="c", name="n-0"), "shard", stack, stop)


def test_whoever_is_told_to_end_while_it_waits_does() -> None:
    async def scene() -> None:
        stop = asyncio.Event()
        async with AsyncExitStack() as stack:
            waiting = asyncio.ensure_future(process(stack, stop).patiently("it", refuse))
            stop.set()
            with pytest.raises(Unavailable, match="told to end before it came"):
                await waiting

    run(scene())


@pytest.mark.parametrize("turns", TURNS)
def test_a_cancellation_is_heeded_also_when_it_is_told_to_end_just_then(turns: int) -> None:
    async def scene() -> None:
        stop = asyncio.Event()
        async with AsyncExitStack() as stack:
            waits = process(stack, stop).patiently("it", refuse)
            assert await is_heeded(waits, stop.set, turns)

    run(scene())
