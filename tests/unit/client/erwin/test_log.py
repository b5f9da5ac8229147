"""What programs do with an Erwin log."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.client.erwin.memory_link import MemoryLink, MemoryLog, run
from tests.unit.client.erwin.nodes import Bound

from anabranch.client.erwin.reads import Reader
from anabranch.client.session.records import Deliver
from anabranch.core.errors import (
    BadRequest,
    DeadlineExceeded,
    NotOffered,
    OutcomeUnknown,
    PositionPending,
    PositionTrimmed,
    Unavailable,
)
from anabranch.core.sequencing.protocol.ids import AppendId

SHARDS = ("a", "b", "c")


async def values(log: MemoryLog, start: int = 0, count: int | None = None) -> list[bytes | None]:
    return [each.value async for each in log.read(start, count, timeout=1)]


def test_an_append_has_a_receipt_and_the_receipt_a_position() -> None:
    async def program(log: MemoryLog) -> None:
        for expected in range(3):
            appended = await log.append(b"x")
            assert appended.position is None
            assert appended.receipt is not None
            assert await appended.receipt.position() == expected
        assert await log.append_sync(b"y") == 3

    run(program)


def test_a_read_of_a_log_that_has_just_started_waits_for_its_first_shard() -> None:
    async def program(log: MemoryLog) -> None:
        world = log.link.world
        (served,) = world.configurations
        world.configurations[0] = replace(served, shards=())

        async def first() -> list[bytes | None]:
            return [each.value async for each in log.read(0, 1, wait=5, timeout=5)]

        reading = asyncio.create_task(first())
        while world.asked["Locate"] < 2:  # noqa: ASYNC110  # the world tells of no question
            await asyncio.sleep(0)
        assert not reading.done()
        world.configurations[0] = served
        await log.append(b"x")
        assert await reading == [b"x"]

    run(program)


def test_a_read_of_a_log_without_shards_ends_in_time() -> None:
    async def program(log: MemoryLog) -> None:
        world = log.link.world
        world.configurations[0] = replace(world.configurations[0], shards=())
        with pytest.raises(DeadlineExceeded, match="has changed nothing: ask again"):
            await values(log)

    run(program)


def test_a_batch_is_asked_for_its_position_once() -> None:
    async def program(log: MemoryLog) -> None:
        many = await log.append_many([b"%d" % i for i in range(50)])
        receipts = [each.receipt for each in many if each.receipt is not None]
        found = await asyncio.gather(*(receipt.position() for receipt in receipts))
        assert found == list(range(50))

    world = run(program)
    assert world.asked["FindPosition"] == world.asked["Append"] // 2


def test_a_position_that_is_not_bound_in_time_may_be_asked_for_again() -> None:
    async def program(log: MemoryLog) -> None:
        log.link.orders = False
        appended = await log.append(b"x")
        assert appended.receipt is not None
        assert str(appended.receipt) == "<receipt of memory: position not bound yet>"
        with pytest.raises(PositionPending) as late:
            await appended.receipt.position(timeout=0)
        assert isinstance(late.value, DeadlineExceeded)
        assert "memory holds the record" in late.value.message
        assert "may or may not have happened" not in late.value.message
        log.link.orders = True
        log.link.flow()
        assert await appended.receipt.position(timeout=5) == 0
        assert str(appended.receipt) == "<receipt of memory: position 0>"

    run(program)


def test_a_receipt_of_a_lost_view_has_an_unknown_outcome() -> None:
    async def program(log: MemoryLog) -> None:
        log.link.orders = False
        appended = await log.append(b"x")
        assert appended.receipt is not None
        log.link.world.change_view("q0", ["q0", "q1"], lost=True)
        await log.directory()
        with pytest.raises(OutcomeUnknown):
            await appended.receipt.position()
        # Such a question is answered by nobody: with many receipts, each would wait out its time.
        assert not log.link.world.asked["FindPosition"]

    run(program)


@pytest.mark.parametrize("waiting", [False, True])
def test_a_receipt_of_a_closed_client_is_refused(
    monkeypatch: pytest.MonkeyPatch, waiting: bool
) -> None:
    async def program(log: MemoryLog) -> None:
        log.link.orders = False
        appended = await log.append(b"x")
        assert appended.receipt is not None
        questions: list[object] = []

        def put(call: Any) -> None:
            questions.append(call)
            # The event loop would never run again, so no timeout could end this test.
            assert len(questions) < 10
            MemoryLink.put(log.link, call)

        monkeypatch.setattr(log.link, "put", put)
        if waiting:
            asyncio.get_running_loop().call_later(0.01, log.link.close)
        else:
            log.link.close()
        with pytest.raises(Unavailable, match="it was closed"):
            await appended.receipt.position()

    run(program)


@pytest.mark.parametrize("mode", ["m", "st"])
def test_reads_give_every_record_once_whichever_shard_has_it(mode: str) -> None:
    async def program(log: MemoryLog) -> None:
        expected = [b"%d" % i for i in range(40)]
        for value in expected:
            await log.append(value)
        assert await values(log) == expected
        assert await values(log, 7, 5) == expected[7:12]
        assert await values(log, 39) == expected[39:]
        assert await values(log, 40) == []

    run(program, shards=SHARDS, mode=mode)


def test_a_read_of_a_part_of_a_batch_gives_that_part() -> None:
    async def program(log: MemoryLog) -> None:
        await log.append_many([b"%d" % i for i in range(10)], request_id="r")
        await log.append(b"last")
        assert await values(log, 3, 4) == [b"3", b"4", b"5", b"6"]
        assert await values(log, 9) == [b"9", b"last"]

    run(program, shards=SHARDS)


def test_a_read_of_few_records_passes_many_no_ops_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[object] = []
    taken = Reader._taken

    def counted(self: Reader, *given: Any) -> Any:
        looks.append(given)
        return taken(self, *given)

    monkeypatch.setattr(Reader, "_taken", counted)

    async def program(log: MemoryLog) -> None:
        await log.append(b"first")
        void = Bound(AppendId(1, 0, 0), 1, 100_000, "a", b"")
        log.link.world.rows.append(void)
        await log.append(b"last")
        assert await values(log, 0, 2) == [b"first", b"last"]
        assert await values(log, 500, 1) == [b"last"]

    run(program)
    assert len(looks) < 20


def test_a_read_waits_for_what_is_durable_and_not_ordered_yet() -> None:
    async def program(log: MemoryLog) -> None:
        await log.append(b"first")
        log.link.orders = False
        await log.append(b"second")
        stable = [each.value async for each in log.read(0, stable_only=True)]
        assert stable == [b"first"]
        with pytest.raises(DeadlineExceeded):
            await values(log, 0)

    run(program)


def test_a_read_that_waits_has_its_shard_wait_from_the_first_request_on() -> None:
    async def program(log: MemoryLog) -> None:
        assert [each async for each in log.read(0, 1, wait=30)] == []

    world = run(program)
    # The shard here answers at once, as one does when the time is over.
    assert world.asked["Read"] == 1
    assert world.asked["AskTail"] > 0


def test_the_tail_counts_what_is_durable() -> None:
    async def program(log: MemoryLog) -> None:
        assert await log.tail() == 0
        await log.append(b"x")
        log.link.orders = False
        await log.append_many([b"y", b"z"])
        assert await log.tail() == 3
        status = await log.status()
        assert status.stable == 1

    run(program)


def test_a_tail_of_a_view_that_has_ended_is_asked_of_the_next() -> None:
    async def program(log: MemoryLog) -> None:
        log.link.orders = False
        await log.append(b"x")
        log.link.world.change_view("q1", ["q1", "q2"])
        log.link.world.learn("q0")
        assert await log.tail() == 1

    run(program)


def test_a_subscription_gives_the_log_in_its_order() -> None:
    async def program(log: MemoryLog) -> None:
        expected = [b"%d" % i for i in range(30)]
        for value in expected[:10]:
            await log.append(value)
        got: list[bytes | None] = []
        async with log.subscribe(0) as events:
            for value in expected[10:]:
                await log.append(value)
            while len(got) < 30:
                for event in await events.take(timeout=5):
                    assert isinstance(event, Deliver)
                    assert not event.speculative
                    assert event.record.position == len(got)
                    got.append(event.record.value)
            assert events.final == 30
        assert got == expected

    run(program, shards=SHARDS)


def test_a_subscription_without_a_start_begins_behind_what_was_acknowledged() -> None:
    async def program(log: MemoryLog) -> None:
        await log.append(b"before")
        async with log.subscribe() as events:
            await log.append(b"after")
            event = await anext(events)
        assert isinstance(event, Deliver)
        assert event.record.value == b"after"

    run(program)


def test_a_subscription_finds_a_shard_that_is_added() -> None:
    async def program(log: MemoryLog) -> None:
        async with log.subscribe(0) as events:
            await log.append(b"0")
            assert len(await events.take(timeout=5)) == 1
            log.link.world.add_shard("z")
            for name in log.link.world.nodes:
                log.link.world.learn(name)
            got: list[bytes | None] = []
            for i in range(1, 5):
                await log.append(b"%d" % i)
            while len(got) < 4:
                events_now = await events.take(timeout=5)
                got += [each.record.value for each in events_now if isinstance(each, Deliver)]
        assert got == [b"1", b"2", b"3", b"4"]

    run(program)


def test_what_is_trimmed_is_gone() -> None:
    async def program(log: MemoryLog) -> None:
        await log.append_many([b"0", b"1", b"2"])
        await log.trim(2)
        with pytest.raises(PositionTrimmed):
            await values(log, 0)
        with pytest.raises(PositionTrimmed):
            await anext(log.subscribe(0))

    run(program)


def test_what_cant_be_is_refused_at_once() -> None:
    async def program(log: MemoryLog) -> None:
        with pytest.raises(BadRequest):
            await log.append_many([], request_id="r")
        with pytest.raises(BadRequest):
            await log.append("text")  # pyright: ignore[reportArgumentType]
        with pytest.raises(BadRequest):
            await values(log, -1)
        with pytest.raises(NotOffered):
            log.cfork()  # pyright: ignore[reportAttributeAccessIssue]

    run(program)
