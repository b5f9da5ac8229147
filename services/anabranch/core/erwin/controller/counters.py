"""What a controller counts while it leads: plain numbers that only grow, from lead to lead."""

from dataclasses import dataclass


@dataclass(slots=True)
class ControllerCounters:
    leads: int = 0
    attempts: int = 0
    """At view changes; some are replaced by another."""
    views: int = 0
    """Views that were configured."""
    unstarted: int = 0
    """Views that were given up because nobody was left to start them."""
    lost_views: int = 0
    """Views of which nothing was left."""
    lost_shards: int = 0
    """Shards of which nothing was left, and that began anew."""
    stragglers: int = 0
    """Times that a member was taken out of a view because appends waited for it."""
    takeovers: int = 0
    """Another replica of a shard became primary."""
    rearranged: int = 0
    """A primary went on with other backups."""
    admitted: int = 0
    """Shards that were added."""
    removed: int = 0
    """Shards that were closed, and whose records are trimmed."""
    nonsense: int = 0
    """Letters that their senders may not send: they are ignored."""
