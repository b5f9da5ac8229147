"""What a client and a sequencing replica say to each other."""

import msgspec

from anabranch.core.errors.refused import Refused
from anabranch.core.sequencing.protocol.ids import AppendId
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
    digest: bytes = b""
    """Of a request's records, which tells its repetition from another append under the same id.
    Empty from clients of earlier versions.
    """


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


class Survey(SequencingMessage, frozen=True, tag="survey"):
    """To any sequencing replica of a log whose controllers have processes of their own, also while
    there is no leader: how is the log, as they see it? Answered with `LogSurvey`.
    """


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
    removed: tuple[str, ...] = ()
    """Names of shards that the log had: nobody can ask them for anything any more."""


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
    append_bytes_per_s: int = 0
    """Of a lazy front: what clients have sent over the last seconds."""
    ring_lasts_ms: int = -1
    """Of a lazy front: how long the ring has room at that rate if nothing is ordered; -1: no limit,
    because nothing is appended.
    """
    held_up: str = ""
    """Why nothing is ordered or committed at present; empty if something is. Of a lazy front: what
    its log says; of an Erwin log: what keeps its shards from writing.
    """


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


class ShardPlace(SequencingMessage, frozen=True, kw_only=True):
    """One shard, as the configuration has it."""

    number: int
    name: str
    nodes: tuple[str, ...]
    """All its replicas."""
    epoch: int
    """0: they haven't all been there yet."""
    primary: str
    replicas: tuple[str, ...]
    """Those of the epoch."""
    open: bool
    """It takes new records."""
    removed: bool
    """All its records are trimmed, and its processes may end."""


class LogSurvey(SequencingMessage, frozen=True, kw_only=True, tag="log-survey"):
    """The configuration, as far as this node knows it, and what the controller that leads has said
    last.
    """

    node: str
    """The sequencer that answers."""
    version: int
    """Of the configuration; 0: none is known here."""
    term: int
    """Of the controller that decided it."""
    view: int
    """0: there is none yet."""
    leader: str
    members: tuple[tuple[str, int], ...]
    """Nodes of the view, each with the life that it is a member in."""
    sequencers: tuple[str, ...]
    """All nodes that may be members."""
    mode: str
    durability: str
    shards: tuple[ShardPlace, ...]
    """In the order of their numbers, with those that are removed."""
    lost_views: tuple[tuple[int, int], ...]
    controller: str
    """The one that leads; empty if none has said so here."""
    age_ms: int
    """How long ago it said what follows; -1: never."""
    obstacle: str
    """Why nothing is decided, or what can't be; empty: all is well."""
    changing: str
    """The phase of the view change under way, in which no append is acknowledged: `sealing`,
    `settling`, `preparing`; empty: none is.
    """
    silent: tuple[str, ...]
    """Nodes that nothing is heard of."""
    leaving: tuple[str, ...]
    """Nodes whose processes are about to end."""
    taking_over: tuple[str, ...]
    """Shards that get another primary."""


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
    | Survey
    | Trim
    | SetShardOpen
    | Cancel
)
FromSequencer = (
    Welcome
    | Taken
    | Found
    | Tail
    | Directory
    | SequencingStatus
    | LogSurvey
    | Done
    | Elsewhere
    | Refused
)
