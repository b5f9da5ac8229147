"""The paper's other variants of Bolt, as far as its figures compare them (AgileLog, 5.5 and 6).

None of them is in the product. They keep the index's columns, so that only the rule differs.
"""

from collections.abc import Iterable

from anabranch.core.bolt.index import COLUMNS, Index
from anabranch.core.types import Milliseconds, ObjectId


def copied(index: Index) -> Index:
    """BoltMetaCpy: a fork begins with a copy of its parent's index (AgileLog, 5.4)."""
    copy = Index()
    copy.forgotten = index.forgotten
    for column in COLUMNS:
        setattr(copy, column, getattr(index, column)[:])
    return copy


class NaiveLog:
    """BoltNaiveCF: an append is entered into the index of every descendant (AgileLog, 5.5)."""

    def __init__(self, parent: "NaiveLog | None" = None) -> None:
        self.index = Index()
        self.tail = parent.tail if parent else 0
        self.descendants: list[NaiveLog] = []
        if parent:
            parent.descendants.append(self)

    def append(
        self, count: int, object: ObjectId, offset: int, length: int, at: Milliseconds
    ) -> int:
        first = self.tail
        for log in (self, *self.descendants):
            log.index.append(log.tail, count, object, offset, length, at)
            log.tail += count
        return first


class EagerTails:
    """Bolt-ET: only tails are moved, but every descendant's at every append (AgileLog, 5.5.2)."""

    def __init__(self, descendants: int) -> None:
        self.index = Index()
        self.tails = [0] * (descendants + 1)

    def append(
        self, count: int, object: ObjectId, offset: int, length: int, at: Milliseconds
    ) -> int:
        tails = self.tails
        first = tails[0]
        self.index.append(first, count, object, offset, length, at)
        for log in range(len(tails)):
            tails[log] += count
        return first


def records_in(logs: Iterable[NaiveLog]) -> int:
    return sum(log.index.records for log in logs)
