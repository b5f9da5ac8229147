"""Whom a broker writes to: of a group of metadata members, the one that leads.

It tells every member that it is alive; whoever leads says so. What was written to another, or on a
connection that broke, may be lost: the owner repeats it when told `on_leader`.
"""

from collections.abc import Callable, Sequence

from anabranch.core.bolt.broker.context import BrokerContext
from anabranch.core.bolt.protocol.letters import Alive, Leading
from anabranch.core.machine import Send

UNKNOWN = -1


class Allegiance:
    """Of one broker, to the leader of the highest term that it has heard of."""

    def __init__(self, context: BrokerContext, members: Sequence[str]) -> None:
        self._limits = context.limits
        self._outbox = context.outbox
        self._alarms = context.alarms
        self._members = members
        self.epoch = 0
        """The broker's; 0 until it is registered."""
        self.term = UNKNOWN
        self.on_leader: Callable[[], None] = lambda: None

    def begin(self) -> None:
        assert self._members, "there is nobody to write to"
        for member in self._members:
            self._greet(member)
        self._alarms.after(self._limits.alive_ms, self.begin)

    def linked(self, node: str) -> None:
        if node == self._outbox.metadata:
            self.on_leader()
        if node in self._members:
            self._greet(node)

    def leading(self, member: str, message: Leading) -> None:
        """A later term is another leadership, also of the same member."""
        if message.term > self.term:
            self.term = message.term
            self._outbox.metadata = member
            self.on_leader()

    def _greet(self, member: str) -> None:
        assert member in self._members
        self._outbox.effects.append(Send(member, Alive(self.epoch)))
