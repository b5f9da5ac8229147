"""What the machines of a lazy front count: plain numbers that only grow."""

from dataclasses import dataclass


@dataclass(slots=True)
class FrontCounters:
    """Of a sequencer."""

    leads: int = 0
    """Times that this node began to order; a restart within a view counts."""
    batches: int = 0
    """Batches that were cut for the log to commit."""
    appends: int = 0
    """Appends in these batches."""
    committed: int = 0
    """Appends that the log has committed."""
    committed_bytes: int = 0
    found: int = 0
    """Appends that a restarted leader found committed."""
    gaps: int = 0
    """Times that the log wanted an earlier batch first."""
    fenced: int = 0
    """Leads that ended because the log knew a later epoch."""
    nonsense: int = 0
    """Letters that claim what can't be, or that their senders may not send: they are ignored."""


@dataclass(slots=True)
class FrontControllerCounters:
    leads: int = 0
    """Terms that this controller was given."""
    attempts: int = 0
    """At view changes; some are replaced by another."""
    views: int = 0
    """Views that were configured."""
    lost_views: int = 0
    """Views of which nothing was left."""
    stragglers: int = 0
    """Times that a member was taken out of a view because appends waited for it."""
    nonsense: int = 0
    """Letters that their senders may not send: they are ignored."""
