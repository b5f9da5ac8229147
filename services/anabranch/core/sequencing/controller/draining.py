"""The end of a sequencer: its process is to stop."""

from collections.abc import Callable

from anabranch.core.alarms import Alarms
from anabranch.core.limits import Limits
from anabranch.core.machine import Effect, Rest
from anabranch.core.sequencing.replica import SequencingReplica
from anabranch.core.sequencing.view import View
from anabranch.core.types import MS, Milliseconds, Nanoseconds

STANDSTILL_MS: Milliseconds = 1_000
"""What records are ordered into may have ended already. After so long without progress a leader
ends as well: the next view, or the next start from a journal, orders what is left.
"""


class Draining:
    """A sequencer with a process of its own first waits until the controllers have gone on without
    it, and serves on meanwhile. A leader whose place nobody takes accepts no more appends, and
    orders what is in its ring as far as that can be done.
    """

    def __init__(
        self,
        replica: SequencingReplica,
        effects: list[Effect],
        alarms: Alarms,
        limits: Limits,
        *,
        view: Callable[[], View | None],
        ordered: Callable[[], bool],
        hands_over: bool,
    ) -> None:
        """`view`: the last that is known. `ordered`: this sequencer has nothing to order, or
        doesn't lead.
        """
        self.begun = False
        """No more appends are accepted."""
        self._leaving = False
        """The controllers were asked to go on without this sequencer."""
        self._replica = replica
        self._view = view
        self._ordered = ordered
        self._effects = effects
        self._alarms = alarms
        self._limits = limits
        self._hands_over = hands_over
        self._ends_at: Nanoseconds = 0
        self._progress = (0, 0)
        self._progress_at: Nanoseconds = 0
        self._rested = False

    def begin(self) -> None:
        if self.begun or self._leaving:
            return
        if self._hands_over:
            # A sequencer that isn't needed says so as well: no view may take it in any more.
            self._replica.leave()
        if self._hands_over and self._is_needed():
            self._leaving = True
            self._alarms.after(self._limits.handover_ms, self._finish)
        else:
            self._finish()

    def settle(self) -> None:
        """The end of a step."""
        if self._leaving and not self.begun and not self._is_needed():
            self._finish()
        if not self.begun or self._rested:
            return
        progress = (self._replica.ordered, self._replica.stable)
        assert self._ends_at > 0, "`_finish` has set it"
        if progress != self._progress:
            self._progress, self._progress_at = progress, self._alarms.now
        if self._is_done() or self._is_late():
            self._rested = True
            self._effects.append(Rest())

    def _is_needed(self) -> bool:
        """Is it a member of the last view that is known, beside others? Until the next view is
        configured its ring may be the one that is copied.
        """
        view, node = self._view(), self._replica.config.node
        return view is not None and node in view.nodes and len(view.nodes) > 1

    def _finish(self) -> None:
        if self.begun:
            return
        assert not self._rested, "a sequencer rests when it has drained"
        self.begun = True
        self._progress_at = self._alarms.now
        self._ends_at = self._alarms.now + self._limits.drain_ms * MS
        self._alarms.at(self._ends_at, lambda: None)
        self._look()

    def _is_done(self) -> bool:
        return self._replica.idle and self._ordered()

    def _is_late(self) -> bool:
        now = self._alarms.now
        return now >= self._ends_at or now - self._progress_at >= STANDSTILL_MS * MS

    def _look(self) -> None:
        """`settle` looks at the time, at the end of the step."""
        if not self._rested:
            self._alarms.after(STANDSTILL_MS, self._look)
