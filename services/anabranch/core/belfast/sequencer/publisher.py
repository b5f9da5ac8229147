"""Windows are published ahead: no shard waits for the next one's quotas (Belfast, 4.4)."""

from anabranch.core.belfast.ledger.decisions import OpenWindow
from anabranch.core.belfast.ledger.ledger import Member, Standing
from anabranch.core.belfast.ledger.windows import Mode
from anabranch.core.belfast.sequencer.cuts import Progress
from anabranch.core.belfast.sequencer.membership import Membership
from anabranch.core.belfast.sequencer.plan import Plan
from anabranch.core.belfast.sequencer.quotas import Quotas
from anabranch.core.belfast.sequencer.stragglers import Stragglers, Turn
from anabranch.core.types import Nanoseconds


class Publishing:
    def __init__(
        self,
        plan: Plan,
        progress: Progress,
        membership: Membership,
        quotas: Quotas,
        stragglers: Stragglers,
    ) -> None:
        self._plan = plan
        self._rules = plan.rules
        self._progress = progress
        self._membership = membership
        self._quotas = quotas
        self._stragglers = stragglers

    def publish(self, now: Nanoseconds) -> bool:
        """Decide all windows that are due; was there one?"""
        before = self._plan.counters.windows
        ahead = max(-(-self._rules.window // 2), self._rules.ahead_rounds)
        while True:
            windows = self._plan.ledger.windows
            last = windows[-1] if windows else None
            if last is not None and not last.foreseen:
                if not self._ends_free_will(now) or not self._open(now):
                    break
            elif self._plan.rounds_left >= ahead or not self._open(now):
                break
        return self._plan.counters.windows > before

    def awaits_window(self, now: Nanoseconds) -> bool:
        """Is there somebody who joins or leaves with the next window, and not before?"""
        if self._plan.members(Standing.LEAVING):
            return True
        waiting = self._plan.members(Standing.WAITING)
        return any(self._is_present(each, now) for each in waiting)

    def _open(self, now: Nanoseconds) -> bool:
        plan = self._plan
        windows = plan.ledger.windows
        shards = [each for each in self._eligible() if self._is_present(each, now)]
        if not shards or (not windows and len(shards) < self._rules.shards_min):
            return False
        if windows and not windows[-1].foreseen:
            counts = self._progress.free_counts()
            if counts is not None or len(windows) > 1:
                self._progress.close_freely(counts or (0,) * len(windows[-1].seats))
        number = plan.ledger.windows[-1].number + 1 if windows else 0
        mode = self._mode()
        quotas = self._seats(shards, number, now)
        staggered = self._rules.stagger and len(quotas) >= self._rules.stagger_from
        groups = self._rules.stagger_groups if staggered and mode is not Mode.FREE_WILL else 1
        plan.decide(OpenWindow(number, mode, self._rules.window, groups, quotas))
        plan.counters.windows += 1
        self._progress.opened(plan.ledger.windows[-1])
        return True

    def _seats(
        self, shards: list[Member], number: int, now: Nanoseconds
    ) -> tuple[tuple[int, int], ...]:
        turns = {each.id: self._stragglers.turn(each.id, number) for each in shards}
        if all(turn is Turn.REST for turn in turns.values()):
            turns = dict.fromkeys(turns, Turn.FULL)
        quotas: list[tuple[int, int]] = []
        for each in shards:
            if turns[each.id] is Turn.REST:
                self._stragglers.rest(each.id, number)
            elif turns[each.id] is Turn.PROBE:
                quotas.append((each.id, self._quotas.give(each.id, 1)))
            else:
                quotas.append((each.id, self._quotas.next(each, now)))
        assert quotas, "somebody has a seat in every window"
        return tuple(quotas)

    def _mode(self) -> Mode:
        return Mode.FREE_WILL if self._rules.free_will else Mode.STEADY

    def _eligible(self) -> list[Member]:
        return self._plan.members(Standing.WAITING, Standing.SEATED)

    def _is_present(self, member: Member, now: Nanoseconds) -> bool:
        """A shard that nothing is heard of gets no seat: nobody would have to wait for it."""
        if member.standing is Standing.WAITING:
            primary = member.primary
            there = self._membership.present(member.name, primary, now)
            return there and not self._membership.lost(member, primary)
        return not self._membership.gone(member, member.primary, now)

    def _ends_free_will(self, now: Nanoseconds) -> bool:
        """A window of free will ends when all its cuts are made, or something else is wanted."""
        plan = self._plan
        last = plan.ledger.windows[-1]
        if plan.cutting is not last:
            return False
        begun = last is plan.ledger.windows[0]
        wanted = tuple(each.id for each in self._eligible() if self._is_present(each, now))
        return (
            (begun and plan.ledger.cut >= last.rounds)
            or self._mode() is not Mode.FREE_WILL
            or wanted != tuple(seat.shard for seat in last.seats)
        )
