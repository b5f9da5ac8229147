"""A part of a broker by itself: its clock, its limits, and what it has told the metadata."""

from typing import Any

from anabranch.core.alarms import Alarms
from anabranch.core.bolt.broker.context import BrokerContext
from anabranch.core.bolt.broker.outbox import Outbox
from anabranch.core.limits import Limits
from anabranch.core.machine import Reply, Rest, Send
from anabranch.core.types import MS


class Bench:
    """`leader`: whom the broker takes for the leader of the metadata, if it knows."""

    def __init__(self, leader: str | None = "metadata", **limits: int) -> None:
        self.outbox = Outbox(leader)
        self.alarms = Alarms(self.outbox.effects)
        self.context = BrokerContext("b", "c", Limits(**limits), self.outbox, self.alarms)

    def _taken(self, kind: type) -> list[Any]:
        effects = self.outbox.effects
        found = [each for each in effects if isinstance(each, kind)]
        effects[:] = [each for each in effects if not isinstance(each, kind)]
        return found

    def told(self) -> list[Any]:
        """What the metadata were told since this was asked last."""
        return [each.message for each in self._taken(Send)]

    def replies(self) -> list[tuple[int, Any]]:
        """What clients were told since this was asked last."""
        return [(each.to, each.message) for each in self._taken(Reply)]

    def rested(self) -> int:
        return len(self._taken(Rest))

    def advance(self, ms: int) -> None:
        """A millisecond at a time, as a driver that is never late."""
        for _ in range(ms):
            self.alarms.now += MS
            self.alarms.ring()
