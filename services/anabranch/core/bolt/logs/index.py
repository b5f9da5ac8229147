"""The hierarchical log index of one log: extents of its local appends, with cumulative counts
(AgileLog, 5.4, 5.5.1).

Only records that were appended to this very log are here; what it inherited is found through its
parent (see `lineage`). A row is an extent, never a record, and the columns are arrays: 44 bytes
an extent.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from anabranch.core.bolt.logs.origins import HERE, Origins
from anabranch.core.types import NEVER, LogId, Milliseconds, ObjectId, Position

LONG = 4_096
DROPPED_PARTS = 16
"""Of a long index at least one part in so many is dropped at once."""


class Index:
    """Extents in order of position. `upto[i]` counts local records up to and including extent
    `i`.
    """

    __slots__ = (
        "at",
        "first",
        "forgotten",
        "length",
        "object",
        "offset",
        "origins",
        "skips",
        "sum",
        "upto",
    )

    def __init__(self) -> None:
        self.first = array("q")
        self.upto = array("q")
        self.object = array("Q")
        self.offset = array("I")
        self.length = array("I")
        self.at = array("q")
        self.sum = array("I")
        """The set sum of each extent's batches; 0 where it isn't known: nobody said it before
        format 10, and nobody can of a part of an extent, which a severed fork took over.
        """
        self.forgotten = 0
        """Local records that were trimmed away: what the count before the first extent is."""
        self.skips: dict[Position, int] = {}
        """By first position, of those few extents that leave out records at their beginning: how
        many. Only what a severed fork took over has such.
        """
        self.origins = Origins()

    def __len__(self) -> int:
        return len(self.first)

    @property
    def records(self) -> int:
        """Local records ever appended, trimmed ones included."""
        return self.upto[-1] if self.upto else self.forgotten

    def append(
        self,
        first: Position,
        count: int,
        object: ObjectId,
        offset: int,
        length: int,
        at: Milliseconds,
        total: int = 0,
        skip: int = 0,
    ) -> None:
        upto = self.upto
        self.first.append(first)
        upto.append((upto[-1] if upto else self.forgotten) + count)
        self.object.append(object)
        self.offset.append(offset)
        self.length.append(length)
        self.at.append(at)
        self.sum.append(total)
        if skip:
            self.skips[first] = skip

    def skip(self, extent: int) -> int:
        """Records in the extent's bytes that lie before its own."""
        return self.skips.get(self.first[extent], 0) if self.skips else 0

    def before(self, extent: int) -> int:
        """Local records before this extent."""
        return self.upto[extent - 1] if extent else self.forgotten

    def end(self, extent: int) -> Position:
        """The position after this extent's last record."""
        return self.first[extent] + self.upto[extent] - self.before(extent)

    def count(self, extent: int) -> int:
        return self.upto[extent] - self.before(extent)

    def inherited_before(self, extent: int) -> int:
        """Records from the parent before this extent; never falls from one extent to the next."""
        return self.first[extent] - self.before(extent)

    def lifted(self, position: Position) -> Position:
        """Where the parent's record of this position is in this log."""
        return position + self.before(self.inherited_upto(position))

    def inherited_upto(self, position: Position) -> int:
        """How many of its own extents come before its parent's record of this position."""
        assert position >= 0, "positions begin at 0"
        return bisect_right(range(len(self)), position, key=self.inherited_before)

    def at_or_before(self, position: Position) -> int:
        """The last extent that starts at or before this position, -1 if none does."""
        return bisect_right(self.first, position) - 1

    def count_before(self, position: Position) -> int:
        """Local records at positions below this one: what look-up subtracts (AgileLog, 5.5.1)."""
        extent = bisect_left(self.first, position) - 1
        if extent < 0:
            return self.forgotten
        return min(self.upto[extent], self.before(extent) + position - self.first[extent])

    def run_end(self, extent: int) -> int:
        """The extent after the last one that follows this one without a record of the parent
        between.
        """
        assert 0 <= extent < len(self.first), "no such extent"
        inherited = self.inherited_before(extent)
        last = len(self.first) - 1
        if self.inherited_before(last) == inherited:
            return last + 1
        return bisect_right(range(len(self.first)), inherited, extent, key=self.inherited_before)

    def drop_below(self, position: Position) -> tuple[Sequence[int], Sequence[int]]:
        """Forget extents that lie wholly below this position; for each the object it was in, and
        its length. A few of very many wait for more: to drop them moves all the others.
        """
        assert position >= 0, "positions begin at 0"
        extents = self.at_or_before(position - 1) + 1
        if extents and self.end(extents - 1) > position:
            extents -= 1
        if extents < len(self) // LONG * (LONG // DROPPED_PARTS):
            return (), ()
        return self._drop(extents)

    def copy_from(self, extent: int) -> "Index":
        """The extents from this one on, as an index of their own."""
        assert 0 <= extent <= len(self), "no such extent"
        rest = Index()
        rest.forgotten = self.before(extent)
        for column in COLUMNS:
            setattr(rest, column, getattr(self, column)[extent:])
        if rest.first:
            rest.origins = Origins()
            for noted in self.origins.within(rest.first[0], NEVER):
                rest.origins.note(*noted)
        return rest

    def replace_from(self, extent: int, rows: "Index") -> None:
        """Put another index's extents in the place of all from this one on.

        In place: to shrink a column and let it grow again could move all of a long log.
        """
        assert 0 <= extent <= len(self), "no such extent"
        assert not rows.forgotten
        base = self.before(extent)
        if rows.first:
            self.origins.cut(rows.first[0])
            for noted in rows.origins.within(rows.first[0], NEVER):
                self.origins.note(*noted)
        self.upto[extent:] = (
            array("q", [count + base for count in rows.upto]) if base else rows.upto
        )
        for column in COLUMNS:
            if column != "upto":
                getattr(self, column)[extent:] = getattr(rows, column)
        self.skips.update(rows.skips)

    def replace(self, extent: int, end: int, rows: "Index") -> None:
        """Put other extents of the very same records in the place of those up to `end`."""
        assert 0 <= extent < end <= len(self), "no such extents"
        assert rows.forgotten == self.before(extent)
        assert rows.first[0] == self.first[extent]
        assert rows.records == self.upto[end - 1]
        for column in COLUMNS:
            getattr(self, column)[extent:end] = getattr(rows, column)

    def thresholds(self) -> list[Position]:
        """For each extent, the parent's position that it comes right before."""
        counted = [self.forgotten, *self.upto]
        return [first - before for first, before in zip(self.first, counted, strict=False)]

    def counts(self) -> list[int]:
        """Records of each extent."""
        counted = [self.forgotten, *self.upto]
        return [upto - before for before, upto in zip(counted, self.upto, strict=False)]

    def _drop(self, extents: int) -> tuple[Sequence[int], Sequence[int]]:
        if not extents:
            return (), ()
        assert extents <= len(self), "no such extents"
        self.forgotten = self.upto[extents - 1]
        gone = self.object[:extents], self.length[:extents]
        for column in COLUMNS:
            del getattr(self, column)[:extents]
        if self.skips:
            low = self.first[0] if self.first else NEVER
            self.skips = {first: skip for first, skip in self.skips.items() if first >= low}
        if len(self.origins):
            self.origins.drop_below(self.first[0] if self.first else NEVER)
        return gone


