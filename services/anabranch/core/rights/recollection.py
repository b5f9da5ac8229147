"""What was learned elsewhere: good for a while, and of use for longer if there is no better."""

from typing import Generic, NamedTuple, TypeVar

from anabranch.core.types import Nanoseconds

K = TypeVar("K")
V = TypeVar("V")


class Recalled(NamedTuple, Generic[V]):
    value: V
    until: Nanoseconds
    """It is good before this time; after it, it serves only while there is no better."""


class Recollection(Generic[K, V]):
    """Bounded: what was learned first is forgotten first."""

    __slots__ = ("_entries_max", "_known")

    def __init__(self, entries_max: int) -> None:
        assert entries_max > 0
        self._entries_max = entries_max
        self._known: dict[K, tuple[Recalled[V], Nanoseconds]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def learn(self, key: K, value: V, until: Nanoseconds, kept_until: Nanoseconds) -> None:
        assert until <= kept_until
        self._known.pop(key, None)
        self._known[key] = Recalled(value, until), kept_until
        if len(self._known) > self._entries_max:
            del self._known[next(iter(self._known))]

    def forget(self, key: K) -> None:
        self._known.pop(key, None)

    def recall(self, key: K, now: Nanoseconds) -> Recalled[V] | None:
        found = self._known.get(key)
        if found is None:
            return None
        recalled, kept_until = found
        if now >= kept_until:
            del self._known[key]
            return None
        return recalled
