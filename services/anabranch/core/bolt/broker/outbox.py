"""What the parts of a broker have decided in one step, in the order in which they did."""

from anabranch.core.bolt.broker.counters import Counters
from anabranch.core.bolt.protocol.letters import ToMetadata
from anabranch.core.bolt.protocol.messages import ServerMessage
from anabranch.core.errors import AnabranchError
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Effect, Reply, Send, Token
from anabranch.core.usage import Usage


class Outbox:
    """Effects on their way to the driver, and the counts of what went through."""

    __slots__ = ("counters", "effects", "metadata", "usage")

    def __init__(self, metadata: str | None) -> None:
        self.metadata = metadata
        """Who leads them; while nobody is known to, what they should be told waits."""
        self.effects: list[Effect] = []
        self.counters = Counters()
        self.usage = Usage()

    def reply(self, token: Token, message: ServerMessage) -> None:
        self.effects.append(Reply(token, message))

    def refuse(self, token: Token, why: AnabranchError | Refused) -> None:
        self.counters.refused += 1
        refused = why if isinstance(why, Refused) else Refused.of(why)
        self.effects.append(Reply(token, refused))

    def tell_metadata(self, message: ToMetadata) -> None:
        if self.metadata is not None:
            self.effects.append(Send(self.metadata, message))
