"""What a replica of an Erwin shard counts: plain numbers that only grow."""

from dataclasses import dataclass


@dataclass(slots=True)
class ErwinShardCounters:
    pushes: int = 0
    """Taken, with rows."""
    repeated: int = 0
    """Pushes that were there already."""
    gaps: int = 0
    """Pushes that came behind a gap."""
    nonsense: int = 0
    """Letters that claim what can't be, or that their senders may not send: they are ignored."""
    stale: int = 0
    """Pushes of a fence that is over."""
    fences: int = 0
    """Times that a leader began anew."""
    cut_items: int = 0
    """Items that were void, because the leader that pushed them failed."""
    records: int = 0
    """Bound here, as primary or backup; the next counts no-ops."""
    noops: int = 0
    reads: int = 0
    """Answered."""
    slow_reads: int = 0
    """Reads that had to wait until their position was stable."""
    short_reads: int = 0
    """Reads whose position wasn't stable in time."""
    journal_reads: int = 0
    """Items that weren't in the cache were read back so many times."""
    delivered: int = 0
    """Records, to all subscribers together."""
    refused: int = 0
    """Requests."""
    stored: int = 0
    """Mode st: batches from clients, and how many of them were there already."""
    stored_again: int = 0
    late: int = 0
    """Mode st: batches that came when their positions were no-ops already."""
    orphans: int = 0
    """Mode st: batches that no row named, and that were dropped."""
