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
    """Keep the shard's pods until clients have trimmed all of its positions."""
    NOTHING = "Nothing"
    """End the shard's pods as soon as no window counts on it. Its records are DISCARDED."""


class Durability(StrEnum):
    FSYNC = "fsync"
    """Acknowledge a record once it is on the disks of a majority of the shard's replicas."""
    MEMORY = "memory"
    """Acknowledge a record once a majority of the replicas has it in memory. A loss of power loses
    it.
    """


class Leaving(Shape, frozen=True, kw_only=True):
    """What a shard that is removed waits for before its pods end."""

    wait_for: WaitFor = WaitFor.TRIMMED
    """What must be so, beside that no open window counts on the shard any more."""


class ShardTemplate(PodsSpec, frozen=True, kw_only=True):
    """What is wanted of the shards of a group."""

    copies: Annotated[int, Meta(ge=1, le=COPIES_MAX)] = 2
    """Number of replicas of each shard, on nodes of their own where there are enough. With 2 or
    more, what was delivered speculatively survives the loss of one. It can't be changed later.
    """
    quota: Annotated[int, Meta(ge=0, le=100_000)] = 0
    """Records that each shard asks for in an ordering interval when it joins; 0 takes
    `rules.firstQuota` of the SequencerSet. Later the quota follows the rate of appends.
    """
    durability: Durability = Durability.FSYNC
    """Where a record must be before it is acknowledged."""
    leaving: Leaving = Leaving()
    """What a shard that is removed waits for before its pods end."""
    storage: Storage
    """Where the shards keep their records."""


class ShardGroupSpec(ShardTemplate, frozen=True, kw_only=True):
    """What is wanted of the group of shards."""

    sequencers: Annotated[str, Meta(min_length=1, max_length=NAME_CHARS_MAX, pattern=NAME_PATTERN)]
    """Name of the SequencerSet in the same namespace that orders the records of these shards. It
    can't be changed later.
    """
    shards: Annotated[int, Meta(ge=0, le=SHARDS_MAX)] = 2
    """Number of shards. They are added and removed at the end of a window, as soon as all of their
    replicas run. A removed shard keeps its pods until its records are trimmed; see `leaving`.
    """


class ShardState(Shape, frozen=True, kw_only=True):
    """One shard of the group."""

    name: str
    """Name of the shard in the log."""
    standing: str
    """How the log counts on the shard: `Absent` (the log doesn't know it), `Waiting` (for the next
    window), `Seated` (it takes appends), `Leaving` (at the end of the window), `Left` or `Failed`
    (all replicas were lost).
    """
    epoch: int | None = None
    """Epoch of the shard's replicas; it grows when another becomes primary or a backup is replaced.
    """
    primary: str | None = None
    """Name of the pod whose replica takes appends."""
    copies: int = 0
    """Number of replicas that answer and count towards the majority."""
    quota: int = 0
    """Records that the shard may take in an ordering interval of the present window."""
    lag: int = 0
    """Rounds by which the shard is behind the furthest one."""
    resting: bool = False
    """Whether the shard has no quota for a while because it straggled."""


class ShardGroupStatus(Shape, frozen=True, kw_only=True):
    """What the operator last saw of the group."""

    observed_generation: int = 0
    """The `metadata.generation` that this status is about; a lower one means that the operator
    hasn't acted on the latest change of the spec yet.
    """
    shards: int = 0
    """Number of shards that have pods or are part of the log, also those that leave."""
    desired: int = 0
    """Number of shards that are wanted."""
    seated: int = 0
    """Number of shards that take appends, because a window has a quota for them."""
    pods: int = 0
    """Number of pods that are ready."""
    updated: int = 0
    """Number of pods that were made from the present spec."""
    window: int | None = None
    """Number of the window whose records are being ordered."""
    speculation: int | None = None
    """Percentage of the speculatively delivered records that were confirmed, rounded down."""
    selector: str = ""
    """Label selector of the group's pods, for autoscalers."""
    seats: Annotated[list[ShardState], keyed_by("name")] = field(default_factory=list[ShardState])
    """The shards, by name."""
    conditions: Conditions = field(default_factory=list[Condition])
    """Conditions of the group: Ready, Joining, Leaving and others, each with a reason and a
    message.
    """
