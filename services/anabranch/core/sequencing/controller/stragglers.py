"""Sequencing members that are slow for long: an append waits for all members (LazyLog, 5.5).

A member straggles while it is behind where others were some time ago: behind any other in what is
ordered, or behind a majority in what it has taken. A leader is never behind in the first, for the
others order what it says; but appends wait for its answer like for any other. One member alone may
have taken what its client never sent to the others. Where all are slow, nobody is behind.

A client with few appends under way waits for the straggler, which then catches up for a moment. So
the time that a member is behind adds up, and time in which it keeps up takes only a part off.
"""

from collections import deque
from dataclasses import dataclass

from anabranch.core.limits import Limits
from anabranch.core.quorum import MAJORITY, Quorum, agreed, f_plus_one
from anabranch.core.types import MS, NEVER, Nanoseconds, Position

_FORGIVEN = 4
"""So many seconds of keeping up make good one second behind."""


@dataclass(slots=True)
class _Pace:
    behind_for: Nanoseconds = 0
    """Up to when it said last how far it is."""
    noted_at: Nanoseconds = NEVER
    rests: int = 0
    rests_until: Nanoseconds = 0


class _Course:
    """How far a quorum of the members was, and when."""

    def __init__(self, quorum: Quorum) -> None:
        self._quorum = quorum
        self._history: deque[tuple[Nanoseconds, Position]] = deque()
        """The first entry is the last before the span that counts."""
        self._latest: dict[str, Position] = {}

    def is_behind(self, node: str, at: Position, *, now: Nanoseconds, since: Nanoseconds) -> bool:
        """Was a quorum beyond this position before `since`, and is it still? Members may give up
        what they have taken.
        """
        history, self._latest[node] = self._history, at
        reached = agreed(list(self._latest.values()), self._quorum.size(len(self._latest)))
        assert reached is not None, "a quorum is no more than there are"
        if not history or reached > history[-1][1]:
            history.append((now, reached))
        while len(history) > 1 and history[1][0] <= since:
            history.popleft()
        when, expected = history[0]
        return when <= since and at < min(expected, reached)

    def clear(self) -> None:
        self._history.clear()
        self._latest.clear()


class Stragglers:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._ordered = _Course(f_plus_one(0))
        self._taken = _Course(MAJORITY)
        self._paces: dict[str, _Pace] = {}

    def note(self, node: str, ordered: Position, tail: Position, now: Nanoseconds) -> None:
        """A member says how far it is: `tail` counts what is ordered and what it has taken."""
        assert 0 <= ordered <= tail
        since = now - self._limits.straggle_ms * MS
        behind = self._ordered.is_behind(node, ordered, now=now, since=since)
        behind |= self._taken.is_behind(node, tail, now=now, since=since)
        pace = self._paces.setdefault(node, _Pace())
        passed = max(0, now - pace.noted_at)
        if behind:
            pace.behind_for += passed
        else:
            pace.behind_for = max(0, pace.behind_for - passed // _FORGIVEN)
        pace.noted_at = now

    def straggles(self, node: str) -> bool:
        pace = self._paces.get(node)
        return pace is not None and pace.behind_for >= self._limits.straggles_ms * MS

    def rest(self, node: str, now: Nanoseconds) -> None:
        """It stays out of views for a while, each time for twice as long."""
        pace = self._paces[node]
        limits = self._limits
        longest = limits.straggler_rest_ms_max
        rest = min(limits.straggles_ms << min(pace.rests + 1, 20), longest)
        assert rest > 0
        self._paces[node] = _Pace(rests=pace.rests + 1, rests_until=now + rest * MS)

    def resting(self, node: str, now: Nanoseconds) -> bool:
        pace = self._paces.get(node)
        return pace is not None and now < pace.rests_until

    def begin(self) -> None:
        """Another view, or the controller itself was away: what was measured says nothing."""
        self._ordered.clear()
        self._taken.clear()
        for pace in self._paces.values():
            pace.behind_for, pace.noted_at = 0, NEVER
