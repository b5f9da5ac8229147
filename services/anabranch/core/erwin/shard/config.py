"""What a replica of an Erwin log's shard is given when it starts."""

from dataclasses import dataclass

from anabranch.core.limits import MIB
from anabranch.core.quorum import ALL
from anabranch.core.replication.config import ReplicaConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ErwinShardConfig:
    shard: str
    node: str
    """The address at which this replica is dialed: its name."""
    replicas: tuple[str, ...]
    """All of the shard's, this one among them, the same order everywhere."""
    controllers: tuple[str, ...]
    hands_over: bool = False
    """A process of its own: when it is told to end, the shard goes on without it first."""
    cache_bytes: int = 64 * MIB
    """Recent items kept in memory; older ones are read back from the journal."""
    far: bool = False
    """Its journal is in a log of another system, in which others may harm it (decision 63)."""
    copy_bytes_max: int = 8 * MIB
    """Sent to one other replica and not acknowledged yet."""

    @property
    def replica(self) -> ReplicaConfig:
        """What its part in the shard's replicated log is given.

        All replicas of an epoch hold what is durable: in mode st a client counts on each of them
        too, and whoever takes over knows everything (LazyLog, 5.1).
        """
        return ReplicaConfig(
            group=self.shard,
            node=self.node,
            nodes=self.replicas,
            quorum=ALL,
            cache_bytes=self.cache_bytes,
            unacknowledged_bytes_max=self.copy_bytes_max,
        )
