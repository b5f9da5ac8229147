"""What the parts of a Bolt session ask of it: a line, and to learn where logs are served."""

from typing import Protocol

from anabranch.client.session.commons import Commons
from anabranch.client.session.line import Line
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.messages import ClientMessage, ServerMessage
from anabranch.core.bolt.protocol.queries import Pool
from anabranch.core.types import LogId

BrokerLine = Line[ClientMessage, ServerMessage]


class Restless(Protocol):
    """May have something to send when this step ends."""

    log: LogId | None

    def pump(self) -> None: ...


class Routing(Protocol):
    """The session: it knows which line is best."""

    restless: list[Restless]

    @property
    def spread(self) -> bool:
        """Are there brokers to choose from? If not, a line that is up is the right one."""
        ...

    def place(self, log: LogId | None) -> BrokerLine: ...

    def learn(self, told: Description | Pool) -> None:
        """An answer says which broker serves a log, or which brokers there are."""
        ...


BoltCommons = Commons[ClientMessage, ServerMessage, Routing]
