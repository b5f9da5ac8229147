"""Erwin's two protocols: that of sequencing replicas, and that of replicas of shards."""

from typing import NamedTuple

from anabranch.client.session.dialect import Dialect, Greeting
from anabranch.client.session.endpoint import WITHIN
from anabranch.client.session.line import Line
from anabranch.client.session.settings import Settings
from anabranch.core.erwin.protocol import messages as shard
from anabranch.core.erwin.protocol.messages import ERWIN_VERSION, FromShard, ToShard
from anabranch.core.limits import Limits
from anabranch.core.sequencing.protocol import messages as sequencing
from anabranch.core.sequencing.protocol.messages import (
    SEQUENCING_VERSION,
    FromSequencer,
    Locate,
    ToSequencer,
)
from anabranch.core.wire.codec import Codec
from anabranch.core.wire.session import Cancel

ToNode = ToSequencer | ToShard
FromNode = FromSequencer | FromShard
NodeLine = Line[ToNode, FromNode]
NodeCodec = Codec[ToNode, FromNode]


class Codecs(NamedTuple):
    """How frames are written and read, by the kind of node."""

    sequencer: NodeCodec
    shard: NodeCodec


class Dialects(NamedTuple):
    """What is spoken, by the kind of node."""

    sequencer: Dialect[ToNode, FromNode]
    shard: Dialect[ToNode, FromNode]


def dialects(cluster: str, codecs: Codecs) -> Dialects:
    """Those spoken with the log of this name."""
    return Dialects(
        _dialect(sequencing.Hello, SEQUENCING_VERSION, cluster, codecs.sequencer),
        _dialect(shard.Hello, ERWIN_VERSION, cluster, codecs.shard),
    )


def _dialect(
    hello: type[sequencing.Hello | shard.Hello], version: int, cluster: str, codec: NodeCodec
) -> Dialect[ToNode, FromNode]:
    def greet(settings: Settings, token: str | None, address: str) -> ToNode:
        node = address if address.startswith(WITHIN) else ""
        return hello(version, cluster, settings.client, token, node)

    return Dialect(hello=greet, probe=Locate(), cancel=Cancel, greeting=_greeting, codec=codec)


def _greeting(message: FromNode) -> Greeting | None:
    if not isinstance(message, sequencing.Welcome | shard.Welcome):
        return None
    return Greeting(
        message.cluster,
        Limits().record_bytes_max,
        message.batch_bytes_max,
        message.batch_records_max,
    )
