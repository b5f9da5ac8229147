"""What a controller is given when it starts."""

from dataclasses import dataclass

from anabranch.core.erwin.protocol.rows import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardNodes:
    """One shard of a new log."""

    name: str
    nodes: tuple[str, ...]

    def __post_init__(self) -> None:
        assert self.nodes, "a shard has replicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    node: str
    sequencers: tuple[str, ...]
    """All nodes that may be members of a view, the same order everywhere."""
    shards: tuple[ShardNodes, ...]
    """The log begins with these. Others are added when all their replicas are there."""
    mode: Mode = Mode.M
    """Counts only for a log that begins: the mode is part of what is journaled."""
    fsync: bool = True
    accept_loss: bool = False
    """With durability `memory`: go on with empty rings when nothing of a view is left."""
    reports: bool = False
    """Tell the sequencers what it does, for those who ask them (`Survey`)."""
    alone: bool = True
    """It keeps a journal of its own and always leads; otherwise a group elects a leader."""

    def __post_init__(self) -> None:
        assert self.sequencers, "a view has members"
        assert len(set(self.sequencers)) == len(self.sequencers)
        assert len({shard.name for shard in self.shards}) == len(self.shards)
