"""Belfast's session: one line to each node of a deployment that it asks.

Appends go through `session.appender` to the primaries of shards, subscriptions to whoever serves
each shard, and calls to the leader. Lines are dialed when somebody asks on them.
"""

from collections.abc import Sequence

from anabranch.client.belfast.dialect import dialect
from anabranch.client.belfast.directory import NodeLine, Whereabouts
from anabranch.client.belfast.shards import Appender
from anabranch.client.belfast.subscriber import Subscriber
from anabranch.client.session import effects, session
from anabranch.client.session.commons import RandomBits
from anabranch.client.session.dialect import Greeting
from anabranch.client.session.settings import Settings
from anabranch.core.belfast.protocol.messages import ToClient, ToServer
from anabranch.core.errors import AnabranchError, BadRequest
from anabranch.core.types import Milliseconds

Effect = effects.Effect[ToServer]
Event = effects.Event[ToClient]


class Session(session.Session[ToServer, ToClient, Whereabouts]):
    """One client's conversations with the nodes of one deployment."""

    def __init__(
        self, cluster: str, settings: Settings, randbits: RandomBits, nodes: Sequence[str]
    ) -> None:
        """`nodes`: some of them, any; the others are learned from these."""
        if not nodes:
            raise BadRequest("a deployment", "at least one of its nodes must be named")
        super().__init__(dialect(cluster), settings, randbits)
        self._cluster = cluster
        self.whereabouts = Whereabouts(nodes, self.line, self._located)
        self._commons.router = self.whereabouts
        self.appender = Appender(self._commons, self.whereabouts)
        self._asking = False
        """Other nodes are asked, one after the other, where the shards are."""

    def host_of(self, address: str) -> str:
        return self.whereabouts.hosts.get(address, "")

    def wants(self, line: NodeLine) -> bool:
        return False

    def back_off(self, line: NodeLine) -> Milliseconds | None:
        """Callers, producers and streams pause by themselves, and may go elsewhere."""
        return None

    def idle_ms(self, line: NodeLine) -> Milliseconds | None:
        """A log has many nodes, and a program may ask each of them once."""
        return self.settings.idle_ms

    def mistaken(self, line: NodeLine, greeting: Greeting) -> str | None:
        if greeting.cluster == self._cluster:
            return None
        return f"it belongs to {greeting.cluster}, not to {self._cluster}"

    def fell(self, line: NodeLine, *, was_up: bool) -> None:
        """Whoever asked on the line was told already."""

    def rejected(self, line: NodeLine, error: AnabranchError) -> None:
        self._commons.refusals[line.number] = error
        line.hang_up(error.message)

    def _start(self) -> None:
        self.whereabouts.ask()

    def _pump(self) -> None:
        if self.ended is not None:
            return
        self.appender.pump()
        if not self._asking and self._busy:
            self._asking = True
            self._commons.alarms.after(self.settings.directory_ms, self._ask_another)

    def _close(self, error: AnabranchError) -> None:
        self.appender.close(error)

    def _located(self) -> None:
        self.appender.located()
        for part in list(self._commons.parts.values()):
            if isinstance(part, Subscriber):
                part.located()

    @property
    def _busy(self) -> bool:
        """Would it matter if a shard were elsewhere?"""
        return bool(self._commons.parts) or not self.appender.idle

    def _ask_another(self) -> None:
        self._asking = False
        if self.ended is None and self._busy:
            self.whereabouts.ask_another()
