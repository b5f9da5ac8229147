"""Letters between a log's orderer, its shards and its controllers. A letter may be lost, repeated
or late. Those of the sequencing layer are in `core/sequencing/protocol/letters.py`, those among a
shard's replicas in `core/replication/letters.py`.
"""

import msgspec

from anabranch.core.erwin.protocol.rows import Fence, Mode, Row
from anabranch.core.replication.letters import Epoch
from anabranch.core.sequencing.view import View
from anabranch.core.wire.numbers import Bounded, BoundedOrNone


class ErwinLetterBase(msgspec.Struct, frozen=True, array_like=True):
    """Base."""


class Push(ErwinLetterBase, frozen=True, kw_only=True, tag="push", gc=False):
    """The leader to a shard's primary: the next rows, and in mode m the batches of its own rows.

    Without rows it tells only what is stable and trimmed, fences, and asks how far the shard is.
    Every push is answered, a repeated one too: with new rows once these are durable.
    """

    fence: Fence
    base: Bounded
    """Where the leader of this fence began with this shard. What the shard holds from there on of
    a lower fence is void. A shard that ends below was added later: it begins here, because no row
    below names it.
    """
    first: Bounded
    """Of the first row; without rows the end of those that were sent."""
    rows: list[Row]
    batches: list[bytes]
    """Mode m: of the rows of this shard, in their order."""
    stable: Bounded
    trimmed: Bounded
    answer_later: bool = False
    """It tells only what is stable, and the answer to the next push may say that this is known. A
    replica of an older release answers at once.
    """
    waits_ms: list[Bounded] = []
    """Mode st: how long to wait for the data of each row, one for all if there is one, and
    `noop_ms` if there is none: after that its records are no-ops.
    """
    announced_bytes: BoundedOrNone = -1
    """Mode st: of this shard's rows, as clients have said when they announced them. -1: the leader
    doesn't say.
    """


class Pushed(ErwinLetterBase, frozen=True, kw_only=True, tag="pushed", gc=False):
    """A shard's primary to the leader: a quorum of this shard holds every push up to here."""

    fence: Fence
    shard: Bounded
    upto: Bounded
    """Not below what the fence's base was, if the shard holds that."""
    trimmed: Bounded
    """Journaled, like `upto`."""
    records: Bounded = 0
    noops: Bounded = 0
    reads: Bounded = 0
    slow_reads: Bounded = 0
    orphans: Bounded = 0
    stable: Bounded = 0
    """As far as the shard knows; the leader repeats it until then."""
    wanted: BoundedOrNone = -1
    """The push came behind a gap: send again from here, where the shard's rows end. -1: no gap."""
    obstacle: str = ""
    """Why the primary can't write what it was sent; empty if it can."""
    voided: list[Bounded] = []
    """Mode st: where rows of this shard begin that became no-ops since the answer before, some of
    them if there are many.
    """
    excess_bytes: Bounded = 0
    """Mode st: of all batches that this primary has bound in this fence, beyond what was announced.
    """


class Stale(ErwinLetterBase, frozen=True, tag="stale", gc=False):
    """A shard's primary to a leader whose fence is over."""

    fence: Fence
    """The one that the shard knows."""


class ShardSetup(ErwinLetterBase, frozen=True, kw_only=True):
    """One shard in the configuration."""

    number: Bounded
    """Given once; rows name a shard by it."""
    name: str
    nodes: tuple[str, ...]
    """All replicas that may take part."""
    epoch: Epoch = 0
    """0: its replicas haven't all been there yet."""
    primary: str = ""
    replicas: tuple[str, ...] = ()
    """Of the epoch."""
    disks: tuple[int, ...] = ()
    begins: Bounded = 0
    """The shard's map begins here: it was added when this was stable at most."""
    open: bool = True
    """May take new records."""
    removed: bool = False
    """Its records are trimmed: it gets no pushes, and an append that names it has no records. It
    stays in the configuration, so that a name that isn't there means one that isn't known yet.
    """


