"""The Euler tour of an inheritance tree in a balanced tree with lazy range add (AgileLog, 5.5.2).

A tour lists the logs of one inheritance tree as a depth-first walk enters and leaves them, so that
every subtree is one contiguous range. It is kept in a treap: ordered by place in the tour, and by
priority from the top down. The number of a mark is its own value plus the `lazy` of every mark from
itself up to the top. Nothing is ever pushed down: a subtree that moves changes its own `lazy` by
what it gains or loses above itself.
"""

from collections.abc import Iterator

# Above every other mark's: a root's mark is the first of its tour, and on top of it.
PRIORITY_OF_ROOT = 1 << 60
# Makes the number of a removed mark negative, so that its use fails at once.
_GONE = -(1 << 200)


class Mark:
    """One place in a tour: where the walk enters a log, or leaves it.

    Only a log with forks has an exit mark: until then its enter mark is its whole range. A root has
    none either: its range is the tour.
    """

    __slots__ = ("exit", "lazy", "left", "priority", "right", "up", "value")

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.value = 0
        self.lazy = 0
        self.up: Mark | None = None
        self.left: Mark | None = None
        self.right: Mark | None = None
        self.exit: Mark | None = None


def number(mark: Mark) -> int:
    """What has been added to this mark, through all the ranges that held it."""
    total = mark.value + mark.lazy
    up = mark.up
    while up is not None:
        total += up.lazy
        up = up.up
    assert total >= 0, "this log was cut out of its tour, or absorbed into its parent"
    return total


def add_between(first: Mark, last: Mark, amount: int) -> None:
    """Add to every mark from `first` to `last`, both included.

    Climbs from both ends to where they meet. Priorities grow on the way up, so it is always the
    lower of the two that has to climb. A mark inside the range, and what hangs from it further
    inside, are added to when they are left behind.
    """
    first_inside = last_inside = True
    while first is not last:
        if first.priority < last.priority:
            if first_inside:
                first.value += amount
                if (inner := first.right) is not None:
                    inner.lazy += amount
            up = first.up
            assert up is not None
            first_inside = up.left is first
            first = up
        else:
            if last_inside:
                last.value += amount
                if (inner := last.left) is not None:
                    inner.lazy += amount
            up = last.up
            assert up is not None
            last_inside = up.right is last
            last = up
    first.value += amount


def insert_after(mark: Mark, new: Mark) -> None:
    """Put `new` right behind `mark`, with the number that `mark` has."""
    if new.priority > mark.priority:
        _insert_above(mark, new)
        return
    value, up, below = mark.value, mark, mark.right
    if below is None or below.priority < new.priority:
        mark.right = new
    else:
        while below is not None and below.priority > new.priority:
            value -= below.lazy
            up, below = below, below.left
        up.left = new
    # Everything under this place comes later in the tour.
    new.value, new.up, new.right = value, up, below
    if below is not None:
        below.up = new


def _insert_above(mark: Mark, new: Mark) -> None:
    """Climb past the marks of lower priority, gathering them on the left and the right of `new`."""
    left, right, value, priority = mark, mark.right, mark.value + mark.lazy, new.priority
    mark.right = None
    if right is not None:
        right.lazy += mark.lazy
    climbed, up = mark, mark.up
    assert up is not None
    while up.priority < priority:
        lazy = up.lazy
        value += lazy
        if up.left is climbed:
            up.left = right
            if right is not None:
                right.up = up
            right = up
            left.lazy += lazy
        else:
            up.right = left
            left.up = up
            left = up
            if right is not None:
                right.lazy += lazy
        climbed, up = up, up.up
        assert up is not None
    _hang(up, climbed, new)
    new.value, new.left, new.right = value, left, right
    left.up = new
    if right is not None:
        right.up = new


def excise(first: Mark, last: Mark) -> None:
    """Take the marks from `first` to `last` out of the tour for good, and close the gap."""
    meeting = _meeting(first, last)
    up = meeting.up
    assert up is not None, "a root is only removed with its whole tour"
    before, after = _part_before(first, meeting), _part_after(last, meeting)
    _hang(up, meeting, _join(before, after))
    forget(meeting)


def _meeting(first: Mark, last: Mark) -> Mark:
    """The mark where the ways up from two marks meet."""
    while first is not last:
        if first.priority < last.priority:
            assert first.up is not None
            first = first.up
        else:
            assert last.up is not None
            last = last.up
    return first


