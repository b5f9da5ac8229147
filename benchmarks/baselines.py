"""What the paper compares Bolt with, over the same structures (AgileLog, 6): each is what Bolt is
without one of its techniques.
"""

from array import array

from anabranch.core.bolt.logs.index import COLUMNS, Index
from anabranch.core.bolt.logs.tails import LazyTailTree, Tail
from anabranch.core.types import ObjectId

_OBJECT = ObjectId(1 << 40)


def copy_metadata(parent: Index) -> Index:
    """BoltMetaCpy: a fork copies its parent's index, so that look-ups need no parent."""
    copy = Index()
    copy.forgotten = parent.forgotten
    for column in COLUMNS:
        setattr(copy, column, getattr(parent, column)[:])
    return copy


class NaiveForks:
    """BoltNaiveCF: whatever is appended to the root is entered in every fork's index too."""

    def __init__(self, forks: int) -> None:
        self._root = Index()
        self._forks = [Index() for _ in range(forks)]
        self.tail = 0
        self.tails = array("q", bytes(8 * forks))

    def append(self, records: int) -> None:
        first, tails = self.tail, self.tails
        self._root.append(first, records, _OBJECT, 0, 4_096, 0)
        self.tail = first + records
        for turn, fork in enumerate(self._forks):
            fork.append(tails[turn], records, _OBJECT, 0, 4_096, 0)
            tails[turn] += records


class EagerTails:
    """Bolt-ET: entries are where they belong, but every fork's tail moves with its parent's."""

    def __init__(self, forks: int) -> None:
        self._root = Index()
        self.tail = 0
        self.tails = [0] * forks

    def append(self, records: int) -> None:
        self._root.append(self.tail, records, _OBJECT, 0, 4_096, 0)
        self.tail += records
        tails = self.tails
        for turn in range(len(tails)):
            tails[turn] += records


class LazyTails:
    """Bolt: one root, its forks, one number that changes."""

    def __init__(self, forks: int) -> None:
        self._root = Index()
        self._tails = LazyTailTree()
        self._place: Tail = self._tails.root(0)
        self._forks = [self._tails.fork(self._place) for _ in range(forks)]

    def append(self, records: int) -> None:
        first = self._tails.append(self._place, records)
        self._root.append(first, records, _OBJECT, 0, 4_096, 0)
