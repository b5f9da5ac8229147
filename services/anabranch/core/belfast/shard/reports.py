"""A primary's reports: rounds that are met exactly, no-ops for what is missing, answers to signals
of lag (Belfast, 4.1, 4.3, 4.9; spec 4).
"""

from anabranch.core.alarms import Alarm, Alarms
from anabranch.core.belfast.ledger.ledger import Member, Standing
from anabranch.core.belfast.ledger.rules import US
from anabranch.core.belfast.ledger.windows import Seat, Window
from anabranch.core.belfast.protocol.letters import FixLag, Report
from anabranch.core.belfast.shard.counters import ShardCounters
from anabranch.core.belfast.shard.decision_log import Following
from anabranch.core.belfast.shard.positions import Seating
from anabranch.core.machine import Effect, Send
from anabranch.core.replication.replica import Replica, Role
from anabranch.core.types import LocalSequence, Nanoseconds

_NOWHERE = -1
_REPEAT_INTERVALS = 4
"""A report that nothing follows is repeated: it may be lost."""


class Reporting:
    """Looks at the log and at the ledger at the end of each step, and says what is new."""

    def __init__(
        self,
        following: Following,
        replica: Replica,
        seating: Seating,
        effects: list[Effect],
        alarms: Alarms,
        counters: ShardCounters,
    ) -> None:
        self._following = following
        self._replica = replica
        self._seating = seating
        self._tally = seating.tally
        self._forecast = seating.forecast
        self._effects = effects
        self._alarms = alarms
        self._counters = counters
        self.window = _NOWHERE
        """The one whose rounds are being met."""
        self.rounds = 0
        self._covered: LocalSequence = 0
        """What reports cover exactly."""
        self._durable: LocalSequence = 0
        """What was reported last."""
        self._sent_at: Nanoseconds = 0
        self._met_at: Nanoseconds = 0
        """When a round was met last, and reported."""
        self._repeat = False
        self._pending: tuple[int, LocalSequence] | None = None
        """A signal of lag, and how far the log has to come to answer it."""
        self._answered = 0
        self._alarm: Alarm | None = None
        self._alarm_for = (_NOWHERE, 0)
        self._pause: Alarm | None = None
        self._stalled_in = _NOWHERE
        """The window at whose end there was none to go on with."""
        self._stalled_at: Nanoseconds = 0

    def reset(self) -> None:
        """Another epoch, view or log: everything is looked at anew, and said again."""
        self.window, self.rounds, self._covered, self._durable = _NOWHERE, 0, 0, 0
        self._pending = None
        self._met_at = self._alarms.now
        self._disarm()
        self.repeat()

    def repeat(self) -> None:
        self._repeat = True

    def tick(self) -> None:
        pause = self._following.rules.intervals(_REPEAT_INTERVALS)
        if self._alarms.now - self._sent_at >= pause:
            self.repeat()

    def fix_lag(self, letter: FixLag) -> None:
        """Lag signals are repeated until they are answered: one that was, is again."""
        me = self._serving()
        if me is None or letter.shard != me.id:
            return
        if letter.signal <= self._answered:
            self.repeat()
        elif self._pending is None or letter.signal > self._pending[0]:
            self._pending = (letter.signal, self._target(me, letter))

    def advance(self) -> None:
        """The end of a step."""
        me = self._serving()
        if me is None:
            self._disarm()
            self._stalled_in = _NOWHERE
            return
        before, met = self.window, self._meet(me)
        self._fill_lag()
        window = self._following.ledger.window(self.window)
        self._watch_stall(me, window)
        free = window is not None and not window.foreseen
        if free and self.window != before:
            self.repeat()  # what was said in another window says nothing in this one
        if met or self._repeat or (free and self._may_pace()):
            self._report(me)
        if met:
            self._met_at = self._alarms.now
        self._arm(me, window)

    def _serving(self) -> Member | None:
        me = self._following.me
        if me is None or me.standing is Standing.FAILED:
            return None
        primary = self._replica.role is Role.PRIMARY and self._replica.epoch == me.epoch
        return me if primary and not self._seating.forgotten else None

    def _meet(self, me: Member) -> int:
        """Go on through the rounds that are durable, and the windows that are published; say how
        many rounds that were.
        """
        ledger = self._following.ledger
        if not ledger.windows:
            return 0
        first = ledger.windows[0].number
        if self.window < first:
            self.window, self.rounds = first, 0
        durable = min(self._replica.log.durable, self._seating.journaled)
        total = 0
        while (window := ledger.window(self.window)) is not None:
            seat = self._seat(me, window)
            if seat is not None:
                met = (durable - seat.base) // seat.quota
                met = max(0, min(window.rounds, met) - self.rounds)
                self.rounds += met
                total += met
                self._covered = seat.base + self.rounds * seat.quota
                if self.rounds < window.rounds:
                    break
            if ledger.window(self.window + 1) is None:
                break
            self.window += 1
            self.rounds = 0
        self._counters.rounds += total
        return total

    def _seat(self, me: Member, window: Window) -> Seat | None:
        """Ours in it, if it is foreseen and none of its slots are no-ops by decree."""
        seat = window.by_shard.get(me.id) if window.foreseen else None
        if seat is None or self._following.ledger.gap(window, seat) is not None:
            return None
        return seat

    def _report(self, me: Member) -> None:
        following, replica = self._following, self._replica
        self._repeat = False
        if not following.leader or replica.stuck:
            return
        primary = replica.primary
        assert primary is not None, "nobody else reports"
        window = following.ledger.window(self.window)
        durable = self._reported(me, window)
        if self._pending is not None and self._covered >= self._pending[1]:
            self._answered, self._pending = self._pending[0], None
            self._counters.signals += 1
        covered = self._covered if window is None or window.foreseen else durable
        letter = Report(
            shard=me.id,
            epoch=me.epoch,
            view=following.ledger.view,
            window=self.window,
            rounds=self.rounds,
            durable=durable,
            records=self._tally.below(durable),
            queued=max(0, self._tally.records - self._tally.below(covered)),
            signal=self._answered,
            applied=following.applied,
            silent=primary.silent,
            caught_up=primary.caught_up,
            foretold=self._forecast.foretold,
            voided=self._forecast.voided,
            noops=self._tally.noops_below(durable),
            delay_us=replica.log.journal.delay // US,
        )
        self._effects.append(Send(following.leader, letter))
        self._durable = durable
        self._sent_at = self._alarms.now
        self._counters.reports += 1

    def _reported(self, me: Member, window: Window | None) -> LocalSequence:
        """What is durable; nothing of a window of free will before the placements of earlier
        windows are journaled: its first cut lets the sequencers forget them.
        """
        seat = None if window is None or window.foreseen else window.by_shard.get(me.id)
        durable = self._seating.durable
        if seat is None or self._seating.knows_earlier_windows:
            return durable
        return min(durable, seat.base)

    def _target(self, me: Member, letter: FixLag) -> LocalSequence:
        """Where so many rounds of this window end, or of the last that is published."""
        target = 0
        for window in self._following.ledger.windows:
            seat = self._seat(me, window)
            if window.number > letter.window or seat is None:
                continue
            rounds = window.rounds if window.number < letter.window else letter.rounds
            target = seat.base + min(rounds, window.rounds) * seat.quota
        return target

    def _fill_lag(self) -> None:
        """Everything that is missing at once, across windows (4.3)."""
        if self._pending is None:
            return
        self._fill(self._pending[1])
        if self._covered >= self._pending[1]:
            self.repeat()

    def _fill(self, upto: LocalSequence) -> None:
        missing = upto - self._replica.log.last
        if missing > 0 and self._replica.log.journal.obstacle is None:
            self._replica.fill(missing)

    def _may_pace(self) -> bool:
        """Of free will, what is durable is reported once in a T_ord."""
        if self._replica.log.durable <= self._durable or self._pause is not None:
            return False
        due = self._sent_at + self._following.rules.t_ord
        if self._alarms.now >= due:
            return True
        self._pause = self._alarms.at(due, self._paced)
        return False

    def _paced(self) -> None:
        self._pause = None
        self.repeat()

    def _arm(self, me: Member, window: Window | None) -> None:
        """No-ops are due some time after the last round was met (4.9)."""
        seat = None if window is None else self._seat(me, window)
        if window is None or seat is None or self.rounds == window.rounds:
            self._disarm()
            return
        if (
            self._following.at_rest
            and self._replica.log.last <= seat.base + self.rounds * seat.quota
        ):
            # At rest a round that nothing has come to is filled when it is asked for, not before.
            self._disarm()
            return
        if self._alarm_for == (self.window, self.rounds):
            return
        self._disarm()
        rules = self._following.rules
        due = self._met_at + rules.t_ord * rules.noop_percent // 100
        self._alarm_for = (self.window, self.rounds)
        self._alarm = self._alarms.at(max(due, self._alarms.now), self._top_up)

    def _disarm(self) -> None:
        self._alarm_for = (_NOWHERE, 0)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _top_up(self) -> None:
        """No-ops for what this round lacks, as one item; what is in flight counts (4.9)."""
        self._alarm = None
        me = self._serving()
        window = self._following.ledger.window(self.window)
        seat = self._seat(me, window) if me is not None and window is not None else None
        if seat is None:
            return
        if self._replica.log.journal.obstacle is not None:
            self._alarm_for = (_NOWHERE, 0)
            self._met_at = self._alarms.now
            return
        self._fill(seat.base + (self.rounds + 1) * seat.quota)

    def _watch_stall(self, me: Member, window: Window | None) -> None:
        """At the end of all that is published nobody goes on (F8)."""
        seat = None if window is None else self._seat(me, window)
        stalled = window is not None and seat is not None and self.rounds == window.rounds
        at = self.window if stalled else _NOWHERE
        if at == self._stalled_in:
            return
        if self._stalled_in != _NOWHERE:
            self._counters.stalled += self._alarms.now - self._stalled_at
        if stalled:
            self._counters.stalls += 1
        self._stalled_in, self._stalled_at = at, self._alarms.now
