"""The asyncio client before a real server: deadlines, cancellation, and what is left at the end."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from tests.unit.client.lossy import Fate, Network

import anabranch
from anabranch import aio, testing
from anabranch.client.driver.loop import LoopThread
from anabranch.core.errors import (
    BadRequest,
    DeadlineExceeded,
    OutcomeUnknown,
    Overloaded,
    Squashed,
    Unavailable,
)

Lossy = tuple[Network, LoopThread]
PATIENCE_S = 20
Scene = Callable[[aio.Service, aio.Log], Coroutine[Any, Any, None]]


def play(url: str, name: str, scene: Scene, **settings: Any) -> None:
    """On a loop of its own, with nothing left running on it."""

    async def whole() -> None:
        async with asyncio.timeout(PATIENCE_S):
            chosen = anabranch.Settings(**settings)
            async with aio.connect(url, settings=chosen) as service:
                await scene(service, await service.ensure(name))
        await ended()

    asyncio.run(whole())


async def ended() -> None:
    """What was cancelled has come to its end, and nothing else is left."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    if left:
        _, running = await asyncio.wait(left, timeout=PATIENCE_S)
        assert not running


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110  # what is waited for tells nobody
        await asyncio.sleep(0.001)


async def values(log: aio.Log) -> list[bytes | None]:
    return [each.value async for each in log.read()]


def test_an_append_whose_caller_leaves_is_appended_or_not_and_holds_up_nobody(
    server: testing.Server, name: str, lossy: Lossy
) -> None:
    network, thread = lossy

    async def scene(_: aio.Service, log: aio.Log) -> None:
        network.fate = lambda: Fate.HOLD
        pending = [asyncio.ensure_future(log.append(b"%d" % number)) for number in range(3)]
        await asyncio.sleep(0)
        pending[1].cancel()
        network.fate = lambda: Fate.PASS
        await asyncio.to_thread(thread.run, network.release())
        assert [(await pending[0]).position, (await pending[2]).position] == [0, 2]
        with pytest.raises(asyncio.CancelledError):
            await pending[1]
        assert await values(log) == [b"0", b"1", b"2"]

    play(network.url, name, scene)


@pytest.mark.parametrize("at", [0, 1, 5])
def test_a_read_that_is_cancelled_in_the_middle_leaves_the_next_one_alone(
    server: testing.Server, name: str, at: int
) -> None:
    async def scene(_: aio.Service, log: aio.Log) -> None:
        await log.append_many([bytes(400)] * 20)
        seen = 0

        async def read() -> None:
            nonlocal seen
            async for _ in log.read(0, wait=60):
                if seen == at:
                    await asyncio.Event().wait()
                seen += 1

        reading = asyncio.ensure_future(read())
        await until(lambda: seen == at)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert len(await values(log)) == 20

    play(server.url, name, scene, read_bytes=500)


@pytest.mark.parametrize(
    ("ask", "repeatable"),
    [
        (lambda log: log.tail(timeout=0.05), True),
        (lambda log: log.trim(0, timeout=0.05), True),
        (lambda log: log.cfork("try", timeout=0.05), True),
        (lambda log: log.cfork(timeout=0.05), False),
        (lambda log: log.append(b"1", timeout=0.05), False),
    ],
    ids=["tail", "trim", "named fork", "fork", "append"],
)
def test_nobody_waits_beyond_a_deadline_and_what_may_be_done_twice_isnt_called_repeatable(
    name: str, lossy: Lossy, ask: Callable[[aio.Log], Awaitable[object]], repeatable: bool
) -> None:
    network, thread = lossy

    async def scene(_: aio.Service, log: aio.Log) -> None:
        network.fate = lambda: Fate.HOLD
        with pytest.raises(DeadlineExceeded if repeatable else OutcomeUnknown, match="50 ms"):
            await ask(log)
        network.fate = lambda: Fate.PASS
        await asyncio.to_thread(thread.run, network.release())

    play(network.url, name, scene)


def test_an_append_under_a_request_id_says_how_to_repeat_it(name: str, lossy: Lossy) -> None:
    network, thread = lossy

    async def scene(service: aio.Service, log: aio.Log) -> None:
        network.fate = lambda: Fate.HOLD
        with pytest.raises(DeadlineExceeded) as late:
            await log.append(b"1", request_id="it", timeout=0.05)
        assert late.value.request_id == "it"
        network.fate = lambda: Fate.PASS
        await asyncio.to_thread(thread.run, network.release())
        assert await log.append(b"1", request_id="it") == (0, None)
        assert await service.append(name, [b"1"], request_id="it") == [(0, None)]
        assert await values(log) == [b"1"]

    play(network.url, name, scene)


def test_leaving_with_an_error_waits_for_nothing(name: str, lossy: Lossy) -> None:
    network, thread = lossy

    async def scene(_: aio.Service, log: aio.Log) -> None:
        network.fate = lambda: Fate.HOLD
        log.append_nowait(b"1")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        play(network.url, name, scene)
    thread.run(network.release())


