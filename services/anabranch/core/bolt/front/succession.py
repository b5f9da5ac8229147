"""Which of a front's controllers decides: one leads, and the others wait for its silence.

The log gives terms, and a later one deposes an earlier one, so two that lead at a time do no harm.
They would only keep deposing each other. So one that was deposed waits, and no two wait for the
same time.
"""

from collections.abc import Callable

from anabranch.core.alarms import Alarms
from anabranch.core.bolt.front.config import RETRY_MS
from anabranch.core.bolt.front.letters import FrontLeads
from anabranch.core.limits import Limits
from anabranch.core.types import MS, Milliseconds, Nanoseconds

TURN_MS: Milliseconds = 100
"""Between two controllers that would take over from the same one."""


class Succession:
    """Of one controller, among all of its front, which are listed in the same order everywhere."""

    def __init__(
        self,
        node: str,
        controllers: tuple[str, ...],
        limits: Limits,
        alarms: Alarms,
        send: Callable[[str, object], None],
        lead: Callable[[], None],
    ) -> None:
        everyone = controllers or (node,)
        assert node in everyone, "a controller is one of its front's"
        self._turn = everyone.index(node)
        self._others = tuple(each for each in everyone if each != node)
        self._limits = limits
        self._alarms = alarms
        self._send = send
        self._lead = lead
        self._term = 0
        """The latest of which this controller knows."""
        self._heard_at: Nanoseconds = 0
        self._patience_ms: Milliseconds = 0
        self._waits = True

    def start(self) -> None:
        """The first of the list leads at once, unless it hears of another."""
        if self._turn:
            self._wait(self._limits.silent_ms)
        else:
            self._wait(self._limits.present_ms if self._others else 0)
        self._look()

    def leads(self, term: int) -> None:
        """The log has given this controller a term."""
        assert term > 0, "terms are numbered from 1"
        self._term, self._waits = max(self._term, term), False
        self._tell(leaving=False)

    def deposed(self) -> None:
        """Another controller has a later term, or this one's own question came twice."""
        self._wait(self._limits.silent_ms if self._others else RETRY_MS)

    def heard(self, letter: FrontLeads) -> bool:
        """Another leads. True if it has deposed this one."""
        if letter.term < self._term:
            return False
        deposed = letter.term > self._term and not self._waits
        self._term = letter.term
        if self._waits or deposed:
            self._wait(0 if letter.leaving else self._limits.silent_ms)
        return deposed

    def was_away(self, missed: Nanoseconds) -> None:
        """For so long nobody was heard, because this controller did not run."""
        assert missed >= 0
        self._heard_at = min(self._alarms.now, self._heard_at + missed)

    def leave(self) -> None:
        """The process of this controller is about to end."""
        if not self._waits:
            self._tell(leaving=True)

    def _wait(self, patience_ms: Milliseconds) -> None:
        self._waits = True
        self._heard_at = self._alarms.now
        self._patience_ms = patience_ms + self._turn * TURN_MS

    def _look(self) -> None:
        if not self._waits:
            self._tell(leaving=False)
        elif self._alarms.now - self._heard_at >= self._patience_ms * MS:
            self._wait(self._limits.silent_ms)
            self._lead()
        self._alarms.after(max(1, self._limits.present_ms // 2), self._look)

    def _tell(self, *, leaving: bool) -> None:
        for node in self._others:
            self._send(node, FrontLeads(self._term, leaving))
