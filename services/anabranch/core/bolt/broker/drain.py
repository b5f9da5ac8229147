"""How a broker ends when it is told to: its logs are placed elsewhere first, then it refuses what
is new, finishes what it has in hand, and rests.
"""

from collections.abc import Callable

from anabranch.core.bolt.broker.context import BrokerContext
from anabranch.core.bolt.broker.inquiries import Correspondence
from anabranch.core.bolt.protocol.commands import DrainBroker, Outcome
from anabranch.core.errors import BrokerDraining
from anabranch.core.machine import Rest, Token

_LOOK_MS = 10


class Draining:
    """Questions about where logs are now are answered to the end."""

    def __init__(
        self,
        context: BrokerContext,
        *,
        correspondence: Correspondence,
        epoch: Callable[[], int],
        held: Callable[[], int],
    ) -> None:
        self._name = context.name
        self._limits = context.limits
        self._outbox = context.outbox
        self._alarms = context.alarms
        self._correspondence = correspondence
        self._epoch = epoch
        self._held = held
        self.begun = False
        self._rested = False
        self.closed = False
        """What is new is refused."""
        self.on_closed: Callable[[], None] = lambda: None

    def begin(self) -> None:
        if self.begun:
            return
        self.begun = True
        self._alarms.after(self._limits.drain_ms, self.end)
        self._correspondence.propose(b"", DrainBroker(self._name, self._epoch()), self._moved)

    def refuse(self, token: Token) -> None:
        assert self.closed, "what is new is still taken"
        self._outbox.refuse(token, BrokerDraining(self._name))

    def end(self) -> None:
        """Nothing is in hand, or there is no more time."""
        if not self._rested:
            self._rested = True
            self._outbox.effects.append(Rest())

    def _moved(self, outcome: Outcome) -> None:
        """Also if nobody could be told: then clients find another broker by themselves."""
        assert self.begun
        self.closed = True
        self.on_closed()
        self._look()

    def _look(self) -> None:
        assert self.closed, "more may come"
        if not self._held():
            self.end()
        elif not self._rested:
            self._alarms.after(_LOOK_MS, self._look)
