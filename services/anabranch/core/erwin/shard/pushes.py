"""A primary's part in ordering: it takes the leader's pushes one after the other, and answers when
they are durable (LazyLog, 4.3; decision 58).

Whose pushes count is said by their fence. A higher one voids what lower ones put behind its base,
and from when it is established nobody takes a lower one, whichever replica is the primary.
"""

from collections import deque
from dataclasses import dataclass

from anabranch.core.alarms import Alarm, Alarms
from anabranch.core.erwin.protocol.checks import fault_in_push
from anabranch.core.erwin.protocol.letters import Push, Pushed, Stale
from anabranch.core.erwin.protocol.rows import Mode, Row, end_of
from anabranch.core.erwin.shard.contents import Contents
from anabranch.core.erwin.shard.counters import ErwinShardCounters
from anabranch.core.erwin.shard.unordered import Unordered
from anabranch.core.limits import Limits
from anabranch.core.machine import Effect, Send
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.types import MS, LocalSequence, Nanoseconds, Position

ANSWER_MS = 50
"""So long an answer that may wait for the next push does wait: well below a leader's patience."""
VOIDED_MAX = 1_000
"""So many rows that became no-ops are named in an answer, the latest ones."""
MARK_MS = 1_000
"""So long after the last push the watermarks are logged without one."""

_NOTHING: tuple[Position, Position] = (-1, -1)


@dataclass(slots=True)
class PendingPush:
    """Mode st: rows whose data isn't all here, and rows behind them."""

    first: Position
    rows: list[Row]
    missing: dict[AppendId, Nanoseconds]
    """Each with the time when it becomes no-ops (LazyLog, 5.4)."""
    announced_bytes: int


