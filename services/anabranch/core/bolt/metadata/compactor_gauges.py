"""How many compactors there are at one moment, for whoever wants to show it."""

from anabranch.core.bolt.protocol.compactors import RUNNING
from anabranch.core.bolt.state.replica import Replica


class CompactorGauges:
    __slots__ = ("live", "remembered")

    def __init__(self, replica: Replica) -> None:
        compactors = replica.compactors.values()
        self.live = sum(each.ended == RUNNING for each in compactors)
        self.remembered = len(compactors)
        """With those that have ended, and whose URLs may still be used."""
        assert self.live <= self.remembered
