"""The lazy tail tree: the tail and the block count of every log (AgileLog, 5.5.2 and 5.6).

Logically a forest of inheritance trees of tails; physically one tour for each tree (see `tour`).
"""

from collections.abc import Iterable
from typing import NewType

from anabranch.core.bolt.logs.euler_tour import (
    PRIORITY_OF_ROOT,
    Mark,
    add_between,
    check_tour,
    excise,
    forget,
    insert_after,
    mark_before,
    next_mark,
    number,
)

Tail = NewType("Tail", Mark)
"""One log's place in the forest of tours, its enter mark: kept by the log, opaque to it."""

# A mark's number carries both fields, the tail in the low bits and the block count above, so that
# every climb and every lazy add serves the two at once.
_BLOCK_SHIFT = 60
_BLOCK = 1 << _BLOCK_SHIFT
_TAIL_MASK = _BLOCK - 1

# A generator of full period modulo 2^60: no two marks of a tree have the same priority, and equal
# histories give equal trees.
_PRIORITY_FACTOR = 6364136223846793005
_PRIORITY_STEP = 1442695040888963407
_PRIORITY_MASK = PRIORITY_OF_ROOT - 1


class LazyTailTree:
    """Every log's tail, in O(log n) however deep or wide the forks; a root's append in O(1)."""

    __slots__ = ("_priority",)

    def __init__(self) -> None:
        self._priority = 0

    def root(self, tail: int) -> Tail:
        """A tree of one log: a root, or a severed fork."""
        assert 0 <= tail <= _TAIL_MASK
        mark = Mark(PRIORITY_OF_ROOT)
        mark.lazy = tail
        return Tail(mark)

    def fork(self, parent: Tail, tail: int | None = None, block: int | None = None) -> Tail:
        """A continuous fork: it starts as its parent stands, unless a snapshot says otherwise."""
        if parent.exit is None and parent.up is not None:
            parent.exit = self._mark()
            insert_after(parent, parent.exit)
        child = self._mark()
        insert_after(parent, child)
        if tail is not None:
            child.value += tail - self.tail(parent)
        if block is not None:
            child.value += (block - self.block(parent)) * _BLOCK
        return Tail(child)

    def tail(self, log: Tail) -> int:
        return number(log) & _TAIL_MASK

    def block(self, log: Tail) -> int:
        """How many ancestors with an undecided promotable fork hold this log up (spec 6.2)."""
        return number(log) >> _BLOCK_SHIFT

    def append(self, log: Tail, count: int) -> int:
        """Add `count` records to a log and all that inherits from it; returns where they start."""
        assert count > 0
        if log.up is None:
            first = log.lazy
            assert first >= 0, "this log was squashed, or promoted"
            log.lazy = first + count
            return first
        first = number(log) & _TAIL_MASK
        last = log.exit
        if last is None:
            log.value += count
        else:
            add_between(log, last, count)
        return first

    def add(self, log: Tail, count: int) -> None:
        """Move the tails of this log and of everything that inherits from it."""
        _add(log, count)

    def block_below(self, parent: Tail, delta: int, except_children: Iterable[Tail]) -> None:
        """Block (or unblock) what inherits from `parent`, but not through these children."""
        assert delta in (-1, 1), "one promotable fork comes or goes at a time"
        amount = delta * _BLOCK
        _add(parent, amount)
        if parent.up is None:
            parent.lazy -= amount
            if parent.right is not None:
                parent.right.lazy += amount
        else:
            parent.value -= amount
        for child in except_children:
            _add(child, -amount)

    def cut(self, log: Tail) -> None:
        """Remove a squashed log and all that continuously inherits from it."""
        if log.up is None:
            forget(log)
            return
        last = log.exit or log
        parent, closing = mark_before(log), next_mark(last)
        excise(log, last)
        if parent is not None and closing is not None and parent.exit is closing:
            parent.exit = None
            excise(closing, closing)

    def absorb(self, parent: Tail, child: Tail) -> None:
        """Promote `child` into `parent`: its forks and its records become the parent's.

        The parent's other forks took no append since the fork point, so the promoted records come
        after the last of their own: their tails move, and nothing else (spec 7, step 4).
        """
        assert parent is not child
        records = self.tail(child) - self.tail(parent)
        assert records >= 0
        _add(parent, records)
        _add(child, -records)
        last = child.exit
        excise(child, child)
        if last is not None:
            excise(last, last)
        elif parent.exit is not None and next_mark(parent) is parent.exit:
            last, parent.exit = parent.exit, None
            excise(last, last)

    def check(self, log: Tail) -> int:
        """Check the whole tour that holds this log; returns how many logs are in it."""
        top: Mark = log
        while top.up is not None:
            top = top.up
        return check_tour(top)

    def _mark(self) -> Mark:
        self._priority = (self._priority * _PRIORITY_FACTOR + _PRIORITY_STEP) & _PRIORITY_MASK
        return Mark(self._priority)


def _add(log: Tail, amount: int) -> None:
    """Add to the subtree of a log: the whole tour, one mark if nothing forked it, or a range."""
    if log.up is None:
        log.lazy += amount
    elif log.exit is None:
        log.value += amount
    else:
        add_between(log, log.exit, amount)
