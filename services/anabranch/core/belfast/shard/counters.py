"""What a replica of a shard counts: plain numbers that only grow."""

from dataclasses import dataclass

from anabranch.core.types import Nanoseconds


@dataclass(slots=True)
class ShardCounters:
    appends: int = 0
    """Batches that were taken; the next two count them, and their records, as acknowledged."""
    appended: int = 0
    appended_records: int = 0
    repeated: int = 0
    """Batches that were there already."""
    refused: int = 0
    nonsense: int = 0
    """Letters that their senders may not send: they are ignored."""
    records: int = 0
    """Logged by this replica, as primary or backup; the next counts no-ops."""
    noops: int = 0
    reports: int = 0
    rounds: int = 0
    """Met as primary."""
    signals: int = 0
    """Of lag, answered."""
    stalls: int = 0
    """Times that all published windows were used up and the next wasn't there."""
    stalled: Nanoseconds = 0
    delivered: int = 0
    """Records, to all subscribers together."""
    speculative: int = 0
    """Of them, before their cut."""
    confirmed: int = 0
    """Own records and no-ops that the cuts have come to."""
    voided: int = 0
    """Own records and no-ops that were placed, and were void when the shard failed."""
    views: int = 0
    """Changes of view that subscribers were told of."""
    holes: int = 0
    """Times that other replicas were asked where records are."""
