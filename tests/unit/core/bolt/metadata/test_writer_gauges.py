"""What is shown of writers is what the logs remember."""

from typing import Any

from anabranch.core.bolt.metadata.writer_gauges import WriterGauges
from anabranch.core.bolt.protocol.commands import (
    FORMAT,
    Batch,
    CommitObject,
    CreateLog,
    Entry,
    RaiseFormat,
    RegisterBroker,
    Row,
)
from anabranch.core.bolt.protocol.marks import CompleteVersion, ReleaseWriter, WriterMark
from anabranch.core.bolt.state.state import State
from anabranch.core.limits import Limits
from anabranch.core.records.objects import object_id
from anabranch.core.types import LogId

Shown = tuple[int, int, int, int]


class Logs:
    def __init__(self) -> None:
        self._state = State("c", Limits())
        self._objects = 0
        self.do(RaiseFormat(FORMAT))
        self.do(RegisterBroker("b"))

    def do(self, command: Any) -> Any:
        return self._state.apply(Entry(1_000, b"", command))

    def create(self, name: str) -> LogId:
        return self.do(CreateLog(name)).id

    def append(self, log: LogId, writer: str, *, part: int, batch: int) -> None:
        self._objects += 1
        mark = WriterMark(writer, 0, part, batch)
        row = Row(log, 0, [Batch(10, 1, mark.sender, 0, mark.batch, 1 << 24, mark)])
        self.do(CommitObject("b", object_id(1, self._objects), [row], self._objects))

    @property
    def shown(self) -> Shown:
        gauges = WriterGauges(self._state.replica)
        return (gauges.remembered, gauges.most, gauges.parts, gauges.batches)


def test_logs_without_writers_show_none() -> None:
    logs = Logs()
    logs.create("orders")
    assert logs.shown == (0, 0, 0, 0)


def test_writers_of_all_logs_are_counted_until_they_are_released() -> None:
    logs = Logs()
    orders, clicks = logs.create("orders"), logs.create("clicks")
    for batch in range(3):
        logs.append(orders, "query-7", part=0, batch=batch)
    logs.append(orders, "query-8", part=1, batch=0)
    logs.append(clicks, "query-7", part=0, batch=0)
    assert logs.shown == (3, 2, 3, 5)
    logs.do(CompleteVersion(orders, "query-7", 0, [(0, 3)]))
    assert logs.shown == (3, 2, 3, 2), "batches of a complete version aren't remembered"
    logs.do(ReleaseWriter(orders, "query-7"))
    assert logs.shown == (2, 1, 2, 2)
    logs.do(ReleaseWriter(orders, "query-8"))
    logs.do(ReleaseWriter(clicks, "query-7"))
    assert logs.shown == (0, 0, 0, 0)
