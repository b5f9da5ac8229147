"""What scan plans hold at one moment, for whoever wants to show it."""

from anabranch.core.bolt.state.replica import Replica
from anabranch.core.types import MS, NEVER, Nanoseconds


class PlanGauges:
    __slots__ = ("held_bytes", "live", "oldest_ms")

    def __init__(self, replica: Replica, now: Nanoseconds) -> None:
        plans = replica.plans
        self.held_bytes = replica.references.held(plans.horizon, NEVER)[1]
        """Of garbage that became so after the oldest plan was made."""
        self.live = len(plans.live)
        self.oldest_ms = max(0, now // MS - plans.horizon) if plans.live else 0
        """How long ago the oldest plan was made."""
