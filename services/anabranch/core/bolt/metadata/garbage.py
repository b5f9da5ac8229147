"""What the leader deletes, and when: garbage past its grace that no scan plan holds (spec D6,
decision 75).
"""

from anabranch.core.bolt.protocol.commands import Bare, ForgetObjects
from anabranch.core.bolt.protocol.scans import EraseGarbage, LapsePlans
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.bolt.state.scans import plans
from anabranch.core.limits import Limits
from anabranch.core.types import Milliseconds, ObjectId

DELETED_AT_ONCE_MAX = 1_000


class Garbage:
    """Known to the leader alone: what is on its way to be deleted, and which plans to their end."""

    def __init__(self, replica: Replica, limits: Limits) -> None:
        self._replica = replica
        self._limits = limits
        self.deleting = False
        """Objects are being deleted: one request at a time."""
        self.lapsing = False
        """A LapsePlans is on its way to the journal; until then its plans look overdue still."""

    def deletable(self, now: Milliseconds) -> list[ObjectId]:
        """The next objects to delete, if none are being deleted."""
        if self.deleting:
            return []
        references = self._replica.references
        return references.deletable(self._deleted_before(now), DELETED_AT_ONCE_MAX)

    def overdue(self, now: Milliseconds) -> LapsePlans | None:
        """Plans that are to end: their leases are over, or they hold back too much."""
        if self.lapsing or not self._replica.plans.live:
            return None
        lapsed = [*self._replica.plans.overdue(now)]
        if lapsed:
            return LapsePlans(lapsed)
        before, bytes_max = now - self._limits.grace_ms, self._limits.plan_held_bytes_max
        greedy = plans.holding_too_much(self._replica, before, bytes_max)
        return LapsePlans(greedy, held_too_much=True) if greedy else None

    def next_lapse(self) -> Milliseconds | None:
        return None if self.lapsing else self._replica.plans.next_lapse()

    def goes_on(self, command: Bare) -> bool:
        """After a command was applied: is there more to delete, or to end, at once?"""
        if isinstance(command, LapsePlans):
            self.lapsing = False
            return True
        if isinstance(command, EraseGarbage | ForgetObjects):
            erased = self._replica.plans.erased
            if erased < 0:
                return False
            before = min(erased + 1, self._horizon)
            return bool(self._replica.references.deletable(before, 1))
        return False

    def refused(self, command: Bare) -> None:
        """A command couldn't be journaled."""
        if isinstance(command, LapsePlans):
            self.lapsing = False

    def _deleted_before(self, now: Milliseconds) -> Milliseconds:
        """Objects that became garbage before this time: no read that began earlier, and no plan,
        still needs them.
        """
        due = max(now - self._limits.grace_ms, self._replica.plans.erased + 1)
        return min(due, self._horizon)

    @property
    def _horizon(self) -> Milliseconds:
        return self._replica.plans.horizon
