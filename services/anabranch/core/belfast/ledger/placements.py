"""Where a shard's records are in the log: local sequences to positions and back (Belfast, 3.2).

A row is what windows with the same quotas, one after the other, give a shard. Rows are in order of
both. What lies between two of them that don't join isn't known here, and asked of other replicas.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from anabranch.core.belfast.ledger.windows import Run, Seat, Window, extend
from anabranch.core.types import LocalSequence, Position


class Row(msgspec.Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """`quota` records in a row, then those of other shards up to `stride`, and again."""

    base: LocalSequence
    count: int
    quota: int
    stride: int
    first: Position
    """Of the record at `base`, which begins a round."""

    @property
    def end(self) -> LocalSequence:
        return self.base + self.count

    def position(self, local: LocalSequence) -> Position:
        rounds, rest = divmod(local - self.base, self.quota)
        return self.first + rounds * self.stride + rest

    def below(self, position: Position) -> LocalSequence:
        """Where its records end that lie below this position."""
        assert position >= self.first, "an earlier row holds it"
        rounds, rest = divmod(position - self.first, self.stride)
        return self.base + min(self.count, rounds * self.quota + min(rest, self.quota))

    def runs(self, low: LocalSequence, high: LocalSequence) -> Iterator[Run]:
        if self.quota == self.stride:
            yield Run(self.position(low), high - low)
            return
        while low < high:
            count = min(self.quota - (low - self.base) % self.quota, high - low)
            yield Run(self.position(low), count)
            low += count

    def joins(self, other: "Row") -> "Row | None":
        """Both as one, if the other goes on where this ends, as it began."""
        if other.base != self.end:
            return None
        alone = self.quota == self.stride and other.quota == other.stride
        if alone and other.first == self.first + self.count:
            count = self.count + other.count
            return Row(base=self.base, count=count, quota=1, stride=1, first=self.first)
        if (
            (other.quota, other.stride) == (self.quota, self.stride)
            and self.count % self.quota == 0
            and other.first == self.position(self.end)
        ):
            return replace(self, count=self.count + other.count)
        return None


def row_of(window: Window, seat: Seat, rounds: int) -> Row:
    """What the first so many rounds of a window give a seat."""
    assert 0 <= rounds <= window.rounds, "a window has no more rounds"
    first = window.start + seat.offset
    return Row(
        base=seat.base,
        count=rounds * seat.quota,
        quota=seat.quota,
        stride=window.round_records,
        first=first,
    )


def row_of_run(local: LocalSequence, run: Run) -> Row:
    """What a cut of free will gives a seat."""
    assert run.count > 0, "a cut that gives nothing makes no row"
    return Row(base=local, count=run.count, quota=1, stride=1, first=run.first)


_base = attrgetter("base")
_end = attrgetter("end")
_first = attrgetter("first")


class Placements:
    """Of one shard, from the oldest record that isn't trimmed on."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.floor: LocalSequence = 0
        """Nobody asks for what lies below."""
        self._torn: list[LocalSequence] = []
        """Where rows begin that don't join the one before."""

    @property
    def end(self) -> LocalSequence:
        """Up to where records have their positions."""
        return self.rows[-1].end if self.rows else self.floor

    @property
    def known(self) -> LocalSequence:
        """Up to here all of them are known."""
        hole = self.missing(self.end)
        return self.end if hole is None else hole[0]

    def add(self, row: Row) -> None:
        if row.count == 0:
            return
        if self.rows and row.base != self.end:
            self._torn.append(row.base)
        _append(self.rows, row)

    def cut_back(self, to: LocalSequence) -> int:
        """Say of how many records the positions are void."""
        voided = 0
        while self.rows and self.rows[-1].end > to:
            row = self.rows.pop()
            voided += row.end - max(row.base, to)
            if row.base < to:
                self.rows.append(replace(row, count=to - row.base))
        del self._torn[bisect_left(self._torn, to) :]
        assert self.end <= max(to, self.floor), "positions beyond are void"
        return voided

    def forget(self, below: LocalSequence) -> None:
        assert below >= 0, "sequences begin at 0"
        self.floor = max(self.floor, below)
        del self.rows[: bisect_right(self.rows, self.floor, key=_end)]
        first = self.rows[0].base if self.rows else self.floor
        del self._torn[: bisect_right(self._torn, first)]

    def learn(self, rows: Iterable[Row], upto: LocalSequence) -> None:
        """Another replica says where records below `upto` are: the first of those that aren't known
        here are filled in. However many rows there are already, it takes as long as these do.
        """
        hole = self.missing(upto)
        if hole is None:
            return
        index = bisect_left(self.rows, hole[1], key=_base)
        begin = max(0, index - 1)
        around = self.rows[begin : index + 1]
        before, after = around[: index - begin], around[index - begin :]
        # What isn't asked for any more needn't begin where a row does.
        low = before[-1].end if before else 0
        fresh = (_slice(row, low, hole[1]) for row in rows if row.end > hole[0])
        spliced: list[Row] = []
        torn: list[LocalSequence] = []
        for row in (*before, *(each for each in fresh if each.count > 0), *after):
            if spliced and spliced[-1].end != row.base:
                torn.append(row.base)
            _append(spliced, row)
        self.rows[begin : index + 1] = spliced
        first = bisect_right(self._torn, around[0].base) if around else 0
        last = bisect_right(self._torn, around[-1].base) if around else 0
        self._torn[first:last] = torn

    def missing(self, upto: LocalSequence) -> tuple[LocalSequence, LocalSequence] | None:
        """The first records below `upto` whose positions aren't known."""
        low, high = max(self.floor, self.end), upto
        if self.rows and self.rows[0].base > self.floor:
            low, high = self.floor, min(self.rows[0].base, upto)
        elif self._torn:
            low = self.rows[bisect_left(self.rows, self._torn[0], key=_base) - 1].end
            high = min(self._torn[0], upto)
        return (low, high) if low < high else None

    def part(self, low: LocalSequence, high: LocalSequence, count_max: int) -> list[Row]:
        """The rows that hold what lies between, up to the first that isn't known."""
        assert count_max > 0, "nothing could be told"
        part: list[Row] = []
        for row in self._from(low):
            if row.base > low or row.base >= high or len(part) == count_max:
                break
            part.append(row)
            low = row.end
        return part

    def position(self, local: LocalSequence) -> Position | None:
        index = bisect_right(self.rows, local, key=_base) - 1
        if index < 0 or self.rows[index].end <= local:
            return None
        return self.rows[index].position(local)

    def below(self, position: Position) -> LocalSequence:
        """Where the records end that lie below this position; at most where a hole begins."""
        index = bisect_left(self.rows, position, key=_first) - 1
        if index >= 0:
            return self.rows[index].below(position)
        return min(self.rows[0].base, self.floor) if self.rows else self.floor

    def runs(self, low: LocalSequence, high: LocalSequence) -> list[Run]:
        """Where these records are, in their order."""
        runs: list[Run] = []
        for row in self._from(low):
            if low >= high:
                break
            assert row.base <= low, "only asked about records that are placed"
            upto = min(row.end, high)
            extend(runs, row.runs(low, upto))
            low = upto
        assert low >= high, "only asked about records that are placed"
        return runs

    def _from(self, local: LocalSequence) -> Iterator[Row]:
        """Rows from the one that holds this record on."""
        for index in range(bisect_right(self.rows, local, key=_end), len(self.rows)):
            yield self.rows[index]


def _append(rows: list[Row], row: Row) -> None:
    joined = None
    if rows:
        last = rows[-1]
        assert row.base >= last.end, "a record has one position"
        assert row.first > last.position(last.end - 1)
        joined = last.joins(row)
    if joined is None:
        rows.append(row)
    else:
        rows[-1] = joined


def _slice(row: Row, low: LocalSequence, high: LocalSequence) -> Row:
    """What of it lies between."""
    assert low < high, "a hole has at least one record"
    low, high = max(low, row.base), min(high, row.end)
    if low == row.base:
        return replace(row, count=high - low)
    assert (low - row.base) % row.quota == 0, "what isn't known begins with a round"
    return replace(row, base=low, count=high - low, first=row.position(low))
