"""The three things that the applications ask of a shared log, so that they run on any."""

from collections.abc import AsyncGenerator
from typing import NamedTuple, Protocol

from anabranch.client.erwin.log import SequencedLog
from anabranch.client.session.records import Deliver
from anabranch.core.types import Position


class Entry(NamedTuple):
    """A record at its position."""

    position: Position
    value: bytes


class SharedLog(Protocol):
    """A log that several programs append to and read, in one order for all."""

    async def append(self, value: bytes) -> None:
        """Return when the record is durable."""
        ...

    async def read(self, start: Position) -> list[Entry]:
        """All records from `start` on whose appends have returned, in the log's order."""
        ...

    def follow(self, start: Position) -> AsyncGenerator[list[Entry], None]:
        """Records from `start` on in the log's order, as they become readable, without an end."""
        ...


class ErwinSharedLog:
    """An Erwin log: an append returns after one round trip, before the record has a position."""

    def __init__(self, log: SequencedLog) -> None:
        self._log = log

    async def append(self, value: bytes) -> None:
        await self._log.append(value)

    async def read(self, start: Position) -> list[Entry]:
        return [
            Entry(record.position, record.value or b"") async for record in self._log.read(start)
        ]

    async def follow(self, start: Position) -> AsyncGenerator[list[Entry], None]:
        async with self._log.subscribe(start) as events:
            while True:
                yield [
                    Entry(event.record.position, event.record.value or b"")
                    for event in await events.take()
                    if isinstance(event, Deliver)
                ]
