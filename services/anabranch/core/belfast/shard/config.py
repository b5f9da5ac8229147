"""What a replica of a shard is told when it starts."""

from dataclasses import dataclass

from anabranch.core.limits import MIB
from anabranch.core.replication.config import ReplicaConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardConfig:
    shard: str
    node: str
    """The address at which this replica is dialed: its name."""
    replicas: tuple[str, ...]
    """All of the shard's, this one among them, the same order everywhere."""
    sequencers: tuple[str, ...]
    quota: int = 0
    """What the shard demands when it joins; 0: as the rules say."""
    cache_bytes: int = 64 * MIB
    """Recent items kept in memory; older ones are read back from the journal."""
    fsync: bool = True
    """What is stored is on a disk; it isn't where the journal is never synced."""
    copy_bytes_max: int = 8 * MIB
    """Sent to one other replica and not acknowledged yet."""

    @property
    def replica(self) -> ReplicaConfig:
        """What its part in the shard's replicated log is given."""
        return ReplicaConfig(
            group=self.shard,
            node=self.node,
            nodes=self.replicas,
            cache_bytes=self.cache_bytes,
            unacknowledged_bytes_max=self.copy_bytes_max,
        )
