"""A state, and the very objects that its extents name: real batches, laid out as brokers do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from anabranch.core.bolt.logs.lineage import slices
from anabranch.core.bolt.protocol.commands import (
    FORMAT,
    Batch,
    Command,
    CommitObject,
    CreateLog,
    Description,
    Entry,
    Outcome,
    RaiseFormat,
    RegisterBroker,
    Row,
)
from anabranch.core.bolt.state.state import State
from anabranch.core.limits import Limits
from anabranch.core.machine import Buffer
from anabranch.core.records.batch import peek
from anabranch.core.records.objects import ObjectName, lay_out, object_id
from anabranch.core.records.record import Record, decode, encode
from anabranch.core.records.set_sum import set_sum
from anabranch.core.types import NEVER, LogId, ObjectId

CLUSTER, BROKER = "river", "broker-0"


def batch(*values: bytes, producer: int = -1, sequence: int = -1) -> bytes:
    epoch = 0 if producer >= 0 else -1
    records = [Record(value, timestamp=1) for value in values]
    return encode(
        records, producer_id=producer, producer_epoch=epoch, base_sequence=sequence, now=1
    )


@dataclass
class Stored:
    """What a broker has written, and the metadata that know of it."""

    state: State = field(default_factory=lambda: State(CLUSTER, Limits()))
    objects: dict[ObjectId, bytes] = field(default_factory=dict[ObjectId, bytes])
    entries: list[Entry] = field(default_factory=list[Entry])

    def apply(self, command: Command) -> Outcome:
        entry = Entry(len(self.entries) + 1, b"", command)
        self.entries.append(entry)
        return self.state.apply(entry)

    def begin(self, *names: str) -> list[LogId]:
        """A broker's life, and logs of these names."""
        self.apply(RaiseFormat(FORMAT))
        self.apply(RegisterBroker(BROKER))
        return [self.create(name) for name in names]

    def create(self, name: str) -> LogId:
        made = self.apply(CreateLog(name))
        assert isinstance(made, Description)
        return made.id

    def write(self, batches: Mapping[LogId, Sequence[bytes]]) -> ObjectId:
        """An object that no commit names."""
        object = object_id(1, len(self.objects))
        parts, _ = lay_out(CLUSTER, list(batches.items()))
        self.objects[object] = b"".join(parts)
        return object

    def commit(self, batches: Mapping[LogId, Sequence[bytes]]) -> ObjectId:
        object = self.write(batches)
        parts, placed = lay_out(CLUSTER, list(batches.items()))
        assert b"".join(parts) == self.objects[object]
        rows: list[Row] = []
        for each in placed:
            headers = [peek(one) for one in batches[each.log]]
            known = [
                Batch(
                    header.size,
                    header.count,
                    header.producer_id,
                    max(0, header.producer_epoch),
                    max(0, header.base_sequence),
                )
                for header in headers
            ]
            rows.append(Row(each.log, each.offset, known, sum=set_sum(batches[each.log])))
        self.apply(CommitObject(BROKER, object, rows))
        return object

    def name(self, object: ObjectId) -> str:
        return str(ObjectName.of(CLUSTER, object))


def values(state: State, log: str, objects: Mapping[ObjectId, Buffer]) -> list[bytes | None]:
    """All records of a log, found by its extents in the bytes of its objects."""
    forest = state.replica.forest
    found = forest.names[log]
    read: list[bytes | None] = []
    for each in slices(forest, found, found.start, forest.tail(found), NEVER):
        content = memoryview(objects[each.object])[each.offset : each.offset + each.length]
        records: list[bytes | None] = []
        at = 0
        while at < len(content):
            size = peek(content[at:]).size
            records += [record.value for record in decode(content[at : at + size])]
            at += size
        read += records[each.skip : each.skip + each.count]
    return read
