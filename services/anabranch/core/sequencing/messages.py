"""What a client and a sequencing replica say to each other."""

import msgspec

from anabranch.core.errors.refused import Refused
from anabranch.core.sequencing.ids import AppendId
from anabranch.core.types import Position
from anabranch.core.wire.session import Cancel

SEQUENCING_VERSION = 1


class SequencingMessage(msgspec.Struct, frozen=True, array_like=True):
    """Base."""


class Hello(SequencingMessage, frozen=True, tag="hello"):
    """The first frame of a connection."""

    version: int
    cluster: str
    client: str
    token: str | None = None
    node: str = ""
    """The replica that the client means, as it has dialed it; empty where there is only one."""


class Append(SequencingMessage, frozen=True, tag="append", gc=False):
    """One record batch, to every member of the view. Answered with `Taken`."""

    view: int
    lowest: int
    """Below this sequence the producer repeats nothing, and asks for no positions. It mustn't pass
    an append that wasn't acknowledged: its producer goes on in a later epoch.
    """
    batch: bytes


class AppendMeta(SequencingMessage, frozen=True, tag="meta", gc=False):
    """The id of a batch whose data the client sends to a shard (LazyLog, 5.1). Answered with
    `Taken`.
    """

    view: int
    lowest: int
    id: AppendId
    count: int
    """Records in the batch."""
    size: int
    """Bytes of the batch."""
    shard: str


class FindPosition(SequencingMessage, frozen=True, tag="find"):
    """To the leader: which position has this append? Answered when the position is stable."""

    id: AppendId


class AskTail(SequencingMessage, frozen=True, tag="tail"):
    """To every member of the view: how many records are durable? Answered with `Tail`."""

    view: int


class Locate(SequencingMessage, frozen=True, tag="locate"):
    """Who are the members of the view? Any replica answers."""


class Inspect(SequencingMessage, frozen=True, tag="inspect"):
    """To the leader: how is the sequencing layer? Answered with `SequencingStatus`."""


class Trim(SequencingMessage, frozen=True, tag="trim"):
    """To the leader: forget what lies below this stable position. Answered with `Done` when every
    shard has journaled that.
    """

    position: Position


class SetShardOpen(SequencingMessage, frozen=True, tag="set-shard-open"):
    """To any replica of a log with shards: let this shard take new records, or none any more. A
    closed shard serves reads until everything on it is trimmed, and is then removed. Answered with
    `Done` when the controllers have decided it.
    """

    shard: str
    open: bool


class Welcome(SequencingMessage, frozen=True, tag="welcome"):
    version: int
    cluster: str
    node: str
    release: str
    batch_bytes_max: int
    batch_records_max: int


class Taken(SequencingMessage, frozen=True, tag="taken", gc=False):
    """The member holds the append, on its disk if the log's durability is `fsync`."""

    shard: str = ""
    """Mode st: where its data is, as this member knows the append. One that was repeated under a
    request id may be known with another shard than the one that was named now.
    """


class Found(SequencingMessage, frozen=True, tag="found", gc=False):
    """The first position of the append's records; final."""

    position: Position


class Tail(SequencingMessage, frozen=True, tag="tailed"):
    """A member that isn't sealed says how many records it knows."""

    ordered: Position
    tail: Position
    """`ordered` and the records in its ring. The leader's is the log's durable tail."""


class Shard(SequencingMessage, frozen=True, kw_only=True):
    """Where clients find a shard of the log."""

    name: str
    primary: str
    replicas: tuple[str, ...]
    open: bool = True
    """May take new records; a shard that is being removed only serves reads."""
    epoch: int = 0
    """Which clients name when they send it data."""


class Directory(SequencingMessage, frozen=True, kw_only=True, tag="directory"):
    """The configuration, as far as the answering replica knows."""

    version: int
    """Configurations are numbered; a later one knows better."""
    view: int
    members: tuple[str, ...]
    leader: str
    shards: tuple[Shard, ...] = ()
    mode: str = ""
    """`m` or `st`; empty for a log that isn't Erwin's."""
    durability: str = ""
    hosts: dict[str, str] = {}
    """Where nodes were met last; their names may not lead there yet."""
    lost_view: int = 0
    """The last view whose unordered records were lost; 0: none was. What a client sent in it or
    before, and didn't have acknowledged, may be in the log or not.
    """


class SequencingStatus(SequencingMessage, frozen=True, kw_only=True, tag="status"):
    """What the leader sees."""

    version: int
    view: int
    leader: str
    members: tuple[str, ...]
    mode: str
    durability: str
    stable: Position
    tail: Position
    trimmed: Position
    backlog_records: int
    """Acknowledged or about to be, and not stable yet."""
    backlog_bytes: int
    ring_bytes_max: int
    shards: tuple["ShardProgress", ...]
    views_changed: int = 0
    lost_views: tuple[tuple[int, int], ...] = ()
    """Views whose unordered records were lost, each with when that was found, in ms since 1970."""


class ShardProgress(SequencingMessage, frozen=True, kw_only=True):
    """One shard, as the leader sees it."""

    name: str
    primary: str
    replicas: tuple[str, ...]
    epoch: int
    upto: Position
    """It holds every push up to here."""
    records: int = 0
    noops: int = 0
    reads: int = 0
    slow_reads: int = 0
    """Reads that had to wait for their positions to become stable."""
    orphans: int = 0


class Done(SequencingMessage, frozen=True, tag="done"):
    """What was asked is done, and durable."""


class Elsewhere(SequencingMessage, frozen=True, tag="elsewhere"):
    """Ask this node; empty: none is known yet, ask again."""

    node: str


ToSequencer = (
    Hello
    | Append
    | AppendMeta
    | FindPosition
    | AskTail
    | Locate
    | Inspect
    | Trim
    | SetShardOpen
    | Cancel
)
FromSequencer = (
    Welcome | Taken | Found | Tail | Directory | SequencingStatus | Done | Elsewhere | Refused
)
