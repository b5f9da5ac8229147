"""Belfast's session: one line to each node of a deployment that it asks.

Appends go through `session.appender` to the primaries of shards, subscriptions to whoever serves
each shard, and calls to the leader. Lines are dialed when somebody asks on them.
"""

from collections.abc import Sequence

from anabranch.client.belfast.dialect import dialect
from anabranch.client.belfast.directory import Whereabouts
from anabranch.client.belfast.shards import Appender
from anabranch.client.belfast.subscriber import Subscriber
from anabranch.client.session import effects
from anabranch.client.session.commons import RandomBits
from anabranch.client.session.node_session import Located, NodeSession
from anabranch.client.session.settings import Settings
from anabranch.core.belfast.protocol.messages import ToClient, ToServer
from anabranch.core.errors import BadRequest

Effect = effects.Effect[ToServer]
Event = effects.Event[ToClient]


class Session(NodeSession[ToServer, ToClient, Whereabouts]):
    """One client's conversations with the nodes of one deployment."""

    def __init__(
        self, cluster: str, settings: Settings, randbits: RandomBits, nodes: Sequence[str]
    ) -> None:
        """`nodes`: some of them, any; the others are learned from these."""
        if not nodes:
            raise BadRequest("a deployment", "at least one of its nodes must be named")
        super().__init__(cluster, dialect(cluster), settings, randbits)
        self.whereabouts = Whereabouts(nodes, self.line, self._located)
        self._commons.router = self.whereabouts
        self.appender = Appender(self._commons, self.whereabouts)

    @property
    def _appends(self) -> Appender:
        return self.appender

    def _streams(self) -> list[Located]:
        parts = self._commons.parts.values()
        return [part for part in parts if isinstance(part, Subscriber)]