class Pushes:
    def __init__(
        self,
        limits: Limits,
        contents: Contents,
        unordered: Unordered,
        effects: list[Effect],
        alarms: Alarms,
        counters: ErwinShardCounters,
    ) -> None:
        self.base: Position = 0
        """Where the leader of the last fence began."""
        self._limits = limits
        self._contents = contents
        self._unordered = unordered
        self._pending: deque[PendingPush] = deque()
        self._noop_alarm: tuple[Nanoseconds, Alarm] | None = None
        self._voided: list[Position] = []
        """Where rows begin that became no-ops; the leader is to be told."""
        self._excess = 0
        """Bytes that clients have sent beyond what they had announced, in this fence."""
        self._effects = effects
        self._alarms = alarms
        self._counters = counters
        self._leader = ""
        """Who is answered; empty after another primary's time, until it pushes here."""
        self._owes = False
        self._wanted: Position = -1
        self._told = _NOTHING
        self._told_obstacle = ""
        self._owes_at: Nanoseconds | None = None
        """When an answer that may wait is owed."""
        self._answer_alarm: Alarm | None = None
        self._mark_alarm: Alarm | None = None
        self._mark_from: LocalSequence = 0

    @property
    def end(self) -> Position:
        """Where the next push belongs."""
        if not self._pending:
            return self._contents.map.end
        last = self._pending[-1]
        return end_of(last.rows, last.first)

    @property
    def _progress(self) -> tuple[Position, Position]:
        """What is durable of rows and of trims."""
        return self._contents.durable, self._contents.trimmed_durably

    @property
    def _has_news(self) -> bool:
        """Whoever asks the leader learns what stands in the way, though nothing is appended."""
        return self._contents.storage.obstacle != self._told_obstacle

    def reset(self) -> None:
        """The role or the epoch is another: the leader is answered when it pushes again."""
        self._pending.clear()
        self._voided, self._excess = [], 0
        self._leader = ""
        self._owes, self._wanted, self._told = False, -1, _NOTHING

    def push(self, sender: str, letter: Push) -> None:
        """From a node that may lead."""
        contents = self._contents
        if fault_in_push(letter, shard=contents.number, mode=contents.mode) is not None:
            self._counters.nonsense += 1
            return
        known = contents.storage.fence
        if letter.fence < known:
            self._counters.stale += 1
            self._effects.append(Send(sender, Stale(known)))
            return
        if letter.fence > known:
            if not self._may_replace(letter.base):
                self._counters.nonsense += 1
                return
            self._fence(letter)
        self._leader, self._wanted = sender, -1
        self.base = letter.base
        if letter.base > self.end:
            contents.mark(letter.base)  # the shard was added later: no row below names it
        if letter.first > self.end:
            self._counters.gaps += 1
            self._wanted = self.end
            self._owes = True
        elif letter.rows and letter.first < self.end:
            self._counters.repeated += 1
            self._owes = True
        elif letter.rows:
            self._take(letter)  # what is durable by then is said once it is
        elif letter.answer_later:
            self._owe_later()
        else:
            self._owes = True
        # A shard holds what is stable, unless its log was lost as a whole.
        contents.marks.advance(
            min(letter.stable, contents.map.end), min(letter.trimmed, contents.map.end)
        )

    def settle(self) -> None:
        """The end of a step."""
        contents = self._contents
        if not contents.storage.writable:
            return
        if self._pending:
            self._bind()
        if not self._pending and contents.marks.trimmed > contents.marked.trimmed:
            # A trim is acknowledged when every replica knows it: none serves what is trimmed.
            contents.mark(self.end)
        if contents.marks.stable > contents.marked.stable and self._mark_alarm is None:
            self._set_mark_alarm()
        if self._leader and (self._owes or self._progress > self._told or self._has_news):
            self._answer()

    def _may_replace(self, base: Position) -> bool:
        """What is stable never changes (LazyLog, 4.5), and what was ordered by a member ends where
        a push did.
        """
        map_ = self._contents.map
        if base < self._contents.marks.stable:
            return False
        to = map_.holder(base)
        return to == map_.last or map_.start(to) >= base

    def _fence(self, letter: Push) -> None:
        contents = self._contents
        assert self._may_replace(letter.base), "what is stable never changes (LazyLog, 4.5)"
        to = contents.map.holder(letter.base)
        self._counters.fences += 1
        self._told = _NOTHING
        self._pending.clear()
        self._voided, self._excess = [], 0
        contents.storage.replace_tail(to, letter.fence)
        assert contents.storage.fence == letter.fence

    def _take(self, letter: Push) -> None:
        assert letter.first == self.end, "pushes are logged in order"
        self._counters.pushes += 1
        contents = self._contents
        if contents.mode is Mode.M:
            contents.append(letter.first, letter.rows, letter.batches)
            return
        waits = letter.waits_ms or [self._limits.noop_ms]
        assert len(waits) in (1, len(letter.rows)), "a row has one wait"
        waits = waits * len(letter.rows) if len(waits) == 1 else waits
        own = {
            row.id: self._alarms.now + min(wait_ms, self._limits.noop_ms) * MS
            for row, wait_ms in zip(letter.rows, waits, strict=True)
            if row.shard == contents.number
        }
        missing = {id: own[id] for id in self._unordered.lacks(own)}
        announced = letter.announced_bytes
        self._pending.append(PendingPush(letter.first, letter.rows, missing, announced))

    def _bind(self) -> None:
        """Log rows whose data is here, and those for whose data the time is over."""
        assert self._contents.map.end == self._pending[0].first, "rows are bound in order"
        while self._pending:
            push = self._pending[0]
            lacked = self._unordered.lacks(push.missing)
            push.missing = {id: push.missing[id] for id in lacked}
            until = max(push.missing.values(), default=0)
            if self._alarms.now < until:
                self._wait_until(until)
                return
            # The item decides about no-ops: a replica that does have the data drops it.
            batches = self._unordered.batches_of(push.rows)
            own = (row for row in push.rows if row.shard == self._contents.number)
            if push.announced_bytes >= 0:
                self._excess += max(0, sum(map(len, batches)) - push.announced_bytes)
            voided = [row.first for row, batch in zip(own, batches, strict=True) if not batch]
            self._voided = (self._voided + voided)[-VOIDED_MAX:]
            self._contents.append(push.first, push.rows, batches)
            self._pending.popleft()

    def _wait_until(self, time: Nanoseconds) -> None:
        if self._noop_alarm is not None:
            at, alarm = self._noop_alarm
            if at == time:
                return
            alarm.cancel()
        self._noop_alarm = time, self._alarms.at(time, self._wake)

    def _wake(self) -> None:
        """The end of the step binds what is due."""
        self._noop_alarm = None

    def _owe_later(self) -> None:
        if self._owes_at is None:
            self._owes_at = self._alarms.now + ANSWER_MS * MS
        # An alarm for each of a stream of pushes would be cancelled by the next one's answer.
        if self._answer_alarm is None:
            self._answer_alarm = self._alarms.at(self._owes_at, self._owe)

    def _owe(self) -> None:
        self._answer_alarm = None
        if self._owes_at is None:
            return
        if self._owes_at <= self._alarms.now:
            self._owes = True
        else:
            self._answer_alarm = self._alarms.at(self._owes_at, self._owe)

    def _answer(self) -> None:
        contents = self._contents
        if not contents.storage.established:
            return  # a later primary might take pushes of an earlier fence still
        self._owes = False
        self._owes_at = None
        self._told = upto, trimmed = self._progress
        self._told_obstacle = contents.storage.obstacle
        assert upto <= contents.map.end, "only what is logged is durable"
        counters = self._counters
        answer = Pushed(
            fence=contents.storage.fence,
            shard=contents.number,
            upto=upto,
            trimmed=trimmed,
            records=counters.records,
            noops=counters.noops,
            reads=counters.reads,
            slow_reads=counters.slow_reads,
            orphans=counters.orphans,
            stable=contents.marks.stable,
            wanted=self._wanted,
            obstacle=self._told_obstacle,
            voided=self._voided,
            excess_bytes=self._excess,
        )
        self._voided = []
        self._wanted = -1
        self._effects.append(Send(self._leader, answer))

    def _set_mark_alarm(self) -> None:
        self._mark_from = self._contents.map.last
        self._mark_alarm = self._alarms.after(MARK_MS, self._mark)

    def _mark(self) -> None:
        """Log what is stable, unless pushes come anyway: each tells of those before it."""
        self._mark_alarm = None
        contents = self._contents
        behind = contents.marks.stable > contents.marked.stable
        idle = contents.map.last == self._mark_from and not self._pending
        if contents.storage.writable and behind and idle:
            contents.mark(self.end)
