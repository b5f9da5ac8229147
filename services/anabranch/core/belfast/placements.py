"""Where a shard's records are in the log: local sequences to positions and back (Belfast, 3.2).

A row is what windows with the same quotas, one after the other, give a shard. Rows are in order of
both. What lies between two of them that don't join isn't known here, and asked of other replicas.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from anabranch.core.belfast.windows import LocalSequence, Run, Seat, Window
from anabranch.core.types import Position


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
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
            return Row(self.base, count, 1, 1, self.first)
        if (
            (other.quota, other.stride) == (self.quota, self.stride)
            and self.count % self.quota == 0
            and other.first == self.position(self.end)
        ):
            return replace(self, count=self.count + other.count)
        return None


def row_of(window: Window, seat: Seat, rounds: int) -> Row:
    """What the first so many rounds of a window give a seat."""
    first = window.start + seat.offset
    return Row(seat.base, rounds * seat.quota, seat.quota, window.round_records, first)


def row_of_run(local: LocalSequence, run: Run) -> Row:
    """What a cut of free will gives a seat."""
    return Row(local, run.count, 1, 1, run.first)


_base = attrgetter("base")
_end = attrgetter("end")
_first = attrgetter("first")


class Placements:
    """Of one shard, from the oldest record that isn't trimmed on."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.floor: LocalSequence = 0
        """Nobody asks for what lies below."""
        self._joined = True
        """No row is missing between others."""

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
        assert not self.rows or row.base >= self.end, "a record has one position"
        assert not self.rows or row.first > self.rows[-1].position(self.rows[-1].end - 1)
        self._joined = self._joined and (not self.rows or self.rows[-1].end == row.base)
        joined = self.rows[-1].joins(row) if self.rows else None
        if joined is None:
            self.rows.append(row)
        else:
            self.rows[-1] = joined

    def cut_back(self, to: LocalSequence) -> int:
        """Say of how many records the positions are void."""
        voided = 0
        while self.rows and self.rows[-1].end > to:
            row = self.rows.pop()
            voided += row.end - max(row.base, to)
            if row.base < to:
                self.rows.append(replace(row, count=to - row.base))
        return voided

    def forget(self, below: LocalSequence) -> None:
        self.floor = max(self.floor, below)
        gone = bisect_right(self.rows, self.floor, key=_end)
        del self.rows[:gone]

    def learn(self, rows: Iterable[Row], upto: LocalSequence) -> None:
        """Another replica says where records below `upto` are; what was known already stays."""
        mine, self.rows, self._joined = self.rows, [], True
        clipped = [replace(row, count=min(row.end, upto) - row.base) for row in rows]
        for row in sorted([*mine, *_around(mine, clipped)], key=_base):
            self.add(row)

    def missing(self, upto: LocalSequence) -> tuple[LocalSequence, LocalSequence] | None:
        """The first records below `upto` whose positions aren't known."""
        low, high = self.floor, upto
        if self._joined and self.rows and self.rows[0].base <= low:
            low = max(low, self.end)
        else:
            for row in self.rows:
                if row.base > low:
                    high = min(row.base, upto)
                    break
                low = max(low, row.end)
        return (low, high) if low < high else None

    def part(self, low: LocalSequence, high: LocalSequence, count_max: int) -> list[Row]:
        """The rows that hold what lies between, up to the first that isn't known."""
        part: list[Row] = []
        for row in self.rows[bisect_right(self.rows, low, key=_end) :]:
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
        for row in self.rows[bisect_right(self.rows, low, key=_end) :]:
            if low >= high:
                break
            assert row.base <= low, "only asked about records that are placed"
            upto = min(row.end, high)
            for run in row.runs(low, upto):
                if runs and runs[-1].end == run.first:
                    runs[-1] = Run(runs[-1].first, runs[-1].count + run.count)
                else:
                    runs.append(run)
            low = upto
        assert low >= high, "only asked about records that are placed"
        return runs


def _around(known: list[Row], rows: Iterable[Row]) -> Iterator[Row]:
    """Of these rows what isn't in those known."""
    for row in rows:
        low = row.base
        for mine in known:
            if mine.end <= low or mine.base >= row.end:
                continue
            if low < mine.base:
                yield _slice(row, low, mine.base)
            low = max(low, mine.end)
        if low < row.end:
            yield _slice(row, low, row.end)


def _slice(row: Row, low: LocalSequence, high: LocalSequence) -> Row:
    assert (low - row.base) % row.quota == 0, "what isn't known begins with a round"
    return replace(row, base=low, count=high - low, first=row.position(low))
