"""A window's predetermined cuts, and where they put each record: arithmetic (Belfast, 3.2, 4.4).

A window is so many rounds. In each round every seat gives its quota, in the order of the seats;
that order fixes every position of the window. Seats are in groups: cut i ends with group i mod g
(4.7). So a round has as many cuts as there are groups, and a cut waits for one group alone; where
shards aren't staggered, there is one group, and a cut is a round.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from functools import cached_property

import msgspec

from anabranch.core.types import LocalSequence, Position

ShardId = int
"""Given by the sequencing group, never reused by another shard."""


class Mode(IntEnum):
    STEADY = 0
    BURSTY = 1
    """Opened by earlier releases, where bursts came often. It is cut like a steady window."""
    FREE_WILL = 2
    """Cuts follow reports: nothing is predetermined. By configuration alone; earlier releases
    opened such windows by themselves, and logs may hold some.
    """


class Run(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """So many positions in a row."""

    first: Position
    count: int

    @property
    def end(self) -> Position:
        return self.first + self.count


def extend(runs: list[Run], more: Iterable[Run]) -> None:
    """Runs that join are one."""
    for run in more:
        if runs and runs[-1].end == run.first:
            runs[-1] = Run(runs[-1].first, runs[-1].count + run.count)
        else:
            runs.append(run)


class Seat(msgspec.Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """A shard's part in a window."""

    shard: ShardId
    quota: int
    group: int
    base: LocalSequence
    """The shard's first record in this window."""
    offset: int
    """Records of a round that come before this seat's."""


class Window(msgspec.Struct, frozen=True, kw_only=True, array_like=True, dict=True):
    """Seats are in the order of their groups, and of their shards within."""

    number: int
    mode: Mode
    start: Position
    rounds: int
    groups: int
    seats: tuple[Seat, ...]

    @cached_property
    def round_records(self) -> int:
        return sum(seat.quota for seat in self.seats)

    @cached_property
    def by_shard(self) -> dict[ShardId, Seat]:
        return {seat.shard: seat for seat in self.seats}

    @cached_property
    def _group_offsets(self) -> tuple[int, ...]:
        """Records of a round in the groups before each."""
        return tuple(
            sum(seat.quota for seat in self.seats if seat.group < group)
            for group in range(self.groups)
        )

    @property
    def foreseen(self) -> bool:
        """Is its order predetermined?"""
        return self.mode is not Mode.FREE_WILL

    @property
    def cuts(self) -> int:
        return self.rounds * self.groups

    @property
    def end(self) -> Position:
        """Where the next window starts (F12)."""
        assert self.foreseen
        return self.start + self.rounds * self.round_records

    def position(self, seat: Seat, nth: int) -> Position:
        """Of the seat's nth record in this window, from 0."""
        rounds, rest = divmod(nth, seat.quota)
        return self.start + rounds * self.round_records + seat.offset + rest

    def runs(self, seat: Seat, low: int, high: int) -> Iterator[Run]:
        """Where the seat's records from the `low`th up to the `high`th go."""
        while low < high:
            count = min(seat.quota - low % seat.quota, high - low)
            yield Run(self.position(seat, low), count)
            low += count

    def records_below(self, seat: Seat, position: Position) -> int:
        """How many of the seat's records lie below this position."""
        rounds, rest = divmod(max(0, position - self.start), max(1, self.round_records))
        if rounds >= self.rounds:
            return self.rounds * seat.quota
        return rounds * seat.quota + min(max(0, rest - seat.offset), seat.quota)

    def covered(self, cut: int) -> Position:
        """Where the first `cut` cuts end."""
        assert cut >= 0, "cuts are counted from 0"
        rounds, groups = divmod(cut, self.groups)
        before = self._group_offsets[groups] if groups else 0
        return self.start + rounds * self.round_records + before

    def rounds_in(self, seat: Seat, cut: int) -> int:
        """The seat's rounds that the first `cut` cuts hold."""
        assert cut >= 0, "cuts are counted from 0"
        rounds, groups = divmod(cut, self.groups)
        return rounds + (seat.group < groups)

    def reach(self, seat: Seat, rounds: int) -> int:
        """The cuts that need no more of this seat than so many rounds."""
        assert rounds >= 0, "rounds are counted from 0"
        return (
            min(rounds * self.groups + seat.group, self.cuts)
            if rounds < self.rounds
            else (self.cuts)
        )


def seats(
    quotas: Sequence[tuple[ShardId, int]], groups: int, bases: dict[ShardId, LocalSequence]
) -> tuple[Seat, ...]:
    """Shards, in their order, take their seats: by turns in the groups."""
    assert groups > 0, "a round has one cut at least"
    assert all(quota > 0 for _, quota in quotas), "a shard without a quota has no seat"
    placed = sorted((nth % groups, shard, quota) for nth, (shard, quota) in enumerate(quotas))
    seated: list[Seat] = []
    offset = 0
    for group, shard, quota in placed:
        seated.append(Seat(shard=shard, quota=quota, group=group, base=bases[shard], offset=offset))
        offset += quota
    return tuple(seated)
