"""ShardGroup: shards of one Belfast or Erwin log, declared."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, field

from anabranch_operator.api.common import Durability, GroupEngineName, Shape, keyed_by
from anabranch_operator.api.conditions import Condition, Conditions
from anabranch_operator.api.names import NAME_CHARS_MAX, NAME_PATTERN
from anabranch_operator.api.pods import Name, PodsSpec
from anabranch_operator.api.storage import Storage

SHARDS_MAX = 100
COPIES_MAX = 3
OF_THE_GROUP = ("shards", "leaving", "rollout")
"""Fields that say nothing about a single pod."""


class WaitFor(StrEnum):
    TRIMMED = "Trimmed"
    """Keep the shard's pods until clients have trimmed all of its positions."""
    NOTHING = "Nothing"
    """End the shard's pods as soon as no window counts on it. Its records are DISCARDED. Engine
    belfast.
    """


class Leaving(Shape, frozen=True, kw_only=True):
    """What a shard that is removed waits for before its pods end."""

    wait_for: WaitFor = WaitFor.TRIMMED
    """What must be so, beside that the log doesn't count on the shard any more. Engine erwin takes
    `Trimmed` alone.
    """


class BlackBox(Shape, frozen=True, kw_only=True):
    """A log of another system that keeps the records of each shard. The shards' own storage then
    holds no records, but a note of how far they went: a small volume is enough.
    """

    url: Annotated[
        str,
        Meta(
            max_length=400,
            pattern=r"^(kafka|anabranch)://[A-Za-z0-9._:,\[\]-]+/[A-Za-z0-9._-]{1,200}$",
        ),
    ]
    """What the names of the shards' topics begin with: with `kafka://HOST:PORT/clicks` shard 0 has
    the Kafka topic `clicks-0`, with `anabranch://HOST:PORT/votes` the Bolt log `votes-0`. They are
    created if they aren't there, and stay when the group is deleted. It can't be changed later.
    """
    access_secret: Name | None = None
    """Name of a Secret in this namespace for a Kafka that asks for TLS or a user. Its key
    `kafka.toml` says how Kafka is reached, and files that are named there, such as `ca.crt` and
    `password`, are other keys of it. A changed Secret is read within about a minute.
    """


class ShardTemplate(PodsSpec, frozen=True, kw_only=True):
    """What is wanted of the shards of a group."""

    copies: Annotated[int, Meta(ge=1, le=COPIES_MAX)] = 2
    """Number of replicas of each shard, on nodes of their own where there are enough. With 2 or
    more, the shard survives the loss of one. It can't be changed later.
    """
    quota: Annotated[int, Meta(ge=0, le=100_000)] = 0
    """Engine belfast: records that each shard asks for in an ordering interval when it joins; 0
    takes `rules.firstQuota` of the SequencerSet. Later the quota follows the rate of appends.
    """
    durability: Durability = Durability.FSYNC
    """Where a record must be before it is acknowledged. Engine erwin: where the records of a push
    must be before their positions are stable, in mode `st` also before they are acknowledged;
    `fsync` goes with sequencers in memory as well.
    """
    leaving: Leaving = Leaving()
    """What a shard that is removed waits for before its pods end."""
    storage: Storage
    """Where the shards keep their records."""
    black_box: BlackBox | None = None
    """Engine erwin, mode `m`, 1 copy: keep the shards' records in Kafka topics or Bolt logs. It
    can't be given or taken away later.
    """


class ShardGroupSpec(ShardTemplate, frozen=True, kw_only=True):
    """What is wanted of the group of shards."""

    sequencers: Annotated[str, Meta(min_length=1, max_length=NAME_CHARS_MAX, pattern=NAME_PATTERN)]
    """Name of the SequencerSet in the same namespace that orders the records of these shards. It
    can't be changed later.
    """
    shards: Annotated[int, Meta(ge=0, le=SHARDS_MAX)] = 2
    """Number of shards. They are added as soon as all of their replicas run, and removed while the
    log goes on; engine belfast does both at the end of a window. A removed shard keeps its pods
    until its records are trimmed; see `leaving`. The last shard of an erwin log stays.
    """
    engine: GroupEngineName = GroupEngineName.BELFAST
    """Which engine's log these shards are of: that of `sequencers`. It can't be changed later."""


class ShardState(Shape, frozen=True, kw_only=True):
    """One shard of the group."""

    name: str
    """Name of the shard in the log."""
    standing: str
    """How the log counts on the shard: `Absent` (the log doesn't know it), `Waiting` (to be taken
    in), `Seated` (it takes appends), `Leaving` (it will take none; engine erwin: until its records
    are trimmed), `Left` or `Failed` (all replicas were lost).
    """
    epoch: int | None = None
    """Epoch of the shard's replicas; it grows when another becomes primary or a backup is replaced.
    """
    primary: str | None = None
    """Name of the pod whose replica takes appends."""
    copies: int = 0
    """Number of replicas that answer and count towards what is durable."""
    quota: int = 0
    """Engine belfast: records that the shard may take in an ordering interval of this window."""
    lag: int = 0
    """Engine belfast: rounds by which the shard is behind the furthest one."""
    resting: bool = False
    """Engine belfast: whether the shard has no quota for a while because it straggled."""


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
    """Number of shards that take appends, or are leaving and still serve what they took."""
    pods: int = 0
    """Number of pods that are ready."""
    updated: int = 0
    """Number of pods that were made from the present spec."""
    window: int | None = None
    """Engine belfast: number of the window whose records are being ordered."""
    speculation: int | None = None
    """Engine belfast: percentage of the speculatively delivered records that were confirmed,
    rounded down.
    """
    selector: str = ""
    """Label selector of the group's pods, for autoscalers."""
    seats: Annotated[list[ShardState], keyed_by("name")] = field(default_factory=list[ShardState])
    """The shards, by name."""
    conditions: Conditions = field(default_factory=list[Condition])
    """Conditions of the group: Ready, Joining, Leaving and others, each with a reason and a
    message.
    """
