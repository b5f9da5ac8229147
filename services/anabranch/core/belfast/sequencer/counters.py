"""What a sequencer counts while it leads: plain numbers that only grow, from lead to lead."""

from dataclasses import dataclass


@dataclass(slots=True)
class SequencerCounters:
    leads: int = 0
    """Times that it was elected."""
    reports: int = 0
    """From primaries of shards; the next counts those that claim what can't be."""
    nonsense: int = 0
    proposals: int = 0
    """Entries for the group's log; the next counts what they hold."""
    decisions: int = 0
    cuts: int = 0
    windows: int = 0
    signals: int = 0
    """Of lag, not counting repetitions."""
    trails: int = 0
    """Signals to shards that trail: too little to lag, and for too long."""
    rests: int = 0
    """Times that a straggler was given no quota."""
    admitted: int = 0
    views: int = 0
    """Shards failed as a whole."""
    takeovers: int = 0
    """Another replica of a shard became primary."""
    rearranged: int = 0
    """A primary went on with other backups."""
    restored: int = 0
    """Replicas that were given the whole ledger, because they were away for long."""
