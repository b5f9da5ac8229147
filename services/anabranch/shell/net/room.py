"""Connections of a port over which nobody has said yet who they are.

They are counted from the moment they are accepted, also while they are in a TLS handshake, and the
oldest is ended when a new one needs its place.
"""

from typing import Protocol

from anabranch.core.budget import STRANGERS, Budget


class Newcomer(Protocol):
    """A connection in a room."""

    def make_way(self) -> None:
        """End at once: it isn't counted any more, and another has its place."""
        ...


class Room:
    """The part of a process's connections that one principal has, such as all strangers."""

    def __init__(self, connections: Budget, who: str = STRANGERS) -> None:
        self._connections = connections
        self._who = who
        self._counted: dict[Newcomer, None] = {}
        self._endable: dict[Newcomer, None] = {}
        """Those that may be ended, the oldest first."""

    @property
    def limit(self) -> int:
        return self._connections.limit

    def enter(self, newcomer: Newcomer) -> bool:
        """Count it, though the oldest may have to end for that; false if no place can be made."""
        if not self._connections.take(self._who, 1):
            if not self._endable:
                return False
            oldest = next(iter(self._endable))
            self.leave(oldest)
            oldest.make_way()
            if not self._connections.take(self._who, 1):
                return False
        self._counted[newcomer] = self._endable[newcomer] = None
        return True

    def protect(self, newcomer: Newcomer) -> None:
        """It isn't ended for others, until it is exposed again."""
        self._endable.pop(newcomer, None)

    def expose(self, newcomer: Newcomer) -> None:
        """It may be ended again, after all that may be now."""
        if newcomer in self._counted:
            self._endable[newcomer] = None

    def leave(self, newcomer: Newcomer) -> None:
        """It is over, or counted elsewhere from here on. A second time does nothing."""
        if newcomer in self._counted:
            del self._counted[newcomer]
            self._endable.pop(newcomer, None)
            self._connections.give(self._who, 1)

    def clear(self) -> None:
        """End all that may be ended."""
        for newcomer in list(self._endable):
            self.leave(newcomer)
            newcomer.make_way()
