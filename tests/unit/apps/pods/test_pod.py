"""What a process waits for while it starts."""

import asyncio
from contextlib import AsyncExitStack
from threading import Event

import pytest
from tests.unit.shell.cancellation import TURNS, is_heeded
from tests.unit.shell.nodes import run

from anabranch.apps.pods.base_settings import ProcessSettings
from anabranch.apps.pods.pod import Pod
from anabranch.core.errors import BLACK_BOX_TROUBLES, BlackBoxFailed, Unavailable


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


def test_what_is_away_for_long_is_waited_for_and_the_probes_say_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("anabranch.apps.pods.pod._PERSISTENT_S", 0.0)
    seen: list[list[str]] = []

    async def scene() -> None:
        async with AsyncExitStack() as stack:
            pod = process(stack, asyncio.Event())

            def attempt() -> int:
                seen.append(pod.vitals.readiness().why)
                if len(seen) < 3:
                    raise BlackBoxFailed("topic t", "it is away")
                return 7

            assert await pod.persistently("it", attempt, BLACK_BOX_TROUBLES) == 7

    run(scene())
    assert seen[0] == ["it is starting"]
    assert all("topic t failed: it is away" in why for (why,) in seen[1:])


def test_a_process_that_waits_for_long_ends_when_it_is_told_to_though_an_attempt_goes_on() -> None:
    going_on, end = Event(), Event()

    def attempt() -> None:
        going_on.set()
        end.wait(30)

    async def scene() -> None:
        stop = asyncio.Event()
        async with AsyncExitStack() as stack:
            pod = process(stack, stop)
            waiting = asyncio.ensure_future(pod.persistently("it", attempt, BLACK_BOX_TROUBLES))
            await asyncio.to_thread(going_on.wait)
            stop.set()
            with pytest.raises(Unavailable, match="told to end before it came"):
                await waiting
            end.set()

    run(scene())
