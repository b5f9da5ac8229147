"""The applications of examples/erwin run on a real log, and their checks notice a log that errs."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator

import pytest
from examples.erwin import teller, word_count, ycsb
from examples.erwin.__main__ import APPLICATIONS, main
from examples.erwin.shared_log import Entry
from examples.erwin.word_count import Checkpoint, Sink, Text, Worker

import anabranch.testing
from anabranch.core.types import Position


class ListLog:
    """A log that is a list, and errs with one record if it is told to."""

    def __init__(self, fault: str = "", at: int = 7) -> None:
        self._fault, self._at = fault, at
        self._values: list[bytes] = []
        self._moved = asyncio.Condition()

    async def append(self, value: bytes) -> None:
        await asyncio.sleep(0)
        async with self._moved:
            self._values.append(value)
            if len(self._values) == self._at:
                self._err()
            self._moved.notify_all()

    async def read(self, start: Position) -> list[Entry]:
        return [Entry(n, value) for n, value in enumerate(self._values) if n >= start]

    async def follow(self, start: Position) -> AsyncGenerator[list[Entry], None]:
        while True:
            async with self._moved:
                while not (entries := await self.read(start)):
                    await self._moved.wait()
            yield entries
            start = entries[-1].position + 1

    def _err(self) -> None:
        match self._fault:
            case "lose":
                self._values.pop()
            case "repeat":
                self._values.append(self._values[-1])
            case "swap":
                self._values.insert(0, self._values.pop())
            case _:
                assert not self._fault


def test_applications_find_their_output_right_on_an_erwin_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with anabranch.testing.server() as server:
        monkeypatch.setenv("ANABRANCH_URL", server.url)
        assert asyncio.run(main([*APPLICATIONS, "--requests", "200"])) == 0


def test_applications_find_their_output_right_on_a_list() -> None:
    async def scenario() -> None:
        for play in APPLICATIONS.values():
            assert await play(ListLog(), 0, 100, 1) == []

    asyncio.run(scenario())


@pytest.mark.parametrize("fault", ["lose", "repeat", "swap"])
def test_the_key_value_store_notices_a_log_that_errs(fault: str) -> None:
    async def scenario() -> None:
        workload = ycsb.Workload("load", 20)
        assert await ycsb.play(ListLog(fault), 0, workload)

    asyncio.run(scenario())


@pytest.mark.parametrize("fault", ["lose", "repeat", "swap"])
def test_the_audit_notices_a_log_that_errs(fault: str) -> None:
    async def scenario() -> None:
        # The accounts are created first: the record at fault is a transaction of one of them.
        business = teller.Business(60, clients=1, servers=1, accounts=2)
        assert await teller.play(ListLog(fault, at=40), 0, business)

    asyncio.run(scenario())


@pytest.mark.parametrize("fault", ["lose", "repeat", "swap"])
def test_the_word_count_notices_a_log_that_errs(fault: str) -> None:
    async def scenario() -> None:
        # The seventh checkpoint is its worker's second, which no successor has written.
        text = Text(lines=100, batch_lines=4)
        assert await word_count.play(ListLog(fault), 0, text)

    asyncio.run(scenario())


class Died(Exception):
    """The worker's process is gone."""


class DeadlySink(Sink):
    """A sink before which a worker dies once, with its output in hand."""

    deadly_batch = 3

    def emit(self, checkpoint: Checkpoint) -> None:
        if checkpoint.batch == self.deadly_batch:
            self.deadly_batch = 0
            raise Died
        super().emit(checkpoint)


def test_a_worker_that_dies_between_its_checkpoint_and_its_output_counts_each_batch_once() -> None:
    async def scenario() -> None:
        text = Text(lines=60, workers=1, batch_lines=10)
        (source,) = text.sources()
        log, sink = ListLog(), DeadlySink()
        with pytest.raises(Died):
            await Worker(log, 0, source, 10, sink).run()

        successor = Worker(log, 0, source, 10, sink)
        await successor.recover(0)
        await successor.run()
        assert sink.totals == Counter(word for line in source for word in line.split())
        assert len(await log.read(0)) == 6

    asyncio.run(scenario())


def test_a_checkpoint_that_a_paused_worker_appends_late_counts_once() -> None:
    async def scenario() -> None:
        text = Text(lines=60, workers=1, batch_lines=10)
        (source,) = text.sources()
        log, sink = ListLog(), Sink()
        paused = Worker(log, 0, source, 10, sink)
        await paused.run(1)
        successor = Worker(log, 0, source, 10, sink)
        await successor.recover(0)
        await successor.run(2)
        await paused.run(1)
        last = Worker(log, 0, source, 10, sink)
        await last.recover(0)
        await last.run()
        assert sink.totals == Counter(word for line in source for word in line.split())

    asyncio.run(scenario())
