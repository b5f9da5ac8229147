"""The scan plans that are alive, and why those that aren't have ended (decision 75)."""

from collections import OrderedDict
from collections.abc import Iterator

import msgspec

from anabranch.core.bolt.protocol.scans import Plan, PlanId
from anabranch.core.errors import PlanEnded
from anabranch.core.types import NEVER, LogId, Milliseconds, ObjectId

ENDED_REMEMBERED = 1_000
"""Plans of which it is still known why they have ended."""
NOT_KNOWN = "it isn't known: it ended long ago, or there never was such a plan of this log"


class ScanPlan(msgspec.Struct, array_like=True):
    """One plan. Snapshots hold it as it is: fields are only ever added at the end."""

    plan: Plan
    secret: bytes


class SavedPlans(msgspec.Struct, frozen=True, array_like=True):
    live: list[ScanPlan] = []
    ended: list[tuple[PlanId, str]] = []
    erased: Milliseconds = -1
    sizes: list[tuple[ObjectId, int]] = []
    """What objects have lost (see `References`)."""


class ScanPlans:
    """Plans in the order in which they were made, which is the order of their times."""

    __slots__ = ("ended", "erased", "live")

    def __init__(self) -> None:
        self.live: dict[PlanId, ScanPlan] = {}
        self.ended: OrderedDict[PlanId, str] = OrderedDict()
        """Why, for the latest of them."""
        self.erased: Milliseconds = -1
        """What became garbage up to this time is deleted without its grace."""

    @property
    def horizon(self) -> Milliseconds:
        """What became garbage at this time or later is kept: when the oldest plan was made."""
        for each in self.live.values():
            return each.plan.began
        return NEVER

    def find(self, id: PlanId, log: LogId) -> ScanPlan:
        found = self.live.get(id)
        if found is None or found.plan.log != log:
            reason = NOT_KNOWN if found is not None else self.ended.get(id, NOT_KNOWN)
            raise PlanEnded(plan_name(id), f"log {log}", reason)
        return found

    def end(self, id: PlanId, reason: str) -> None:
        if self.live.pop(id, None) is None:
            return
        assert id not in self.ended, "a plan ends once"
        self.ended[id] = reason
        if len(self.ended) > ENDED_REMEMBERED:
            self.ended.popitem(last=False)

    def of_log(self, log: LogId) -> int:
        """So many of the live ones are of this log."""
        return sum(each.plan.log == log for each in self.live.values())

    def overdue(self, now: Milliseconds) -> Iterator[PlanId]:
        """Plans whose leases are over."""
        return (id for id, each in self.live.items() if each.plan.expires <= now)

    def next_lapse(self) -> Milliseconds | None:
        return min((each.plan.expires for each in self.live.values()), default=None)

    def save(self, sizes: dict[ObjectId, int]) -> SavedPlans:
        live, ended = [*self.live.values()], [*self.ended.items()]
        return SavedPlans(live, ended, self.erased, [*sizes.items()])

    def load(self, saved: SavedPlans) -> dict[ObjectId, int]:
        """The sizes that were saved with the plans."""
        began = [each.plan.began for each in saved.live]
        assert began == sorted(began), "the horizon is when the first one was made"
        assert not self.live, "a snapshot comes before all commands"
        self.live = {each.plan.id: each for each in saved.live}
        self.ended = OrderedDict(saved.ended)
        self.erased = saved.erased
        return dict(saved.sizes)


def plan_name(id: PlanId) -> str:
    """As people see it."""
    return f"{id:016x}"
