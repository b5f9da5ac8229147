"""What an audit asks: the set sum of a range of a log (`core/records/set_sum.py`, decision 78)."""

import msgspec

from anabranch.core.types import LogId, Position


class ReadSetSum(msgspec.Struct, frozen=True, array_like=True, tag="read-set-sum"):
    """Of settled records. Without a start from where the log begins, without an end up to the
    settled position.
    """

    log: LogId
    start: Position | None = None
    end: Position | None = None


class SetSum(msgspec.Struct, frozen=True, array_like=True, tag="set-sum"):
    """The set sum of all batches of a range, but for those ranges of it that aren't summed."""

    start: Position
    end: Position
    """Lower than it was asked for if more doesn't fit into one answer: go on from here."""
    sum: int
    """0 if nothing is summed."""
    summed: int
    """Records whose batches the sum is of."""
    unsummed: list[tuple[Position, Position]]
    """The others, as ranges (from, to): an extent is at least one of them whole if the range cuts
    it, or if it was committed before sums were kept.
    """
    settled: Position

    @property
    def records(self) -> int:
        return self.end - self.start
