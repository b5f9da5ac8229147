"""Sequencing members that are slow for long: an append waits for all members (LazyLog, 5.5).

A member straggles while it is behind where another member was some time ago. Where all are slow,
nobody is behind.
"""

from collections import deque
from dataclasses import dataclass

from anabranch.core.limits import Limits
from anabranch.core.types import MS, NEVER, Nanoseconds, Position


@dataclass(slots=True)
class _Pace:
    behind_since: Nanoseconds = NEVER
    rests: int = 0
    rests_until: Nanoseconds = 0


class Stragglers:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._history: deque[tuple[Nanoseconds, Position]] = deque()
        """When what was ordered at some member; the first is the last before the span that
        counts.
        """
        self._paces: dict[str, _Pace] = {}

    def note(self, node: str, ordered: Position, now: Nanoseconds) -> None:
        """A member says how far it is."""
        assert ordered >= 0
        history, before = self._history, now - self._limits.straggle_ms * MS
        if not history or ordered > history[-1][1]:
            history.append((now, ordered))
        while len(history) > 1 and history[1][0] <= before:
            history.popleft()
        pace = self._paces.setdefault(node, _Pace())
        when, expected = history[0]
        if when <= before and ordered < expected:
            pace.behind_since = min(pace.behind_since, now)
        else:
            pace.behind_since = NEVER

    def straggles(self, node: str, now: Nanoseconds) -> bool:
        pace = self._paces.get(node)
        return pace is not None and now - pace.behind_since >= self._limits.straggles_ms * MS

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
        self._history.clear()
        for pace in self._paces.values():
            pace.behind_since = NEVER
