"""The end of a sequencer: its process is to stop."""

from anabranch.core.alarms import Alarms
from anabranch.core.erwin.orderer.ordering import Ordering
from anabranch.core.machine import Effect, Rest
from anabranch.core.sequencing.replica import SequencingReplica
from anabranch.core.types import MS, Milliseconds, Nanoseconds

STANDSTILL_MS: Milliseconds = 1_000
"""Shards of the same process may have ended already. After so long without progress a leader ends
as well: the next view, or the next start from a journal, orders what is left.
"""


class Draining:
    """A leader takes no more, and orders what is in its ring as far as shards answer."""

    def __init__(
        self,
        replica: SequencingReplica,
        ordering: Ordering,
        effects: list[Effect],
        alarms: Alarms,
        drain_ms: Milliseconds,
    ) -> None:
        self.begun = False
        self._replica = replica
        self._ordering = ordering
        self._effects = effects
        self._alarms = alarms
        self._drain_ms = drain_ms
        self._ends_at: Nanoseconds = 0
        self._progress = (0, 0)
        self._progress_at: Nanoseconds = 0
        self._rested = False

    def begin(self) -> None:
        if self.begun:
            return
        self.begun = True
        self._progress_at = self._alarms.now
        self._ends_at = self._alarms.now + self._drain_ms * MS
        self._alarms.at(self._ends_at, lambda: None)
        self._look()

    def settle(self) -> None:
        """The end of a step."""
        if not self.begun or self._rested:
            return
        progress = (self._replica.ordered, self._replica.stable)
        assert self._ends_at > 0, "`begin` has set it"
        if progress != self._progress:
            self._progress, self._progress_at = progress, self._alarms.now
        if self._is_done() or self._is_late():
            self._rested = True
            self._effects.append(Rest())

    def _is_done(self) -> bool:
        return self._replica.idle and (self._ordering.pushing is None or self._ordering.idle)

    def _is_late(self) -> bool:
        now = self._alarms.now
        return now >= self._ends_at or now - self._progress_at >= STANDSTILL_MS * MS

    def _look(self) -> None:
        """`settle` looks at the time, at the end of the step."""
        if not self._rested:
            self._alarms.after(STANDSTILL_MS, self._look)
