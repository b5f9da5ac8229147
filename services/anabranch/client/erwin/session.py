"""Erwin's session: one line to each node of a log that it asks.

Appends go through `session.appender` to all members of the view, reads and subscriptions to the
primaries of shards, and calls to the leader. Lines are dialed when somebody asks on them.
"""

from collections.abc import Sequence

from anabranch.client.erwin.appender import Appender
from anabranch.client.erwin.dialect import Codecs, FromNode, NodeLine, ToNode, dialects
from anabranch.client.erwin.directory import Whereabouts
from anabranch.client.erwin.subscriber import Subscriber
from anabranch.client.session import effects, session
from anabranch.client.session.commons import RandomBits
from anabranch.client.session.dialect import Greeting
from anabranch.client.session.settings import Settings
from anabranch.core.errors import AnabranchError, BadRequest
from anabranch.core.types import Milliseconds

Effect = effects.Effect[ToNode]
Event = effects.Event[FromNode]


class Session(session.Session[ToNode, FromNode, Whereabouts]):
    """One client's conversations with the nodes of one log."""

    def __init__(
        self,
        cluster: str,
        settings: Settings,
        randbits: RandomBits,
        nodes: Sequence[str],
        codecs: Codecs,
    ) -> None:
        """`nodes`: some of its sequencing replicas, any; all others are learned from these."""
        if not nodes:
            raise BadRequest("a log", "at least one of its sequencing replicas must be named")
        spoken = dialects(cluster, codecs)
        super().__init__(spoken.sequencer, settings, randbits)
        self._cluster, self._shard_dialect = cluster, spoken.shard
        self._shard_lines: dict[str, NodeLine] = {}
        self.whereabouts = Whereabouts(nodes, self.line, self.shard_line, self._located)
        self._commons.router = self.whereabouts
        self.appender = Appender(self._commons, self.whereabouts)
        self._asking = False
        """Other nodes are asked, one after the other, where the log is."""

    def shard_line(self, address: str) -> NodeLine:
        """The one line to this replica of a shard."""
        found = self._shard_lines.get(address)
        if found is None:
            found = self._shard_lines[address] = self._made(address, self._shard_dialect)
        return found

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

    def rose(self, line: NodeLine, greeting: Greeting) -> None:
        super().rose(line, greeting)
        self.appender.rose()

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
        """Would it matter if the view changed, or a shard were elsewhere?"""
        return bool(self._commons.parts) or not self.appender.idle

    def _ask_another(self) -> None:
        self._asking = False
        if self.ended is None and self._busy:
            self.whereabouts.ask_another()
