"""Room for large letters that have begun to come: memory that nobody else has as long as they do.

Each letter gets its room as a whole before the rest of it is read, or connections that have parts
would wait for one another. One that hasn't come in time ends its connection.
"""

import asyncio
from typing import Any, Protocol

from anabranch.core.budget import Budget
from anabranch.core.limits import KIB, Limits
from anabranch.core.wire.frames import FrameReader

LARGE_BYTES = 64 * KIB
"""A smaller letter needs no room: it comes with the next piece."""
LETTER_S = 60.0
_LETTERS = 8
"""So many of the largest ones have room at a time."""


class Reading(Protocol):
    """A connection."""

    @property
    def peer(self) -> str: ...

    def resume(self) -> None:
        """There may be room."""
        ...

    def late(self) -> None:
        """Its letter hasn't come in time."""
        ...


class LetterRoom:
    """Of all connections that others have dialed."""

    def __init__(self, limits: Limits) -> None:
        self._budget = Budget(_LETTERS * limits.peer_frame_bytes_max)
        self._waiting: dict[Reading, None] = {}

    @property
    def used(self) -> int:
        return self._budget.used

    def take(self, reading: Reading, size: int) -> bool:
        """False: to be asked again when `resume` is called."""
        if self._budget.take(reading.peer, size):
            return True
        self._waiting[reading] = None
        return False

    def give(self, who: str, size: int) -> None:
        self._budget.give(who, size)
        waiting, self._waiting = self._waiting, {}
        for each in waiting:
            each.resume()

    def leave(self, reading: Reading) -> None:
        self._waiting.pop(reading, None)


class HalfLetter:
    """The one that a connection is in the midst of."""

    def __init__(self, room: LetterRoom, reading: Reading) -> None:
        self._room = room
        self._reading = reading
        self._begun = 0
        self._held = 0
        self._alarm: asyncio.TimerHandle | None = None

    def look(self, reader: FrameReader[Any]) -> bool:
        """After each piece; false if the connection mustn't be read until it is resumed."""
        size = reader.announced_bytes
        size = size if size > LARGE_BYTES else 0
        if not size or reader.begun != self._begun:
            self.end()
        if not size or self._held:
            return True
        if self._alarm is None:
            self._begun = reader.begun
            self._alarm = asyncio.get_running_loop().call_later(LETTER_S, self._reading.late)
        if not self._room.take(self._reading, size):
            return False
        self._held = size
        return True

    def end(self) -> None:
        """It has come, or its connection is over."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._room.leave(self._reading)
        held, self._held = self._held, 0
        if held:
            self._room.give(self._reading.peer, held)
