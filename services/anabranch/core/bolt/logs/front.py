"""The lazy front of a log, as far as the log knows it (decision 62)."""

from bisect import bisect_right
from collections import deque

import msgspec

from anabranch.core.bolt.protocol.commands import EngineSettings
from anabranch.core.bolt.protocol.fronts import NO_EPOCH, FrontConfiguration
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.types import Position

ERAS_MAX = 4_096
"""A receipt of an offset before the oldest era has expired. A root has an era for each promotion; a
continuous fork gets one whenever its parent's records come between its own.
"""


class Era(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """From this offset on, a record's position was its offset and the shift when it was committed,
    in this generation of the log.
    """

    since: Position
    generation: int
    shift: int


class Listed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A batch that some replica may still hold."""

    first: Position
    upto: Position
    ids: list[tuple[AppendId, Position]]


class Front:
    __slots__ = (
        "configuration",
        "ended",
        "epoch",
        "eras",
        "lists",
        "number",
        "records",
        "settings",
    )

    def __init__(self, settings: EngineSettings) -> None:
        self.settings = settings
        """How many replicas it has, where they are, and what they promise."""
        self.configuration = FrontConfiguration()
        self.epoch = NO_EPOCH
        self.number = 0
        """Of the last batch of the epoch."""
        self.records: Position = 0
        """So many were committed through the front."""
        self.eras: deque[Era] = deque()
        self.lists: deque[Listed] = deque()
        self.ended = False
        """Appends are direct again. What it knows of offsets stays, for receipts."""

    def ids(self) -> list[tuple[AppendId, Position]]:
        return [each for listed in self.lists for each in listed.ids]

    def committed(
        self, ids: list[tuple[AppendId, Position]], count: int, *, at: Position, generation: int
    ) -> None:
        """The next batch, of so many records, is in the log from this position on."""
        assert count > 0
        first = self.records
        assert at >= 0
        assert all(first <= offset < first + count for _, offset in ids), "ids lie in the batch"
        self.number += 1
        self.records += count
        self.lists.append(Listed(first, self.records, ids))
        shift = at - first
        last = self.eras[-1] if self.eras else None
        if last is None or (last.generation, last.shift) != (generation, shift):
            self.eras.append(Era(first, generation, shift))
            if len(self.eras) > ERAS_MAX:
                self.eras.popleft()

    def release(self, upto: Position) -> None:
        """All replicas have dropped what lies below."""
        assert upto <= self.records, "what isn't committed isn't released"
        while self.lists and self.lists[0].upto <= upto:
            self.lists.popleft()

    def era(self, offset: Position) -> Era | None:
        """Of this record; None if it is forgotten."""
        assert 0 <= offset < self.records
        turn = bisect_right(self.eras, offset, key=lambda era: era.since)
        return self.eras[turn - 1] if turn else None
