"""A state machine under measurement: what a benchmark needs to fill it and to tell it things.

Times are of the thread's processor: nothing in the state waits, and what else the machine does is
left out of account.
"""

import gc
from array import array
from time import thread_time_ns
from typing import cast

from anabranch.core.bolt.commands import (
    Batch,
    CommitObject,
    CreateLog,
    Description,
    Entry,
    ForkLog,
    Outcome,
    RegisterBroker,
    Row,
)
from anabranch.core.bolt.forest import Log
from anabranch.core.bolt.state import State
from anabranch.core.bolt.tails import LazyTailTree
from anabranch.core.limits import Limits
from anabranch.core.records.objects import object_id
from anabranch.core.types import Kind, LogId, ObjectId
from benchmarks.baselines import EagerTails

BATCH_BYTES = 4_096


class World:
    """One state, one broker, a clock that counts entries."""

    def __init__(self, tails: EagerTails | None = None) -> None:
        self.state = State("bench", Limits(requests_max=10_000_000))
        if tails is not None:
            self.state.replica.forest.tails = cast(LazyTailTree, tails)
        self.sequence = 0
        self.apply(RegisterBroker("b"))

    def entry(self, command: object) -> Entry:
        """With a request id, as clients' commands have; a commit has its object."""
        self.sequence += 1
        request = b"" if isinstance(command, CommitObject) else self.sequence.to_bytes(16, "big")
        return Entry(self.sequence, request, command)  # type: ignore[arg-type]

    def apply(self, command: object) -> Outcome:
        return self.state.apply(self.entry(command))

    def timed(self, command: object) -> int:
        """Nanoseconds that applying it takes."""
        entry = self.entry(command)
        apply = self.state.apply
        start = thread_time_ns()
        apply(entry)
        return thread_time_ns() - start

    def next_object(self) -> ObjectId:
        return object_id(1, self.sequence + 1)

    def commit_of(self, logs: list[LogId], records: int) -> CommitObject:
        """An object with one batch for each log."""
        rows = [
            Row(log, turn * BATCH_BYTES, [Batch(BATCH_BYTES, records)])
            for turn, log in enumerate(logs)
        ]
        return CommitObject("b", self.next_object(), rows)

    def objects_of(self, logs: list[LogId], turn: int, *, producers: bool) -> Entry:
        """The `turn`-th object with one record of each log, from one producer each or from none."""
        batch = Batch(BATCH_BYTES, 1, 7, 0, turn) if producers else Batch(BATCH_BYTES, 1)
        rows = [Row(log, place * BATCH_BYTES, [batch]) for place, log in enumerate(logs)]
        return self.entry(CommitObject("b", self.next_object(), rows))

    def append(self, log: LogId, records: int = 1) -> None:
        self.apply(self.commit_of([log], records))

    def root(self, name: str) -> LogId:
        outcome = self.apply(CreateLog(name))
        assert isinstance(outcome, Description), outcome
        return outcome.id

    def fork(self, parent: LogId, *, promotable: bool = False) -> LogId:
        outcome = self.apply(ForkLog(parent, Kind.CONTINUOUS, promotable=promotable))
        assert isinstance(outcome, Description), outcome
        return outcome.id

    def log(self, id: LogId) -> Log:
        return self.state.replica.forest.logs[id]

    def fill(self, id: LogId, extents: int, records: int) -> None:
        """As if so many commits had been applied, in a moment: the columns are written whole."""
        log, index = self.log(id), self.log(id).index
        assert not len(index), "only an empty log is filled"
        total = extents * records
        index.first = array("q", range(0, total, records))
        index.upto = array("q", range(records, total + records, records))
        index.object = array("Q", range(1 << 50, (1 << 50) + extents))
        index.offset = array("I", [0]) * extents
        index.length = array("I", [BATCH_BYTES]) * extents
        index.at = array("q", [self.sequence]) * extents
        self.state.replica.forest.tails.append(log.place, total)


def settle() -> None:
    """As the server does once it has recovered: what is there is never looked at again."""
    gc.collect()
    gc.freeze()
