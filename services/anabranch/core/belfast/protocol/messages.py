"""What a client says to sequencers and shards, and what it hears."""

import msgspec

from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.ledger.windows import Mode, Run
from anabranch.core.errors.refused import Refused
from anabranch.core.types import Position
from anabranch.core.wire.session import Cancel, Credit

BELFAST_VERSION = 1


class Message(msgspec.Struct, frozen=True, array_like=True):
    """Base."""


class Where(Message, frozen=True):
    """Which records a subscriber wants: those that fulfil every condition that is given.

    It is looked at where the records are, so that others needn't travel.
    """

    key_prefix: bytes | None = None
    key_modulus: int = 0
    key_remainder: int = 0
    """The CRC32C of the key, modulo `key_modulus`, is this; 0 as modulus asks for nothing."""
    header: str | None = None
    header_value: bytes | None = None


class Hello(Message, frozen=True, tag="hello"):
    """The first frame of a connection."""

    version: int
    cluster: str
    client: str
    token: str | None = None
    node: str = ""
    """The node that the client means, as it has dialed it. One process may serve many nodes at one
    address; then their names begin with `/`. Empty: the only one that is there.
    """


class Append(Message, frozen=True, tag="append", gc=False):
    """One record batch, to the primary of a shard; its producer, epoch and sequence make a retry
    at this shard harmless.
    """

    batch: bytes


class Subscribe(Message, frozen=True, tag="subscribe"):
    """A shard's records from this position on; answered with a stream."""

    shard: str
    """The one that is asked, or one for which it stands in."""
    start: Position
    where: Where | None = None
    window_bytes: int = 4 << 20
    """What may come before more is credited."""


class Trim(Message, frozen=True, tag="trim"):
    """To the leader: forget what lies below."""

    position: Position


class Locate(Message, frozen=True, tag="locate"):
    """To any node: who is there? Answered with a Directory."""


class Leave(Message, frozen=True, tag="leave"):
    """To the leader: let this shard go at a window's end. Answered when that is decided."""

    shard: str


class Join(Message, frozen=True, tag="join"):
    """To the leader: take back a shard that has left. Answered when that is decided."""

    shard: str


class Inspect(Message, frozen=True, tag="inspect"):
    """To the leader: how do you do? Answered with a Status."""


class Welcome(Message, frozen=True, tag="welcome"):
    version: int
    cluster: str
    node: str
    release: str
    batch_bytes_max: int
    batch_records_max: int


class Appended(Message, frozen=True, tag="appended", gc=False):
    """Where the batch's records are, in their order; final."""

    runs: tuple[Run, ...]


class Eras(Message, frozen=True, tag="eras"):
    """Of a stream: who has positions from where on. The first that comes holds the era of the
    stream's start; up to `known` there is no other.
    """

    eras: tuple[tuple[Position, tuple[str, ...]], ...]
    known: Position


class Delivered(Message, frozen=True, tag="delivered", gc=False):
    """The next records of a shard that are wanted; there are no others of its below `upto`."""

    view: int
    upto: Position
    speculative: bool
    runs: tuple[Run, ...]
    """Positions of the records, in their order."""
    batches: tuple[bytes, ...]
    """What holds them."""
    parts: tuple[tuple[int, int], ...]
    """For each batch, how many leading records aren't meant, and how many after those are. With a
    filter there may be several parts of one batch: the batch stands once for each.
    """


class Confirmed(Message, frozen=True, tag="confirmed", gc=False):
    """Every position below is final."""

    view: int
    upto: Position


class Failed(Message, frozen=True, kw_only=True, tag="failed"):
    """A new view: what was delivered from `since` on is void. Positions of these shards from there
    on, up to the era's next, are no-ops; what other shards delivered keeps its place (4.8).
    """

    view: int
    since: Position
    shards: tuple[str, ...]
    upto: Position
    """Where the windows end in which the failed have no-ops."""


class Shard(Message, frozen=True):
    """What everybody knows of a shard."""

    name: str
    standing: Standing
    epoch: int
    primary: str
    replicas: tuple[str, ...]
    stand_in: str = ""


class Directory(Message, frozen=True, tag="directory"):
    index: int
    """Of the group's last entry that the one who answers knows; a later one knows better."""
    view: int
    leader: str
    shards: tuple[Shard, ...]
    confirmed: Position
    trimmed: Position
    hosts: dict[str, str] = {}
    """Where nodes were met last, by whoever answers; their names may not lead there yet."""


class ShardStatus(Message, frozen=True):
    name: str
    standing: Standing
    epoch: int
    primary: str
    replicas: tuple[str, ...]
    stand_in: str
    quota: int
    """In the window that is being cut; 0: none."""
    next_quota: int
    """In the last window that is published; 0: none."""
    window: int
    rounds: int
    """Reported of that window."""
    lag: int
    """Rounds behind the furthest."""
    records: int
    noops: int
    """Since the shard's beginning, durable."""
    queued: int
    signals: int
    """Of lag, since this leader began."""
    resting: bool
    """Without a quota, as a straggler."""
    silent: tuple[str, ...] = ()
    last: Position = 0
    """Where its positions end that are published: it may go when all of them are trimmed."""
    foretold: int = 0
    """Of `records`, how many had their positions before the cuts that came to them."""
    voided: int = 0
    """Records that had a position, and lost it when the shard failed."""


class Status(Message, frozen=True, tag="status"):
    """What the leader sees."""

    term: int
    leader: str
    members: tuple[str, ...]
    reachable: tuple[str, ...]
    index: int
    view: int
    mode: Mode
    window: int
    cut: int
    cuts: int
    published: int
    """The last window that is."""
    confirmed: Position
    horizon: Position
    trimmed: Position
    t_ord_us: int
    shards: tuple[ShardStatus, ...]
    views_changed: int
    cuts_made: int
    fsync: bool = True
    """Is what is acknowledged on disks? So are the leader, and all replicas that it has heard of,
    set up; it doesn't hear how the other sequencers are.
    """
    foretold: int = 0
    voided: int = 0
    """Of all shards."""
    at_rest: bool = False
    """Nobody appends: windows are published, and no quota is filled until a record comes."""


class Done(Message, frozen=True, tag="done"):
    """What was asked is decided."""


class Elsewhere(Message, frozen=True, tag="elsewhere"):
    """Ask this node; empty: nobody is known to be the one yet, ask again."""

    node: str


ToServer = Hello | Append | Subscribe | Credit | Cancel | Trim | Locate | Leave | Join | Inspect
ToClient = (
    Welcome
    | Appended
    | Eras
    | Delivered
    | Confirmed
    | Failed
    | Directory
    | Status
    | Done
    | Elsewhere
    | Refused
)