COLUMNS = ("first", "upto", "object", "offset", "length", "at", "sum")


def interleave(parent: Index, child: Index, child_id: LogId | None = None) -> Index:
    """Two logs' extents after the fork point as one log's, in the child's numbering (AgileLog,
    5.6; spec 7.3).

    The parent's extents move up by the child's records before them; the child's are where they
    should be. Extents never straddle: each was sequenced in one command, so nothing came between
    its records. Without the child's id no origins are noted.
    """
    assert not child.forgotten, "a promotable fork keeps all that it adds"
    thresholds, before = child.thresholds(), [0, *child.upto]
    firsts = [first + before[bisect_right(thresholds, first)] for first in parent.first]
    firsts.extend(child.first)
    order = sorted(range(len(firsts)), key=firsts.__getitem__)
    merged = Index()
    merged.first.extend(map(firsts.__getitem__, order))
    assert len(order) == len(parent) + len(child), "every extent has its place"
    merged.upto.extend(accumulate(map([*parent.counts(), *child.counts()].__getitem__, order)))
    for column in ("object", "offset", "length", "at", "sum"):
        both = getattr(parent, column) + getattr(child, column)
        getattr(merged, column).extend(map(both.__getitem__, order))
    if child_id is not None and order:
        for turn in order:
            own = turn - len(parent)
            if own < 0:
                _trace(merged, firsts[turn], parent, turn, HERE)
            else:
                _trace(merged, firsts[turn], child, own, child_id)
        merged.origins.note(merged.end(len(merged) - 1), HERE, 0)
    return merged


def _trace(merged: Index, first: Position, source: Index, extent: int, id: LogId) -> None:
    """Note where the records of an extent came from that is another index's."""
    was = source.first[extent]
    moved = first - was
    assert moved >= 0, "a promotion moves records up only"
    if not len(source.origins):
        merged.origins.note(first, id, moved)
        return
    for position, log, shift in source.origins.within(was, source.end(extent)):
        merged.origins.note(position + moved, log or id, shift + moved)
