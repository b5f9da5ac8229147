"""Back-off of those who are refused again and again: the longer, the more often.

Whoever knows who may do what is asked over the network. A stranger with random tokens, or a client
that tries one forbidden thing after the other, must not take the turns of everybody else.
"""

from collections.abc import Hashable

from anabranch.core.types import MS, Nanoseconds

FREE = 4
"""Refusals in a row that cost nothing: a rollout or a typing error makes as many."""
FIRST_NS: Nanoseconds = 250 * MS
LONGEST_NS: Nanoseconds = 30_000 * MS


class Backoff:
    """By whom the failures are counted is the caller's affair: an address, or a name."""

    __slots__ = ("_entries_max", "_known")

    def __init__(self, entries_max: int) -> None:
        assert entries_max > 0
        self._entries_max = entries_max
        self._known: dict[Hashable, tuple[int, Nanoseconds]] = {}
        """Refusals in a row, and until when nothing is asked."""

    def __len__(self) -> int:
        return len(self._known)

    def until(self, who: Hashable, now: Nanoseconds) -> Nanoseconds:
        """When the next question may be asked; 0: now."""
        until = self._known.get(who, (0, 0))[1]
        assert until >= 0
        return until if now < until else 0

    def refused(self, who: Hashable, now: Nanoseconds) -> None:
        refusals = self._known.pop(who, (0, 0))[0] + 1
        beyond = refusals - FREE
        # The shift is bounded: the longest pause is reached long before.
        pause = min(FIRST_NS << min(beyond - 1, 16), LONGEST_NS) if beyond > 0 else 0
        assert 0 <= pause <= LONGEST_NS
        self._known[who] = refusals, now + pause
        if len(self._known) > self._entries_max:
            del self._known[next(iter(self._known))]

    def accepted(self, who: Hashable) -> None:
        self._known.pop(who, None)
