"""What one replica of a log is given when it starts."""

from dataclasses import dataclass

from anabranch.core.limits import MIB
from anabranch.core.quorum import MAJORITY, Quorum


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaConfig:
    group: str
    """The name of the replicated log, which every letter carries."""
    node: str
    """The address at which the other replicas dial this one."""
    nodes: tuple[str, ...]
    """All replicas that may ever take part, this one among them."""
    quorum: Quorum = MAJORITY
    """How many replicas of an epoch must have an item in their journals before it is durable."""
    cache_bytes: int = 64 * MIB
    """Recent items are kept in memory; older ones are read back from the journal."""
    unacknowledged_bytes_max: int = 8 * MIB
    """The primary sends one backup no more than this before the backup acknowledges some of it."""

    def __post_init__(self) -> None:
        assert self.node in self.nodes
        assert len(set(self.nodes)) == len(self.nodes)
