"""Shards that lag behind the furthest are asked to catch up, with no-ops if need be (4.3).

The same signal tells who is there at all: one that isn't answered in time accuses (4.8).
"""

from dataclasses import dataclass

from anabranch.core.belfast.ledger.windows import ShardId
from anabranch.core.belfast.protocol.letters import FixLag, Report
from anabranch.core.belfast.sequencer.cuts import Progress
from anabranch.core.belfast.sequencer.idleness import Idleness
from anabranch.core.belfast.sequencer.plan import Plan
from anabranch.core.types import Nanoseconds

REPEAT_INTERVALS = 10
"""A signal without an answer may be lost."""

STUCK_INTERVALS = 8
"""Without a cut, though nobody is ahead: are those that it waits for still there?"""

_NUMBERS = 1 << 32
"""Signals of one lead. Their numbers go on from lead to lead: a shard answers the highest."""


@dataclass(slots=True, kw_only=True)
class Signal:
    letter: FixLag
    begun: Nanoseconds
    since: Nanoseconds
    """When the shard last gave reason to believe in it."""
    sent: Nanoseconds
    """The last time."""


class Lag:
    """At most one signal per shard is out: the next is for what it lags then."""

    def __init__(self, plan: Plan, progress: Progress, idleness: Idleness, term: int) -> None:
        self.signals: dict[ShardId, Signal] = {}
        self.counts: dict[ShardId, int] = {}
        self._counters = plan.counters
        self._rules = plan.rules
        self._progress = progress
        self._idleness = idleness
        self._number = term * _NUMBERS
        self._looked = 0
        """The furthest shard's rounds when all were last looked at."""
        self._looked_for = 0
        """The distance that was looked for then."""
        self._cut_at: Nanoseconds = 0

    def heard(self, report: Report, advanced: bool, now: Nanoseconds) -> Nanoseconds | None:
        """When the signal was sent that this answers."""
        signal = self.signals.get(report.shard)
        if signal is None:
            return None
        if advanced:
            signal.since = now
        asked = signal.letter
        reached = (report.window, report.rounds) >= (asked.window, asked.rounds)
        if report.signal < asked.signal and not reached:
            return None
        del self.signals[report.shard]
        self._looked = 0
        return signal.begun

    def cut(self, now: Nanoseconds) -> None:
        """There was one."""
        assert now >= self._cut_at, "time never goes back"
        self._cut_at = now

    def look(self, now: Nanoseconds) -> list[FixLag]:
        """Signals to those that lag. Costs a look at all shards only where one may lag."""
        # At rest nobody fills a quota unasked: whoever is a round behind is asked at once.
        rounds = 1 if self._idleness.at_rest else self._rules.lag_rounds
        progress = self._progress
        if self._idleness.at_rest:
            progress.count_all()
        if not self._rules.lag_fix or progress.lag < rounds:
            return []
        looked = rounds == self._looked_for and self._looked <= progress.furthest
        if looked and progress.furthest < self._looked + rounds:
            return []
        self._looked, self._looked_for = progress.furthest, rounds
        letters = self._signal_all(list(progress.lagging(rounds)), 0, now)
        self._counters.signals += len(letters)
        return letters

    def align(self, trailing: list[ShardId], now: Nanoseconds) -> list[FixLag]:
        """Signals to those that trail."""
        if not self._rules.lag_fix:
            return []
        letters = self._signal_all(trailing, 0, now)
        self._counters.trails += len(letters)
        return letters

    def watch(self, now: Nanoseconds) -> list[FixLag]:
        """Repeats what may be lost, and asks those on whom the next cut waits too long."""
        letters: list[FixLag] = []
        for signal in self.signals.values():
            if now - signal.sent >= self._rules.intervals(REPEAT_INTERVALS):
                signal.sent = now
                letters.append(signal.letter)
        # At rest there is no next cut to wait for, unless somebody is ahead.
        waits = not self._idleness.at_rest or self._progress.lag > 0
        if waits and now - self._cut_at >= self._rules.intervals(STUCK_INTERVALS):
            asked = self._signal_all(list(self._progress.waited_for()), 1, now)
            self._counters.signals += len(asked)
            letters += asked
        return letters

    def close(self, now: Nanoseconds) -> list[FixLag]:
        """Signals to fill up all that is published, so that a window with other seats follows: at
        rest windows don't end by themselves.
        """
        progress = self._progress
        letters = self._signal_all(list(progress.unfinished()), progress.rounds, now)
        self._counters.signals += len(letters)
        return letters

    def forget(self, shard: ShardId) -> None:
        """It has failed, or another primary answers from now on."""
        self.signals.pop(shard, None)
        self._looked = 0

    def was_away(self, missed: Nanoseconds, now: Nanoseconds) -> None:
        """The leader itself didn't run for so long: that isn't the shards' time."""
        assert missed >= 0
        self._cut_at = min(now, self._cut_at + missed)
        for signal in self.signals.values():
            signal.since = min(now, signal.since + missed)

    def _signal_all(self, shards: list[ShardId], ahead: int, now: Nanoseconds) -> list[FixLag]:
        """To each that has no signal out, and has anything left to do."""
        asked = [shard for shard in shards if shard not in self.signals]
        return [letter for shard in asked for letter in self._signal(shard, ahead, now)]

    def _signal(self, shard: ShardId, ahead: int, now: Nanoseconds) -> list[FixLag]:
        assert shard not in self.signals, "one signal at a time"
        assert ahead >= 0
        target = self._progress.target(shard, ahead)
        if target is None:
            return []
        self._number += 1
        self.counts[shard] = self.counts.get(shard, 0) + 1
        window, rounds = target
        letter = FixLag(shard=shard, signal=self._number, window=window, rounds=rounds)
        self.signals[shard] = Signal(letter=letter, begun=now, since=now, sent=now)
        return [letter]
