"""How far the shards are, and the actual cuts that follow from it (Belfast, 4.1, 4.7).

A cut is made when every shard that it waits for has reported its rounds (F4). A report costs no
look at other shards, unless it is the last that a cut has waited for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from anabranch.core.belfast.ledger.decisions import CutFreely, CutTo
from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.ledger.windows import ShardId, Window
from anabranch.core.belfast.protocol.letters import Report
from anabranch.core.belfast.sequencer.plan import Plan
from anabranch.core.types import LocalSequence


@dataclass(slots=True)
class Mark:
    """How far a shard has reported."""

    window: int = -1
    rounds: int = 0
    done: int = 0
    """Rounds, counted over all windows since this lead began."""
    durable: LocalSequence = 0
    durable_in: int = -1
    """Said in this window. A shard that has left or failed cuts its log back, and may be back in a
    later window: what it said in an earlier one holds no more.
    """

    def hold(self, report: Report) -> None:
        if report.window > self.durable_in:
            self.durable, self.durable_in = report.durable, report.window
        elif report.window == self.durable_in:
            self.durable = max(self.durable, report.durable)


class _Sat(NamedTuple):
    """What a report claims: rounds in all, and what is durable then at least (F3)."""

    done: int
    durable: LocalSequence


class Progress:
    """Rounds are counted on from window to window: `furthest` is comparable with each mark."""

    def __init__(self, plan: Plan) -> None:
        self.marks: dict[ShardId, Mark] = {}
        self.furthest = 0
        self._plan = plan
        self._origins: dict[int, int] = {}
        """Rounds before each published window."""
        self._window: Window | None = None
        self._cut = 0
        self._reaches: dict[ShardId, int] = {}
        self._lowest = 0
        self._holders = 0
        """Shards that reach no further than the lowest."""
        self.rounds = 0
        """Of all windows that are published, since this lead began."""
        for window in plan.ledger.windows:
            self.opened(window)

    def opened(self, window: Window) -> None:
        """It is the last one that is published."""
        assert window.number not in self._origins, "a window is opened once"
        self._origins[window.number] = self.rounds
        self.rounds += window.rounds if window.foreseen else 0
        if self._window is None:
            self._track()

    def forget(self, shards: tuple[ShardId, ...]) -> None:
        """They have failed: what they reported beyond the cuts is void."""
        for shard in shards:
            self.marks.pop(shard, None)
        self._track()

    def take(self, report: Report) -> bool:
        """Does it tell of rounds that its shard has not reported before?"""
        mark = self.marks.get(report.shard)
        if mark is None:
            mark = self.marks[report.shard] = Mark()
        window = self._plan.ledger.window(report.window)
        if window is None:
            return False
        sat = self._sat(window, report.shard, report.rounds)
        if sat is None or report.durable < sat.durable:
            self._plan.counters.nonsense += 1
            return False
        mark.hold(report)
        if (report.window, report.rounds) <= (mark.window, mark.rounds):
            return False
        before = mark.done
        mark.window, mark.rounds, mark.done = report.window, report.rounds, sat.done
        if report.shard in self._reaches:
            self.furthest = max(self.furthest, sat.done)
        self._reached(report.shard)
        return sat.done > before

    def is_at_end(self, shard: ShardId) -> bool:
        """Has it reported all that is published?"""
        windows, mark = self._plan.ledger.windows, self.marks.get(shard)
        if not windows or mark is None or mark.window < windows[-1].number:
            return False
        last = windows[-1]
        return mark.rounds == last.rounds or not self._has_seat(last, shard)

    def cut(self) -> bool:
        """Decide all cuts that are met; was there one?"""
        moved = False
        while (window := self._window) is not None and self._lowest > self._cut:
            self._plan.decide(CutTo(window=window.number, cut=self._lowest))
            self._plan.counters.cuts += self._lowest - self._cut
            self._cut = self._lowest
            moved = True
            if self._cut == window.cuts:
                self._track()
        return moved

    def cut_freely(self) -> bool:
        """Decide a cut of free will, if anything came; did it?"""
        counts = self.free_counts()
        if counts is None:
            return False
        self.close_freely(counts)
        return True

    def free_counts(self) -> tuple[int, ...] | None:
        """What a cut of free will would hold, if that is more than the last one did."""
        window, ledger = self._plan.cutting, self._plan.ledger
        if window is None or window.foreseen:
            return None
        counts = ledger.counts if window is ledger.windows[0] else (0,) * len(window.seats)
        now = tuple(
            max(before, self._held(seat.shard, window) - seat.base)
            for seat, before in zip(window.seats, counts, strict=True)
        )
        return now if now != counts else None

    def _held(self, shard: ShardId, window: Window) -> LocalSequence:
        """What a shard has said in this window to be durable."""
        mark = self.marks.get(shard)
        if mark is None or mark.durable_in != window.number:
            return 0
        failed = self._plan.ledger.members[shard].standing is Standing.FAILED
        return 0 if failed else mark.durable

    def close_freely(self, counts: tuple[int, ...]) -> None:
        window = self._plan.cutting
        assert window is not None
        assert not window.foreseen, "the cuts of this window are predetermined"
        self._plan.decide(CutFreely(window.number, counts))
        self._plan.counters.cuts += 1

    @property
    def lag(self) -> int:
        """Rounds from the lowest cut to the furthest shard: nobody lags by more than one more."""
        if self._window is None:
            return 0
        lowest = max(self._lowest, self._cut) // self._window.groups
        return self.furthest - self._origins[self._window.number] - lowest

    def lag_of(self, shard: ShardId) -> int:
        """Rounds behind the furthest, of a shard that has a seat in the window being cut."""
        window = self._window
        if window is None or shard not in self._reaches or self._void(window, shard):
            return 0
        return max(0, self.furthest - self._done(window, shard))

    def waited_for(self) -> Iterator[ShardId]:
        """Those without which there is no next cut."""
        if self._window is not None and self._lowest <= self._cut:
            for shard, reach in self._reaches.items():
                if reach == self._lowest:
                    yield shard

    def count_all(self) -> None:
        """Let those with seats in windows to come alone be the furthest as well. At rest nobody
        goes on by itself, and what they have reported would wait for ever.
        """
        done = max((mark.done for mark in self.marks.values()), default=0)
        self.furthest = max(self.furthest, done)

    def unfinished(self) -> Iterator[ShardId]:
        """Those that have rounds left to report, of windows that are published."""
        if self._window is not None:
            for shard in self._reaches:
                if not self.is_at_end(shard) and not self._void(self._window, shard):
                    yield shard

    def lagging(self, rounds: int) -> Iterator[ShardId]:
        """Shards that are so far behind the furthest."""
        assert rounds > 0, "everybody would lag"
        for shard in self._reaches:
            if self.lag_of(shard) >= rounds:
                yield shard

    def target(self, shard: ShardId, ahead: int = 0) -> tuple[int, int] | None:
        """The window and its rounds in which the shard has caught up with the furthest, or with
        what lies so many rounds ahead of itself: as far as its seats go.
        """
        assert ahead >= 0
        window = self._window
        if window is None:
            return None
        upto = max(self.furthest, self._done(window, shard) + ahead)
        found = None
        for each in self._plan.ledger.windows:
            if each.number < window.number:
                continue
            seat = each.by_shard.get(shard)
            if seat is None or not each.foreseen or self._void(each, shard):
                break
            rounds = min(each.rounds, upto - self._origins[each.number])
            if rounds <= 0:
                break
            found = (each.number, rounds)
        return found

    def _sat(self, window: Window, shard: ShardId, rounds: int) -> _Sat | None:
        """What a report of so many rounds of this window claims; None: what can't be. Where the
        shard has no quota there are no rounds to report, and what it claims is the last before.
        """
        seat = window.by_shard.get(shard) if window.foreseen else None
        if seat is not None:
            if not 0 <= rounds <= window.rounds:
                return None
            done = self._origins[window.number] + rounds
            return _Sat(done, seat.base + rounds * seat.quota)
        if rounds:
            return None
        before = self._plan.ledger.window(window.number - 1)
        if before is None:
            return _Sat(0, 0)
        return self._sat(before, shard, before.rounds if self._has_seat(before, shard) else 0)

    def _has_seat(self, window: Window, shard: ShardId) -> bool:
        return window.foreseen and shard in window.by_shard

    def _done(self, window: Window, shard: ShardId) -> int:
        """Rounds; those that the cuts hold are, whether this leader has heard of them or not."""
        mark = self.marks.get(shard)
        if mark is not None and mark.window > window.number:
            return mark.done
        cut = window.rounds_in(window.by_shard[shard], self._cut)
        rounds = mark.rounds if mark is not None and mark.window == window.number else 0
        return self._origins[window.number] + max(cut, rounds)

    def _void(self, window: Window, shard: ShardId) -> bool:
        return (window.number, shard) in self._plan.ledger.gaps

    def _track(self) -> None:
        """Which window is to be cut next, and how far its seats reach."""
        ledger = self._plan.ledger
        first = ledger.windows[0].number if ledger.windows else 0
        for number in [number for number in self._origins if number < first]:
            del self._origins[number]
        window = self._plan.cutting
        self._window = window if window is not None and window.foreseen else None
        self._reaches = {}
        self._lowest = self._cut = self._holders = 0
        if self._window is None:
            return
        # Who has a seat only in windows to come is not ahead: nobody has to hurry for it.
        marks = (self.marks.get(shard) for shard in self._window.by_shard)
        self.furthest = max(0 if mark is None else mark.done for mark in marks)
        self._cut = ledger.cut if self._window is ledger.windows[0] else 0
        self._reaches = {
            seat.shard: self._reach(self._window, seat.shard) for seat in self._window.seats
        }
        self._find_lowest()

    def _reach(self, window: Window, shard: ShardId) -> int:
        mark = self.marks.get(shard)
        if self._void(window, shard) or (mark is not None and mark.window > window.number):
            return window.cuts
        rounds = mark.rounds if mark is not None and mark.window == window.number else 0
        return window.reach(window.by_shard[shard], rounds)

    def _reached(self, shard: ShardId) -> None:
        before = self._reaches.get(shard)
        if self._window is None or before is None:
            return
        after = self._reaches[shard] = self._reach(self._window, shard)
        if before == self._lowest < after:
            self._holders -= 1
            assert self._holders >= 0, "more went on than were waited for"
            if self._holders == 0:
                self._find_lowest()

    def _find_lowest(self) -> None:
        assert self._reaches, "nobody is waited for"
        reaches = self._reaches.values()
        self._lowest = min(reaches)
        self._holders = sum(reach == self._lowest for reach in reaches)