class Configuration(ErwinLetterBase, frozen=True, kw_only=True, tag="configuration"):
    """What the controller decided last. Controllers send it to every node of the log."""

    version: Bounded
    term: Bounded
    """Of the controller that decided it."""
    mode: Mode
    fsync: bool
    view: View | None
    """None until the first members are prepared."""
    shards: tuple[ShardSetup, ...]
    sequencers: tuple[str, ...]
    """All nodes that may be members."""
    lost_views: tuple[tuple[int, int], ...] = ()
    """Views whose unordered records were lost, each with when that was found, in ms since 1970."""


class ShardPresent(ErwinLetterBase, frozen=True, kw_only=True, tag="shard-present"):
    """A replica of a shard to the controllers, again and again: this node lives."""

    shard: str
    node: str
    disk: Bounded
    """Of its journal. After that was lost it is another."""
    epoch: Epoch
    """The last that it knows; 0: none."""
    role: Bounded
    """`replication.replica.Role`."""
    durable: Bounded
    held: Bounded
    """The end of the rows that its shard has made durable, as far as it knows."""
    stable: Bounded
    silent: tuple[str, ...] = ()
    """A primary: replicas of its epoch that don't answer it."""
    caught_up: tuple[str, ...] = ()
    """A primary: replicas outside of its epoch that hold all that is durable."""
    version: Bounded = 0
    """Of the configuration that it knows."""
    nodes: tuple[str, ...] = ()
    """All replicas of the shard, as this one was started with."""
    trimmed: Bounded = 0
    fence: Bounded = 0
    """`Fence.number` of the last pushes that its shard took."""
    base: Bounded = 0
    """Where the leader of that fence began."""
    established: bool = False
    """A primary whose term a quorum has adopted: `held` is everything that is durable."""
    at: Bounded = 0
    """By the sender's clock: a letter that the network held up says nothing new."""
    leaving: bool = False
    """The replica's process is about to end: the shard goes on without it."""


class SealShard(ErwinLetterBase, frozen=True, kw_only=True, tag="seal-shard"):
    """A controller to the replicas of a shard whose primary or backup is silent: take nothing of an
    epoch below this one any more, and say what you hold.
    """

    shard: str
    epoch: Epoch


class ShardSealed(ErwinLetterBase, frozen=True, kw_only=True, tag="shard-sealed"):
    shard: str
    node: str
    epoch: Epoch
    last_term: Bounded
    """Of its last item."""
    last: Bounded
    """The replica with the highest term, then the longest log, holds all that was durable."""


class LearnShard(ErwinLetterBase, frozen=True, kw_only=True, tag="learn-shard"):
    """A controller to a replica outside of its shard's epoch: copy what the primary holds."""

    shard: str
    epoch: Epoch
    primary: str


class OpenShard(ErwinLetterBase, frozen=True, tag="open-shard"):
    """A node to the controllers, on behalf of a person: let this shard take new records, or none
    any more. A closed shard serves reads until everything on it is trimmed, and is then removed.
    The sender repeats this until a configuration says so.
    """

    shard: str
    open: bool


class Control(ErwinLetterBase, frozen=True, kw_only=True, tag="control"):
    """The controller that leads, to every sequencer: what it is doing, for whoever asks these."""

    node: str
    term: Bounded
    obstacle: str
    """Why nothing is decided, or what can't be; empty: all is well."""
    changing: str
    """The phase of the view change under way; empty: none is."""
    silent: tuple[str, ...]
    leaving: tuple[str, ...]
    """Nodes whose processes are about to end."""
    taking_over: tuple[str, ...]
    """Shards that get another primary."""


ErwinLetter = (
    Push
    | Pushed
    | Stale
    | Configuration
    | ShardPresent
    | SealShard
    | ShardSealed
    | LearnShard
    | OpenShard
    | Control
)
