"""Erwin's session: one line to each node of a log that it asks.

Appends go through `session.appender` to all members of the view, reads and subscriptions to the
primaries of shards, and calls to the leader. Lines are dialed when somebody asks on them.
"""

from collections.abc import Sequence

from anabranch.client.erwin.appender import Appender
from anabranch.client.erwin.dialect import Codecs, FromNode, NodeLine, ToNode, dialects
from anabranch.client.erwin.directory import Whereabouts
from anabranch.client.erwin.subscriber import Subscriber
from anabranch.client.session import effects
from anabranch.client.session.commons import RandomBits
from anabranch.client.session.dialect import Greeting
from anabranch.client.session.node_session import Located, NodeSession
from anabranch.client.session.settings import Settings
from anabranch.core.errors import BadRequest

Effect = effects.Effect[ToNode]
Event = effects.Event[FromNode]


class Session(NodeSession[ToNode, FromNode, Whereabouts]):
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
        super().__init__(cluster, spoken.sequencer, settings, randbits)
        self._shard_dialect = spoken.shard
        self._shard_lines: dict[str, NodeLine] = {}
        self.whereabouts = Whereabouts(nodes, self.line, self.shard_line, self._located)
        self._commons.router = self.whereabouts
        self.appender = Appender(self._commons, self.whereabouts)

    def shard_line(self, address: str) -> NodeLine:
        """The one line to this replica of a shard."""
        found = self._shard_lines.get(address)
        if found is None:
            found = self._shard_lines[address] = self._made(address, self._shard_dialect)
        return found

    def rose(self, line: NodeLine, greeting: Greeting) -> None:
        super().rose(line, greeting)
        self.appender.rose()

    @property
    def _appends(self) -> Appender:
        return self.appender

    def _streams(self) -> list[Located]:
        parts = self._commons.parts.values()
        return [part for part in parts if isinstance(part, Subscriber)]
