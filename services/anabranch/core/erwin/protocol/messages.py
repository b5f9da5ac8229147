"""What a client and a replica of a shard say to each other."""

import msgspec

from anabranch.core.errors.refused import Refused
from anabranch.core.sequencing.protocol.messages import Directory, Locate
from anabranch.core.types import Position
from anabranch.core.wire.session import Cancel, Credit

ERWIN_VERSION = 1


class ShardMessage(msgspec.Struct, frozen=True, array_like=True):
    """Base."""


class Hello(ShardMessage, frozen=True, tag="hello"):
    """The first frame of a connection."""

    version: int
    cluster: str
    client: str
    token: str | None = None
    node: str = ""
    """The replica that the client means, as it has dialed it; empty where there is only one."""


class Data(ShardMessage, frozen=True, tag="data", gc=False):
    """Mode st: one record batch, to every replica of the shard. Answered with `Stored`."""

    epoch: int
    """The shard's, as the client knows it: a replica of another one refuses (`stale-view`), so that
    answers of an old and of a new replica never make up one acknowledgement.
    """
    lowest: int
    """The producer's lowest sequence that wasn't acknowledged when this append began; repetitions
    say the same. When this append is ordered, data of the producer below it that isn't ordered yet
    never will be, and is dropped.
    """
    batch: bytes


class Read(ShardMessage, frozen=True, kw_only=True, tag="read"):
    """To a shard's primary: what lies from here on? Answered with `Records`."""

    shard: str
    start: Position
    bytes_max: int
    """At least one batch comes, even if it is larger."""
    records_max: int
    wait_ms: int = 0
    """How long to wait for the first position to become stable; 0: answer short at once."""


class Subscribe(ShardMessage, frozen=True, kw_only=True, tag="subscribe"):
    """To a shard's primary: its records from this position on, as they become stable; answered with
    a stream of `Delivered`.
    """

    shard: str
    start: Position
    window_bytes: int = 4 << 20
    """What may come before more is credited."""


class Welcome(ShardMessage, frozen=True, tag="welcome"):
    version: int
    cluster: str
    node: str
    release: str
    batch_bytes_max: int
    batch_records_max: int


class Stored(ShardMessage, frozen=True, tag="stored", gc=False):
    """The replica holds the batch, on its disk if the log's durability is `fsync`."""


class Span(ShardMessage, frozen=True, gc=False):
    """Consecutive positions that one shard serves, for whoever has asked another."""

    first: Position
    count: int
    shard: str


class Records(ShardMessage, frozen=True, kw_only=True, tag="records", gc=False):
    """The shard's batches among the positions from the asked one up to and without `upto`."""

    upto: Position
    """Everything below, from where was asked, is here or in `elsewhere`. The asked position itself
    if it isn't stable.
    """
    stable: Position
    trimmed: Position
    firsts: tuple[Position, ...]
    """Of each batch. A first one may begin before the position that was asked for."""
    counts: tuple[int, ...]
    batches: tuple[bytes, ...]
    """Empty for no-ops, which readers skip."""
    elsewhere: tuple[Span, ...]


class Delivered(ShardMessage, frozen=True, kw_only=True, tag="delivered", gc=False):
    """The next records of the shard; there are no others of its below `upto`."""

    upto: Position
    firsts: tuple[Position, ...]
    counts: tuple[int, ...]
    batches: tuple[bytes, ...]


class Elsewhere(ShardMessage, frozen=True, tag="elsewhere"):
    """Ask this node; empty: none is known yet, ask again."""

    node: str


# Any replica answers Locate at once: so clients learn where the log is, and that the replica lives.
ToShard = Hello | Data | Read | Subscribe | Locate | Credit | Cancel
FromShard = Welcome | Stored | Records | Delivered | Directory | Elsewhere | Refused
