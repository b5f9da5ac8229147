"""Amounts that many share: memory, connections, whatever a process has only so much of.

Shares follow the dynamic thresholds of shared-memory switches (Choudhury and Hahne, 1998): a
principal may hold as much as is free. One alone gets half; of n that want all they can get, each
gets one part of n + 1, and the last part stays free for whoever comes next. Nothing is reserved for
anybody, and nobody needs to be counted.
"""

from collections import deque
from collections.abc import Hashable

from anabranch.core.types import Nanoseconds

EVERYBODY = ""
"""The principal of all clients where they aren't told apart: nobody else needs a share."""

STRANGERS = "(strangers)"
"""The principal of all connections over which nobody has said who they are."""

_SLOTS = 8
"""A window is so many intervals; what was taken in one is given back together."""


class Budget:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._held: dict[Hashable, int] = {}

    def held(self, who: Hashable) -> int:
        return self._held.get(who, 0)

    def room(self, who: Hashable, *, spare: int = 0, spare_of_who: int = 0) -> int:
        """The most that may be taken at once; 0 or less if there is none. `spare`: so much of what
        is used isn't counted here, and so much of that is held by `who`.
        """
        free = self.limit - self.used + spare
        held = self._held.get(who, 0) - spare_of_who
        # Who holds nothing gets what there is, so that one large request isn't refused for ever.
        return free if who == EVERYBODY or not held else (free - held) // 2

    def has_room(self, who: Hashable) -> bool:
        """May anything be taken?"""
        free = self.limit - self.used
        held = self._held.get(who, 0)
        return free > 0 if who == EVERYBODY or not held else free - held > 1

    def take(self, who: Hashable, amount: int) -> bool:
        """False if there is no room for all of it, and then nothing was taken."""
        assert amount >= 0, f"{amount} is taken"
        if amount > self.room(who):
            return False
        self.hold(who, amount)
        return True

    def hold(self, who: Hashable, amount: int) -> None:
        """Count what is held already, room or not."""
        assert amount >= 0, f"{amount} is held"
        self.used += amount
        self._held[who] = self._held.get(who, 0) + amount

    def change(self, who: Hashable, more: int) -> bool:
        """Count so much more, or less if it is negative, room or not; then as `has_room`."""
        held = self._held.get(who, 0) + more
        self.used = used = self.used + more
        assert 0 <= held <= used, f"{who or 'everybody'} holds {held} of {used}"
        if held:
            self._held[who] = held
        else:
            self._held.pop(who, None)
        free = self.limit - used
        return free > 0 if who == EVERYBODY or not held else free - held > 1

    def give(self, who: Hashable, amount: int) -> None:
        assert amount >= 0, f"{amount} is given back"
        left = self._held.get(who, 0) - amount
        assert left >= 0, f"{who or 'everybody'} gives back {amount}, {-left} more than was taken"
        assert amount <= self.used, f"{amount} of {self.used} is given back"
        self.used -= amount
        if left:
            self._held[who] = left
        else:
            self._held.pop(who, None)


class Window:
    """A budget of what is taken once and given back by itself, `span` later at most."""

    def __init__(self, limit: int, span: Nanoseconds) -> None:
        assert span > 0, "what is taken is given back later"
        self._budget = Budget(limit)
        self._slot = max(1, span // _SLOTS)
        self._taken: deque[tuple[Nanoseconds, dict[str, int]]] = deque()

    @property
    def limit(self) -> int:
        return self._budget.limit

    def take(self, who: str, now: Nanoseconds) -> bool:
        """One more; always for everybody, of whom there is no other to protect."""
        if who == EVERYBODY:
            return True
        slot = now // self._slot
        assert not self._taken or self._taken[-1][0] <= slot, "time never goes back"
        while self._taken and self._taken[0][0] < slot - _SLOTS:
            for other, amount in self._taken.popleft()[1].items():
                self._budget.give(other, amount)
        if not self._budget.take(who, 1):
            return False
        if not self._taken or self._taken[-1][0] != slot:
            self._taken.append((slot, {}))
        counts = self._taken[-1][1]
        counts[who] = counts.get(who, 0) + 1
        return True
