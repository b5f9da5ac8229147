"""What an orderer counts: plain numbers that only grow, from lead to lead."""

from dataclasses import dataclass


@dataclass(slots=True)
class OrdererCounters:
    leads: int = 0
    """Times that this node began to order; a restart within a view counts."""
    groups: int = 0
    """Row groups; each goes to every shard as one push."""
    rows: int = 0
    records: int = 0
    pushes: int = 0
    """Letters with rows, not counting repetitions; the next two count these and empty ones."""
    repeated: int = 0
    empty: int = 0
    gaps: int = 0
    """Times that a shard asked for lost rows."""
    nonsense: int = 0
    """Letters that claim what can't be, or that their senders may not send: they are ignored."""
    fenced: int = 0
    """Leads that ended because a shard knew a later fence."""
    ordered: int = 0
    """Appends that all shards held."""
    trims: int = 0
    """Requests to trim that all shards have journaled."""
