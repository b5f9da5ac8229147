"""What scan plans mean, at any cost: each keeps a copy of the records that it covers."""

from dataclasses import dataclass, field

from anabranch.core.bolt.protocol.scans import (
    AS_FAR,
    BeginPlan,
    EndPlan,
    EraseGarbage,
    LapsePlans,
    PlanId,
    RenewPlan,
    ScanCommand,
)
from anabranch.core.types import LogId, Milliseconds
from anabranch_sim.bolt.naive_logs import List, Record


@dataclass(eq=False)
class NaivePlan:
    log: LogId
    start: int
    records: list[Record]
    """Those of the log up to the plan's end, as they were."""
    settled: int
    expires: Milliseconds
    named: set[int] = field(default_factory=set[int])
    """Objects that its pages have named."""


class NaivePlans:
    def __init__(self) -> None:
        self.live: dict[PlanId, NaivePlan] = {}

    def apply(self, at: Milliseconds, command: ScanCommand, log: List | None) -> str:
        """The code of a refusal, or an empty one. `log`: the one that is to be planned."""
        match command:
            case BeginPlan():
                assert log is not None
                return self._begin(at, command, log)
            case RenewPlan(id, plan, lease_ms):
                known = self.live.get(plan)
                if known is None or known.log != id:
                    return "plan-ended"
                known.expires = max(known.expires, at + lease_ms)
            case EndPlan(id, plan):
                if plan in self.live and self.live[plan].log == id:
                    del self.live[plan]
            case LapsePlans(plans, held_too_much):
                for plan in plans:
                    if plan in self.live and (held_too_much or self.live[plan].expires <= at):
                        del self.live[plan]
            case EraseGarbage():
                self.live.clear()
        return ""

    def _begin(self, at: Milliseconds, command: BeginPlan, log: List) -> str:
        tail, settled = len(log.records), log.settled()
        last = tail if command.speculative else settled
        start = log.start if command.start == AS_FAR else command.start
        end = last if command.end == AS_FAR else command.end
        if not log.start <= start <= tail:
            return "out-of-range"
        if last < max(start, end) <= tail:
            return "read-blocked"
        if not start <= end <= tail:
            return "out-of-range"
        expires = at + command.lease_ms
        self.live[command.plan] = NaivePlan(log.id, start, log.records[:end], settled, expires)
        return ""