def _part_before(first: Mark, meeting: Mark) -> Mark | None:
    """Cut what comes before `first` off the subtree of `meeting`, and return it as one piece."""
    mark, piece, inner = first, first.left, None
    inside = True
    while True:
        if inside:
            mark.left, inner = inner, mark
            if piece is not None:
                piece.lazy += mark.lazy
        else:
            mark.right = piece
            if piece is not None:
                piece.up = mark
            piece = mark
        up = mark.up
        if mark is meeting or up is None:
            return piece
        inside = up.left is mark
        mark = up


def _part_after(last: Mark, meeting: Mark) -> Mark | None:
    """The mirror image of `_part_before`."""
    mark, piece, inner = last, last.right, None
    inside = True
    while True:
        if inside:
            mark.right, inner = inner, mark
            if piece is not None:
                piece.lazy += mark.lazy
        else:
            mark.left = piece
            if piece is not None:
                piece.up = mark
            piece = mark
        up = mark.up
        if mark is meeting or up is None:
            return piece
        inside = up.right is mark
        mark = up


def _join(before: Mark | None, after: Mark | None) -> Mark | None:
    """Make one piece of two that hang in the same place, one behind the other in the tour."""
    if before is None or after is None:
        return before or after
    behind = before.priority > after.priority
    mark, rest = (before, after) if behind else (after, before)
    top = mark
    while True:
        # From here on `rest` hangs somewhere below `mark`, so it must not gain what `mark` adds.
        rest.lazy -= mark.lazy
        child = mark.right if behind else mark.left
        if child is not None and child.priority > rest.priority:
            mark = child
            continue
        if behind:
            mark.right = rest
        else:
            mark.left = rest
        rest.up = mark
        if child is None:
            return top
        mark, rest, behind = rest, child, not behind


def _hang(up: Mark, old: Mark, new: Mark | None) -> None:
    """Give `new` the place that `old` has under `up`."""
    if up.left is old:
        up.left = new
    else:
        assert up.right is old
        up.right = new
    if new is not None:
        new.up = up


def forget(top: Mark) -> None:
    """Take a removed piece apart: its memory is free at once, and its marks answer no more."""
    heap = [top]
    while heap:
        mark = heap.pop()
        if mark.left is not None:
            heap.append(mark.left)
        if mark.right is not None:
            heap.append(mark.right)
        mark.up = mark.left = mark.right = mark.exit = None
        mark.value, mark.lazy = 0, _GONE


def next_mark(mark: Mark) -> Mark | None:
    """The mark behind this one in the tour; none behind the last."""
    at = mark.right
    if at is not None:
        while at.left is not None:
            at = at.left
        return at
    up = mark.up
    while up is not None and up.right is mark:
        mark, up = up, up.up
    return up


def mark_before(mark: Mark) -> Mark | None:
    """The mark before this one in the tour; none before the first."""
    at = mark.left
    if at is not None:
        while at.right is not None:
            at = at.right
        return at
    up = mark.up
    while up is not None and up.left is mark:
        mark, up = up, up.up
    return up


def walk(root: Mark) -> Iterator[Mark]:
    """A tree's marks in the order of the tour."""
    mark: Mark | None = root
    while mark is not None:
        yield mark
        mark = next_mark(mark)


def check_tour(root: Mark) -> int:
    """Check all that this file relies on, for a whole tree; returns the number of logs in it."""
    assert root.up is root.left is root.exit is None
    assert (root.priority, root.value) == (PRIORITY_OF_ROOT, 0)
    heap = [root]
    while heap:
        mark = heap.pop()
        for child in (mark.left, mark.right):
            if child is not None:
                assert child.up is mark, "a child that points elsewhere"
                assert child.priority < mark.priority, "a child above its parent"
                heap.append(child)
    # Only a tree with good links can be walked in the order of the tour.
    logs, previous, open_exits = 0, root, list[Mark]()
    for mark in walk(root):
        if open_exits and open_exits[-1] is mark:
            assert previous.exit is not mark, "an exit mark for a log without forks"
            assert mark.exit is None
            open_exits.pop()
        else:
            logs += 1
            if mark.exit is not None:
                open_exits.append(mark.exit)
        previous = mark
    assert not open_exits, "an exit mark is missing, or two ranges cross"
    return logs
