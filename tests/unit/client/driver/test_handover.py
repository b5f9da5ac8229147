"""Records on their way from threads to the loop: in order, bounded, each with its outcome."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anabranch.client.driver.handover import BYTES_MAX, Appending, Handed, Handover, each
from anabranch.client.driver.loop import LoopThread
from anabranch.client.session.pledge import Promise
from anabranch.core.errors import AnabranchError, Overloaded, Unavailable
from anabranch.core.records.record import Record

PATIENCE_S = 20


class Links:
    """What a log's link is told of errors, and how it waits for outcomes."""

    def __init__(self) -> None:
        self.failed: AnabranchError | None = None

    async def settled(self, pledge: Promise[int]) -> None:
        assert pledge.outcome is not None, "this log's batches are settled at once"

    def unheeded(self, error: AnabranchError) -> None:
        self.failed = self.failed or error

    def heeded(self, error: AnabranchError) -> None:
        if self.failed is error:
            self.failed = None


class Paper:
    """A log that writes down what it takes, in batches of three; `full` ones are refused."""

    def __init__(self, refuses: frozenset[bytes] = frozenset()) -> None:
        self.link: Any = Links()
        self.values: list[bytes | None] = []
        self.gate: asyncio.Event | None = None
        """While it is there and not set, there is no room."""
        self._refuses = refuses
        self._open: Promise[int] | None = None

    async def pledge(
        self,
        made: Record,
        timeout: float | None,  # noqa: ASYNC109  # as logs have it
    ) -> Promise[int]:
        if self.gate is not None:
            await self.gate.wait()
        await asyncio.sleep(0)
        if made.value in self._refuses:
            raise Overloaded("it", 1, "it_max")
        if self._open is None or self._open.count == 3:
            self._open = Promise(1_000)
            self._open.outcome = len(self.values)
        self._open.add(made, 1)
        self.values.append(made.value)
        return self._open

    def placed(self, pledge: Promise[int], index: int) -> int:
        assert isinstance(pledge.outcome, int)
        return pledge.outcome + index


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    thread = LoopThread()
    yield thread
    thread.stop()


@pytest.fixture
def handover(thread: LoopThread) -> Handover:
    return Handover(thread)


def put(handover: Handover, paper: Paper, value: bytes) -> Appending[Promise[int], int]:
    handed: Handed[Promise[int], int] = Handed(paper, Record(value), None)
    handover.put(handed)
    return Appending(handover, handed)


def test_what_is_put_arrives_in_order_and_each_knows_its_place(handover: Handover) -> None:
    paper = Paper()
    pending = [put(handover, paper, b"%d" % number) for number in range(10)]
    handover.announce()
    assert [each.result() for each in reversed(pending)] == list(range(9, -1, -1))
    assert paper.values == [b"%d" % number for number in range(10)]
    assert all(each.done for each in pending)


def test_what_is_refused_is_raised_to_who_asks_and_costs_no_other(handover: Handover) -> None:
    paper = Paper(frozenset([b"1"]))
    pending = [put(handover, paper, b"%d" % number) for number in range(3)]
    with pytest.raises(Overloaded):
        pending[1].result()
    assert paper.link.failed is None, "whoever was told needn't be told at the end"
    assert [pending[0].result(), pending[2].result()] == [0, 1]


def test_what_nobody_asks_about_is_kept_for_the_end(handover: Handover) -> None:
    paper = Paper(frozenset([b"1"]))
    put(handover, paper, b"1")
    handover.run(handover.taken())
    assert isinstance(paper.link.failed, Overloaded)


def test_one_who_leaves_while_waiting_stops_nobody_elses_records(
    handover: Handover, thread: LoopThread
) -> None:
    """An interrupt cancels the wait of one thread; the records go on their way all the same."""
    paper = Paper()

    async def scene() -> None:
        paper.gate = asyncio.Event()
        waiting = [asyncio.ensure_future(handover.taken()) for _ in range(2)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting[0]
        paper.gate.set()
        await waiting[1]

    pending = [put(handover, paper, b"%d" % number) for number in range(3)]
    thread.run(scene())
    assert [each.result() for each in pending] == [0, 1, 2]


def test_threads_put_at_once_and_none_of_it_is_lost(handover: Handover) -> None:
    paper = Paper()

    def append(who: int) -> list[int]:
        pending = []
        for number in range(200):
            pending.append(put(handover, paper, b"%d %d" % (who, number)))
            handover.announce()
        return [each.result() for each in pending]

    with ThreadPoolExecutor(4) as pool:
        places = list(pool.map(append, range(4)))
    for who, found in enumerate(places):
        assert found == sorted(found)
        assert [paper.values[at] for at in found] == [b"%d %d" % (who, n) for n in range(200)]
    assert len(paper.values) == 800


def test_a_thread_that_is_told_to_stop_tells_those_who_wait(
    handover: Handover, thread: LoopThread
) -> None:
    paper, waiting = Paper(), threading.Event()

    async def hold() -> None:
        paper.gate = asyncio.Event()
        waiting.set()

    thread.run(hold())
    pending = put(handover, paper, b"1")
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(pending.result)
        assert waiting.wait(PATIENCE_S)
        thread.stop()
        with pytest.raises(Unavailable, match="it was closed"):
            result.result(PATIENCE_S)
    assert handover.closed
    assert not pending.done


class Behind:
    """A loop that is far behind: whoever would wait for it is noticed instead."""

    class Waits(Exception):
        pass

    closed = False

    def __init__(self) -> None:
        self.loop = self
        self.announced = 0

    def call_soon_threadsafe(self, _: object) -> None:
        self.announced += 1

    def run(self, work: Coroutine[Any, Any, Any]) -> None:
        work.close()
        raise Behind.Waits


parts = st.integers(4_000, 200_000).map(bytes)
headers = st.lists(st.tuples(st.just("h"), parts), max_size=3).map(tuple)


@settings(max_examples=20)
@given(
    st.builds(Record, parts)
    | st.builds(Record, st.none(), parts)
    | st.builds(Record, st.none(), st.none(), headers)
)
@example(Record(b""))
def test_what_is_on_its_way_is_bounded_whatever_records_consist_of(record: Record) -> None:
    """A tombstone is nothing but a key, and an empty record takes a place in the queue as well."""
    behind = Behind()
    handover = Handover(cast("LoopThread", behind))
    most = BYTES_MAX // max(record.size, 32) + 1
    for _ in range(most):
        handover.put(Handed(Paper(), record, None))
        try:
            handover.announce()
        except Behind.Waits:
            break
    else:
        raise AssertionError(f"{most} records of {record.size} bytes are on their way")
    assert behind.announced <= 1, "one wake-up of the loop serves all"


def test_items_are_fetched_as_they_are_asked_for_and_the_rest_is_left(handover: Handover) -> None:
    fetched: list[int] = []
    left: list[bool] = []

    async def items() -> AsyncGenerator[int, None]:
        try:
            for number in range(10):
                fetched.append(number)
                yield number
        finally:
            left.append(True)

    found = cast("Generator[int]", each(handover, items()))
    assert [next(found), next(found)] == [0, 1]
    assert fetched == [0, 1]
    found.close()
    assert left == [True]
    assert list(each(handover, items())) == list(range(10))


def test_items_that_a_closed_client_would_have_to_fetch_are_an_error(
    handover: Handover, thread: LoopThread
) -> None:
    async def items() -> AsyncGenerator[int, None]:
        yield 1
        yield 2

    found = each(handover, items())
    assert next(found) == 1
    thread.stop()
    with pytest.raises(Unavailable, match="it was closed"):
        next(found)
