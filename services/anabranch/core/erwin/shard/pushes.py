"""A primary's part in ordering: it takes the leader's pushes one after the other, and answers when
they are durable (LazyLog, 4.3; decision 58).

Whose pushes count is said by their fence. A higher one voids what lower ones put behind its base,
and from when it is established nobody takes a lower one, whichever replica is the primary.
"""

from anabranch.core.alarms import Alarm, Alarms
from anabranch.core.erwin.protocol.letters import Push, Pushed, Stale
from anabranch.core.erwin.shard.contents import Contents
from anabranch.core.erwin.shard.counters import ErwinShardCounters
from anabranch.core.machine import Effect, Send
from anabranch.core.types import LocalSequence, Position

MARK_MS = 1_000
"""So long after the last push the watermarks are logged without one."""

_NOTHING: tuple[Position, Position] = (-1, -1)


class Pushes:
    def __init__(
        self,
        contents: Contents,
        effects: list[Effect],
        alarms: Alarms,
        counters: ErwinShardCounters,
    ) -> None:
        self.base: Position = 0
        """Where the leader of the last fence began."""
        self._contents = contents
        self._effects = effects
        self._alarms = alarms
        self._counters = counters
        self._leader = ""
        """Who is answered; empty after another primary's time, until it pushes here."""
        self._owes = False
        self._wanted: Position = -1
        self._told = _NOTHING
        self._mark_alarm: Alarm | None = None
        self._mark_from: LocalSequence = 0

    @property
    def end(self) -> Position:
        """Where the next push belongs."""
        return self._contents.map.end

    @property
    def _progress(self) -> tuple[Position, Position]:
        """What is durable of rows and of trims."""
        return self._contents.durable, self._contents.trimmed_durably

    def reset(self) -> None:
        """The role or the epoch is another: the leader is answered when it pushes again."""
        self._leader = ""
        self._owes, self._wanted, self._told = False, -1, _NOTHING

    def push(self, sender: str, letter: Push) -> None:
        contents = self._contents
        known = contents.storage.fence
        if letter.fence < known:
            self._counters.stale += 1
            self._effects.append(Send(sender, Stale(known)))
            return
        if letter.fence > known:
            self._fence(letter)
        self._leader, self._owes, self._wanted = sender, True, -1
        self.base = letter.base
        if letter.base > self.end:
            contents.mark(letter.base)  # the shard was added later: no row below names it
        if letter.first > self.end:
            self._counters.gaps += 1
            self._wanted = self.end
        elif letter.rows and letter.first < self.end:
            self._counters.repeated += 1
        elif letter.rows:
            self._take(letter)
        # A shard holds what is stable, unless its log was lost as a whole.
        contents.marks.advance(
            min(letter.stable, contents.map.end), min(letter.trimmed, contents.map.end)
        )

    def settle(self) -> None:
        """The end of a step."""
        contents = self._contents
        if not contents.storage.writable:
            return
        if contents.marks.trimmed > contents.marked.trimmed:
            # A trim is acknowledged when every replica knows it: none serves what is trimmed.
            contents.mark(self.end)
        if contents.marks.stable > contents.marked.stable and self._mark_alarm is None:
            self._set_mark_alarm()
        if self._leader and (self._owes or self._progress > self._told):
            self._answer()

    def _fence(self, letter: Push) -> None:
        contents = self._contents
        assert letter.base >= contents.marks.stable, "what is stable never changes (LazyLog, 4.5)"
        to = contents.map.holder(letter.base)
        assert to == contents.map.last or contents.map.start(to) >= letter.base, (
            "what was ordered by a member ends where a push did"
        )
        self._counters.fences += 1
        self._told = _NOTHING
        contents.storage.replace_tail(to, letter.fence)
        assert contents.storage.fence == letter.fence

    def _take(self, letter: Push) -> None:
        assert letter.first == self.end, "pushes are logged in order"
        self._counters.pushes += 1
        self._contents.append(letter.first, letter.rows, letter.batches)

    def _answer(self) -> None:
        contents = self._contents
        if not contents.storage.established:
            return  # a later primary might take pushes of an earlier fence still
        self._owes = False
        self._told = upto, trimmed = self._progress
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
        )
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
        if contents.storage.writable and behind and contents.map.last == self._mark_from:
            contents.mark(self.end)
