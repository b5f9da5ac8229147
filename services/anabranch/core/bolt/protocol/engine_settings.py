"""How a log is served that has nodes of its own: another engine's, or one with a lazy front."""

import msgspec


class EngineSettings(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How another engine serves a log of its own."""

    shards: int = 1
    """Parts of the log that take appends side by side."""
    replicas: int = 1
    """Of each shard. Whoever creates a log may leave it, and the sequencers, to the service: 0."""
    sequencers: int = 1
    """Members of the group that orders the shards' records."""
    addresses: tuple[str, ...] = ()
    """Where its sequencers are dialed. Empty: it is embedded, or has no processes yet."""
    cluster: str = ""
    """The name under which its sequencers and shards know each other; empty: this cluster's."""
    embedded: bool = False
    """Served by the very processes that keep this catalogue. Brokers set it; clients can't."""
    mode: str = ""
    """Of an Erwin log: records reach its shards through the sequencers (`m`), or at once (`st`)."""
    durability: str = ""
    """Of an Erwin log or a lazy front: acknowledged appends are on all members' disks (`fsync`) or
    in `memory`.
    """
    black_box: str = ""
    """Of an Erwin log: where its shards keep their records; empty: in journals of their own."""
