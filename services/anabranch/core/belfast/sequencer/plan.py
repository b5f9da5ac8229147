"""What the leader has decided, whether or not the group holds it yet."""

from anabranch.core.belfast.ledger.decisions import AnyDecision, CutTo
from anabranch.core.belfast.ledger.ledger import Ledger, Member, Standing
from anabranch.core.belfast.ledger.rules import Rules
from anabranch.core.belfast.ledger.windows import ShardId, Window
from anabranch.core.belfast.sequencer.counters import SequencerCounters


class Plan:
    """The ledger as it will be when all that was proposed is committed.

    What a leader proposes is committed in its order or, if it is deposed, not under its lead; then
    its plan goes with it. So whoever decides needs to look at the plan alone.
    """

    def __init__(
        self, ledger: Ledger, rules: Rules, counters: SequencerCounters | None = None
    ) -> None:
        self.ledger = Ledger(ledger.image())
        self.rules = rules
        self.counters = counters or SequencerCounters()
        self._decided: list[AnyDecision] = []

    def decide(self, decision: AnyDecision) -> None:
        self.ledger.apply((decision,))
        last = self._decided[-1] if self._decided else None
        if (
            isinstance(decision, CutTo)
            and isinstance(last, CutTo)
            and last.window == decision.window
        ):
            self._decided.pop()
        self._decided.append(decision)

    def take(self) -> list[AnyDecision]:
        """What is to be proposed now."""
        decided, self._decided = self._decided, []
        return decided

    @property
    def cutting(self) -> Window | None:
        """The first published window that isn't cut to its end."""
        windows = self.ledger.windows
        if windows and windows[0].foreseen and self.ledger.cut == windows[0].cuts:
            return windows[1] if len(windows) > 1 else None
        return windows[0] if windows else None

    @property
    def rounds_left(self) -> int:
        """Published, and not cut; of windows that are foreseen."""
        windows = self.ledger.windows
        if not windows:
            return 0
        left = sum(window.rounds for window in windows if window.foreseen)
        return left - (self.ledger.cut // windows[0].groups if windows[0].foreseen else 0)

    def members(self, *standings: Standing) -> list[Member]:
        """In the order of their ids."""
        members = self.ledger.members
        return [members[shard] for shard in sorted(members) if members[shard].standing in standings]

    def counts_on(self, shard: ShardId) -> bool:
        """Does a published window wait for something of this shard?"""
        first = self.cutting
        if first is None:
            return False
        return any(
            shard in window.by_shard and (window.number, shard) not in self.ledger.gaps
            for window in self.ledger.windows
            if window.number >= first.number
        )
