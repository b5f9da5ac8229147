"""What a log tells of itself, in words that all engines share (ADR 0061)."""

from enum import StrEnum

from msgspec import Struct

from anabranch_operator.api.anabranch_names import Position


class Standing(StrEnum):
    """How the log counts on a shard. The value is what a ShardGroup's status shows."""

    WAITING = "Waiting"
    SEATED = "Seated"
    LEAVING = "Leaving"
    LEFT = "Left"
    FAILED = "Failed"


class ShardReport(Struct, frozen=True, kw_only=True):
    """One shard."""

    name: str
    standing: Standing
    epoch: int
    primary: str
    replicas: tuple[str, ...]
    """Nodes of the epoch."""
    silent: tuple[str, ...] = ()
    """Those of them that don't count at the moment."""
    last: Position = 0
    """Once everything below is trimmed, nobody can ask for what the shard holds."""
    quota: int = 0
    """Engine belfast: records in an ordering interval."""
    lag: int = 0
    """Engine belfast: rounds behind the furthest shard."""
    resting: bool = False
    """Engine belfast: without a quota, because it straggled."""


class Cutting(Struct, frozen=True, kw_only=True):
    """How a Belfast log orders."""

    term: int
    mode: str
    """`Steady`, `Bursty` or `FreeWill`."""
    window: int


class Sequencing(Struct, frozen=True, kw_only=True):
    """How the sequencers and controllers of an Erwin log, or of a lazy front, are."""

    changing: str
    """The phase of the view change under way; empty: none is."""
    obstacle: str
    """Why the controller can't go on; empty: it can."""
    unheard: str
    """Why nobody knows what the controller does; empty: it has just said so."""
    taking_over: tuple[str, ...]
    """Shards that get another primary."""
    lost_views: int
    tail: Position | None = None
    """Records that are durable; None if no leader says so at the moment."""
    backlog: int | None = None
    """Those of them that aren't stable."""
    durability: str = ""
    """`fsync` or `memory`."""
    held_up: str = ""
    """A lazy front: why its log commits nothing; empty: it does, or nobody says at the moment."""
    ring_lasts_ms: int | None = None
    """A lazy front: how long its ring has room at the present rate if nothing is committed; None:
    nothing is appended, or nobody says.
    """


class Report(Struct, frozen=True, kw_only=True):
    """A whole log, as its leader sees it."""

    leader: str
    """Node of the sequencer that orders."""
    members: tuple[str, ...]
    """Nodes of all sequencers."""
    reached: tuple[str, ...]
    """Sequencers that count towards what is acknowledged now."""
    age: tuple[int, int]
    """A later state of the same log compares greater."""
    view: int
    trimmed: Position
    settled: Position | None
    """Positions below this are final; None if nobody says at the moment."""
    shards: tuple[ShardReport, ...]
    cutting: Cutting | None = None
    """Engine belfast."""
    sequencing: Sequencing | None = None
    """Engine erwin, and lazy fronts."""