def test_closing_waits_for_what_is_pending_and_tells_of_what_nobody_awaited(
    server: testing.Server, name: str
) -> None:
    async def scene(service: aio.Service, log: aio.Log) -> None:
        pending = [log.append_nowait(b"%d" % number) for number in range(50)]
        await service.flush()
        assert all(each.done for each in pending)
        assert [each.result().position for each in pending] == list(range(50))
        await service.delete(name)
        gone = [log.append_nowait(b"gone") for _ in range(2)]
        with pytest.raises(Squashed):
            await service.flush()
        await service.flush()
        for each in gone:
            with pytest.raises(Squashed):
                await each

    play(server.url, name, scene)


def test_after_the_end_everything_says_so_at_once(server: testing.Server, name: str) -> None:
    async def scene(service: aio.Service, log: aio.Log) -> None:
        events = log.subscribe(0)
        waiting = asyncio.ensure_future(anext(events))
        await log.append(b"1")
        await waiting
        following = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        await service.close()
        for late in (following, log.tail(), log.append(b"2"), anext(log.subscribe(0))):
            with pytest.raises(Unavailable, match="it was closed"):
                await late
        with pytest.raises(Unavailable):
            log.append_nowait(b"2")
        await service.close()

    play(server.url, name, scene)


def test_a_subscription_that_another_task_closes_ends_for_who_iterates(
    server: testing.Server, name: str
) -> None:
    async def scene(_: aio.Service, log: aio.Log) -> None:
        async with log.subscribe() as events:
            following = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0)
            events.close()
            with pytest.raises(Unavailable, match="this subscription"):
                await following

    play(server.url, name, scene)


def test_what_is_taken_in_time_is_taken_and_else_nothing_is_lost(name: str, lossy: Lossy) -> None:
    network, thread = lossy

    async def scene(_: aio.Service, log: aio.Log) -> None:
        events = log.subscribe(0)
        assert await events.take(timeout=0.02) == []
        await log.append_many([b"1", b"2"])
        seen: list[Any] = []
        while len(seen) < 2:
            seen += await events.take(timeout=0.001)
        assert [each.record.value for each in seen] == [b"1", b"2"]
        network.refusing = True
        await asyncio.to_thread(thread.run, network.cut())
        unopened = log.subscribe()
        assert await unopened.take(timeout=0.05) == [], "as long, and no longer"
        network.refusing = False
        for wrong in (-1, float("nan"), "1"):
            with pytest.raises(BadRequest):
                await events.take(timeout=wrong)  # pyright: ignore[reportArgumentType]

    play(network.url, name, scene)


def test_too_much_at_once_is_refused_or_waits(server: testing.Server, name: str) -> None:
    async def scene(service: aio.Service, log: aio.Log) -> None:
        pending = [log.append_nowait(bytes(400))]
        pending.append(log.append_nowait(bytes(400)))
        with pytest.raises(Overloaded):
            log.append_nowait(bytes(400))
        done = await asyncio.gather(*(log.append(b"%400d" % number) for number in range(20)))
        places = [each.position or 0 for each in done]
        assert sorted(places) == places, "whoever waits is served in order"
        assert await log.tail() == 20 + len(pending)

    play(server.url, name, scene, pending_bytes_max=1_000)


def test_a_connection_that_was_never_made_leaves_nothing_behind(lossy: Lossy) -> None:
    network, thread = lossy

    async def scene() -> None:
        network.fate = lambda: Fate.HOLD
        connecting = asyncio.ensure_future(aio.connect(network.url).opened())
        await until(lambda: network.connections > 0)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        with pytest.raises((Unavailable, DeadlineExceeded)):
            async with aio.connect(network.url, timeout=0.05):
                raise AssertionError("nobody answers")
        await ended()

    asyncio.run(scene())
    thread.run(network.release())


def test_what_stands_in_the_way_of_connecting_can_be_asked_meanwhile(lossy: Lossy) -> None:
    network, _ = lossy

    async def scene() -> None:
        network.refusing = True
        connecting = aio.connect(network.url, timeout=PATIENCE_S)
        assert connecting.obstacle is None
        opened = asyncio.ensure_future(connecting.opened())
        await until(lambda: "closed" in str(connecting.obstacle))
        network.refusing = False
        service = await opened
        assert connecting.obstacle is None
        await service.close()

    asyncio.run(scene())


def test_several_logs_share_a_connection_and_each_keeps_its_order(
    server: testing.Server, name: str
) -> None:
    async def scene(service: aio.Service, log: aio.Log) -> None:
        logs = [log, *[await service.create(f"{name}-{number}") for number in range(3)]]

        async def append(each: aio.Log) -> None:
            for number in range(20):
                assert (await each.append(b"%d" % number)).position == number

        await asyncio.gather(*map(append, logs))
        for each in logs:
            assert await values(each) == [b"%d" % number for number in range(20)]

    play(server.url, name, scene)
