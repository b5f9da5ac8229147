"""What a sequencing replica is given when it starts."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SequencingConfig:
    node: str
    """The address at which the other replicas dial this one: its name."""
    controllers: tuple[str, ...] = ()
    """Where the replica says that it lives."""
    fsync: bool = True
    """An append is acknowledged when it is in the journal. Otherwise nothing is journaled, and each
    start of the replica is another life.
    """
    data_on_shards: bool = False
    """Clients send batches to shards, and only ids here (LazyLog, 5.1)."""
    retry_ms: int = 100
    """A letter that has no answer by then is repeated."""
    stray_ms: int = 2_000
    """Appends that stay in a ring for longer may be unknown to the leader, and are shown to it."""
