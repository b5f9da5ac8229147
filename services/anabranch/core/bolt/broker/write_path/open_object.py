"""Appends in hand, and the object that the next of them go into (AgileLog, 5.2; spec 4 a2)."""

from operator import attrgetter

import msgspec

from anabranch.core.bolt.protocol.commands import Batch
from anabranch.core.bolt.protocol.fronts import FrontEpoch, FrontMark
from anabranch.core.machine import Buffer, Token
from anabranch.core.types import LogId, Milliseconds, Nanoseconds

_serial_of = attrgetter("serial")


class FrontBatch(msgspec.Struct, frozen=True, gc=False):
    """A batch of a lazy front: several record batches that are committed together."""

    mark: FrontMark
    batches: list[bytes]
    entries: list[Batch]
    values: list[int]
    """As of `Held`."""


class Held(msgspec.Struct, gc=False, eq=False):
    """An append that was taken and is not yet answered."""

    serial: int
    """In order of arrival."""
    token: Token
    log: LogId
    batch: Buffer
    entry: Batch
    wait_ms: Milliseconds
    arrived_at: Nanoseconds
    value: int = 0
    """What the batch adds to a set sum."""
    front: FrontBatch | None = None
    """Set for a batch of a lazy front: `batch` and `entry` are empty but for the totals."""


class OpenObject:
    """Batches gathered so far, grouped by log, each log's in order of arrival."""

    __slots__ = ("bytes", "opened_at", "rows")

    def __init__(self, now: Nanoseconds) -> None:
        self.rows: dict[LogId | tuple[LogId, FrontEpoch, int], list[Held]] = {}
        """A row is of one log, and of one batch where the log has a front: an epoch's batches begin
        with 1 again.
        """
        self.bytes = 0
        self.opened_at = now

    def add(self, held: Held) -> None:
        """The newest of all."""
        self.bytes += held.entry.length
        key: LogId | tuple[LogId, FrontEpoch, int] = held.log
        if held.front is not None:
            mark = held.front.mark
            key = held.log, mark.epoch, mark.number
        row = self.rows.get(key)
        if row is None:
            self.rows[key] = [held]
        else:
            row.append(held)

    def put_back(self, held: Held) -> None:
        """One that comes back after a block goes before what its producer sent since."""
        self.add(held)
        if held.front is not None:
            return
        assert self.rows[held.log][-1] is held
        self.rows[held.log].sort(key=_serial_of)
