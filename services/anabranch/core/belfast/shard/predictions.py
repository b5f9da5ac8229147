"""How many of a shard's records had their positions before their cuts, and what came of that."""

from anabranch.core.belfast.shard.record_counts import Tally
from anabranch.core.types import LocalSequence


class Forecast:
    """Every replica keeps it, and counts alike whatever it has of the shard's records."""

    def __init__(self, tally: Tally) -> None:
        self.foretold = 0
        """Records that the cuts came to where they had been foretold."""
        self.voided = 0
        """Records that had a position, and lost it when the shard failed."""
        self.settled: LocalSequence = 0
        """Counted up to here: the cuts have come to it."""
        self._tally = tally

    def begin(self, settled: LocalSequence, foretold: int, voided: int) -> None:
        """As it was noted when the cuts had come to here."""
        assert settled >= 0 <= foretold, "counts begin at 0"
        self.settled, self.foretold, self.voided = settled, foretold, voided

    def cut(self, confirmed: LocalSequence, *, foreseen: bool) -> None:
        """A backup may not have all of it yet: that counts with the next cut."""
        upto = min(confirmed, self._tally.last)
        if upto <= self.settled:
            return
        if foreseen:
            self.foretold += self._tally.below(upto) - self._tally.below(self.settled)
        self.settled = upto

    def void(self, low: LocalSequence, high: LocalSequence) -> None:
        """These were placed, and aren't any more."""
        self.voided += max(0, self._tally.below(high) - self._tally.below(low))
