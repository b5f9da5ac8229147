"""ShardGroup: shards of one Belfast log, declared; they join and leave at windows' ends."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, field

from anabranch_operator.api.common import Shape, keyed_by
from anabranch_operator.api.conditions import Condition, Conditions
from anabranch_operator.api.names import NAME_CHARS_MAX, NAME_PATTERN
from anabranch_operator.api.pods import PodsSpec
from anabranch_operator.api.storage import Storage

SHARDS_MAX = 100
COPIES_MAX = 3


class WaitFor(StrEnum):
    TRIMMED = "Trimmed"
    """Its pods go when all of its positions are trimmed."""
    NOTHING = "Nothing"
    """Its pods go once no window counts on it. Its history is DISCARDED."""


class Durability(StrEnum):
    FSYNC = "fsync"
    """On the disks of a majority of the shard's replicas."""
    MEMORY = "memory"
    """In their memories: a loss of power loses it."""


class Leaving(Shape, frozen=True, kw_only=True):
    """What a shard waits for before its pods go, when there are to be fewer."""

    wait_for: WaitFor = WaitFor.TRIMMED
    """What else, once no window that is open counts on it."""


class ShardTemplate(PodsSpec, frozen=True, kw_only=True):
    """What is wanted of the shards of a group."""

    copies: Annotated[int, Meta(ge=1, le=COPIES_MAX)] = 2
    """Replicas of each shard, on nodes of their own where there are enough."""
    quota: Annotated[int, Meta(ge=0, le=100_000)] = 0
    """Records in an ordering interval that a shard demands first; 0: as the rules say."""
    durability: Durability = Durability.FSYNC
    """Where a record is before it is acknowledged."""
    leaving: Leaving = Leaving()
    """What a shard waits for before its pods go, when there are to be fewer."""
    storage: Storage
    """Where shards keep their records."""


class ShardGroupSpec(ShardTemplate, frozen=True, kw_only=True):
    """What is wanted of the group."""

    sequencers: Annotated[str, Meta(min_length=1, max_length=NAME_CHARS_MAX, pattern=NAME_PATTERN)]
    """The SequencerSet of the log, in the same namespace."""
    shards: Annotated[int, Meta(ge=0, le=SHARDS_MAX)] = 2
    """How many there are; they are added and removed at windows' ends."""


class ShardState(Shape, frozen=True, kw_only=True):
    """One shard."""

    name: str
    """What the log calls it."""
    standing: str
    """`Absent`, `Waiting`, `Seated`, `Leaving`, `Left` or `Failed`, as the log has it."""
    epoch: int | None = None
    """How often its replicas were arranged anew."""
    primary: str | None = None
    """The pod that takes appends."""
    copies: int = 0
    """Replicas that count and answer."""
    quota: int = 0
    """Of the window that is being cut; 0: none."""
    lag: int = 0
    """Rounds behind the furthest."""
    resting: bool = False
    """Without a quota, as a straggler."""


class ShardGroupStatus(Shape, frozen=True, kw_only=True):
    """What there is of the group."""

    observed_generation: int = 0
    """The generation of the spec that this status is about."""
    shards: int = 0
    """Shards that have pods, or are part of the log: also those that leave."""
    desired: int = 0
    """How many there should be."""
    seated: int = 0
    """Shards that have a seat and answer for it."""
    pods: int = 0
    """Pods of theirs that are ready."""
    updated: int = 0
    """Pods that are what the spec says."""
    window: int | None = None
    """The window that is being cut."""
    speculation: int | None = None
    """Of what was delivered before its cut, how much turned out right, in percent."""
    selector: str = ""
    """Labels that all of its pods bear, for autoscalers."""
    seats: Annotated[list[ShardState], keyed_by("name")] = field(default_factory=list[ShardState])
    """Each shard."""
    conditions: Conditions = field(default_factory=list[Condition])
    """What can be said of it."""
