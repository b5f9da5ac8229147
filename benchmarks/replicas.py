"""Replicas of the state in the shapes that the benchmarks need, made as fast as they can be."""

from array import array
from collections.abc import Iterator
from itertools import count

from anabranch.core.bolt.logs.forest import Log
from anabranch.core.bolt.protocol.commands import (
    FORMAT,
    Batch,
    CommitObject,
    Committed,
    CreateLog,
    Description,
    Entry,
    ForkLog,
    Outcome,
    RaiseFormat,
    RegisterBroker,
    Row,
)
from anabranch.core.bolt.state.state import State
from anabranch.core.limits import Limits
from anabranch.core.records.objects import object_id
from anabranch.core.types import Kind, LogId

AT = 1_700_000_000_000
BROKER = "broker-0"
BATCH_BYTES = 4_096
SUM = 3_735_928_559
"""A set sum that takes as many bytes as most do."""


class Replica:
    """A state, and the commands that tests of its speed give it."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.state = State("benchmark", limits or Limits())
        self._requests = count()
        self._objects = count()
        self.do(RaiseFormat(FORMAT))
        self.do(RegisterBroker(BROKER))

    def request(self) -> bytes:
        """As long as a client's."""
        return next(self._requests).to_bytes(16, "big")

    def do(self, command: object) -> Outcome:
        entry = Entry(AT, self.request(), command)  # pyright: ignore[reportArgumentType]
        return self.state.apply(entry)

    def create(self, name: str) -> LogId:
        made = self.do(CreateLog(name))
        assert isinstance(made, Description), made
        return made.id

    def fork(self, parent: LogId, *, promotable: bool = False) -> LogId:
        made = self.do(ForkLog(parent, Kind.CONTINUOUS, promotable=promotable))
        assert isinstance(made, Description), made
        return made.id

    def log(self, id: LogId) -> Log:
        return self.state.replica.forest.logs[id]

    def commit(self, rows: list[Row]) -> Entry:
        """One object's commit, not applied yet; like a broker's it has no request id."""
        return Entry(AT, b"", CommitObject(BROKER, object_id(1, next(self._objects)), rows))

    def append(self, log: LogId, records: int) -> None:
        """One extent."""
        done = self.state.apply(self.commit([row_of(log, records)]))
        assert isinstance(done, Committed), done

    def fill(self, id: LogId, extents: int, records: int = 1) -> None:
        """A root's first extents, as if each had been committed; sets columns, for speed."""
        log = self.log(id)
        assert not len(log.index), "only an empty log is filled"
        if not extents:
            return
        index = log.index
        index.first = array("q", range(0, extents * records, records))
        index.upto = array("q", range(records, (extents + 1) * records, records))
        index.object = array("Q", range(1 << 40, (1 << 40) + extents))
        index.offset = array("I", [0]) * extents
        index.length = array("I", [BATCH_BYTES]) * extents
        index.at = array("q", [AT]) * extents
        index.sum = array("I", [SUM]) * extents
        self.state.replica.forest.tails.append(log.place, extents * records)


def row_of(log: LogId, records: int, producer: int = -1, sequence: int = 0) -> Row:
    return Row(log, 0, [Batch(BATCH_BYTES, records, producer, 0, sequence)], sum=SUM)


def objects_of_many_logs(
    replica: Replica, logs: list[LogId], objects: int, *, producers: bool
) -> Iterator[Entry]:
    """One batch of each log in each object."""
    for turn in range(objects):
        yield replica.commit([row_of(log, 1, 1 if producers else -1, turn) for log in logs])
