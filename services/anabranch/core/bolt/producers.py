"""What a log remembers of a producer, so that a batch sent again is not appended again (spec
D4).
"""

from anabranch.core.types import Milliseconds, Position

REMEMBERED = 16
"""Batches of one producer whose places are known: a client keeps no more in flight to one log."""

SEQUENCE_SPACE = 1 << 31
"""Sequences wrap as Kafka's do."""


class Producer:
    """The next sequence expected, and where the last batches went, newest last."""

    __slots__ = ("at", "epoch", "next", "recent")

    def __init__(self, epoch: int, at: Milliseconds) -> None:
        self.epoch = epoch
        self.next = 0
        self.at = at
        self.recent: list[tuple[int, Position, int]] = []
        """(sequence, first position, the log's generation then)."""

    def place(self, sequence: int) -> tuple[Position, int] | None:
        """Where the batch that began with this sequence went, if it is remembered."""
        for then, position, generation in self.recent:
            if then == sequence:
                return position, generation
        return None

    def note(self, sequence: int, position: Position, generation: int) -> None:
        self.recent.append((sequence, position, generation))
        if len(self.recent) > REMEMBERED:
            del self.recent[0]
