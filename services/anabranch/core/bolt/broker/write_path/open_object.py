"""Appends in hand, and the object that the next of them go into (AgileLog, 5.2; spec 4 a2)."""

from operator import attrgetter

import msgspec

from anabranch.core.bolt.protocol.commands import Batch
from anabranch.core.machine import Buffer, Token
from anabranch.core.types import LogId, Milliseconds, Nanoseconds

_serial_of = attrgetter("serial")


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


class OpenObject:
    """Batches gathered so far, grouped by log, each log's in order of arrival."""

    __slots__ = ("bytes", "opened_at", "rows")

    def __init__(self, now: Nanoseconds) -> None:
        self.rows: dict[LogId, list[Held]] = {}
        self.bytes = 0
        self.opened_at = now

    def add(self, held: Held) -> None:
        """The newest of all."""
        self.bytes += held.entry.length
        row = self.rows.get(held.log)
        if row is None:
            self.rows[held.log] = [held]
        else:
            row.append(held)

    def put_back(self, held: Held) -> None:
        """One that comes back after a block goes before what its producer sent since."""
        self.add(held)
        assert self.rows[held.log][-1] is held
        self.rows[held.log].sort(key=_serial_of)
