"""What a shard asks of whatever keeps its items (LazyLog, 4.1): append at the end, read, replace
the tail, forget the beginning. The log of the shard's replicas does; where it has one replica, that
one's journal may be a Kafka topic or a Bolt log (decision 63).
"""

from collections.abc import Callable
from typing import Protocol

from anabranch.core.erwin.protocol.rows import Fence
from anabranch.core.replication.entries import Item
from anabranch.core.replication.replica import Replica, Role
from anabranch.core.types import LocalSequence


class Storage(Protocol):
    @property
    def first(self) -> LocalSequence:
        """Of the first item that is kept."""
        ...

    @property
    def last(self) -> LocalSequence:
        """Where the next item goes."""
        ...

    @property
    def durable(self) -> LocalSequence:
        """Items before this place survive."""
        ...

    @property
    def fence(self) -> Fence:
        """Of the last writer."""
        ...

    @property
    def writable(self) -> bool:
        """May this node write?"""
        ...

    @property
    def obstacle(self) -> str:
        """Why this node can't write at present; empty if it can."""
        ...

    @property
    def established(self) -> bool:
        """No writer of an earlier fence is taken by whichever node, from now on."""
        ...

    def append(self, content: bytes) -> LocalSequence:
        """Returns the item's place. Only with `writable`."""
        ...

    def replace_tail(self, to: LocalSequence, fence: Fence) -> None:
        """Void the items from here on, and take no writer of an earlier fence any more."""
        ...

    def items(self, low: LocalSequence, high: LocalSequence, bytes_max: int) -> list[Item] | None:
        """As many of these items as fit, at least one. None if they have to be fetched."""
        ...

    def fetch(
        self,
        low: LocalSequence,
        high: LocalSequence,
        bytes_max: int,
        then: Callable[[list[Item]], None],
    ) -> None:
        """The same in a later step; nothing if `low` is no longer held."""
        ...

    def trim(self, below: LocalSequence, image: bytes) -> None:
        """Forget these items. A restart begins with this image of the owner's."""
        ...


class ReplicatedStorage:
    """The log of the shard's own replicas."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    @property
    def first(self) -> LocalSequence:
        return self._replica.log.first

    @property
    def last(self) -> LocalSequence:
        return self._replica.log.last

    @property
    def durable(self) -> LocalSequence:
        return self._replica.log.durable

    @property
    def fence(self) -> Fence:
        return Fence.of(self._replica.view)

    @property
    def writable(self) -> bool:
        return self._replica.role is Role.PRIMARY

    @property
    def obstacle(self) -> str:
        return self._replica.log.journal.obstacle or ""

    @property
    def established(self) -> bool:
        primary = self._replica.primary
        return primary is not None and primary.established

    def append(self, content: bytes) -> LocalSequence:
        return self._replica.append(content, 1, view=self._replica.view)

    def replace_tail(self, to: LocalSequence, fence: Fence) -> None:
        assert fence > self.fence, "a fence that is known changes nothing"
        self._replica.replace_tail(to, (), view=fence.number)

    def items(self, low: LocalSequence, high: LocalSequence, bytes_max: int) -> list[Item] | None:
        return self._replica.log.items(low, high, bytes_max)

    def fetch(
        self,
        low: LocalSequence,
        high: LocalSequence,
        bytes_max: int,
        then: Callable[[list[Item]], None],
    ) -> None:
        self._replica.log.fetch(low, high, bytes_max, then)

    def trim(self, below: LocalSequence, image: bytes) -> None:
        self._replica.log.trim(below, image)
