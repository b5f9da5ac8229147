"""Mode st: how long shards wait for data that was announced and hasn't come (LazyLog, 5.4).

All positions behind a row wait for its data. So whoever announces appends may hold up the others
for `noop_ms`, which is given back in sixteen times as long; only rows that became no-ops count.
Whoever has used that up, and goes on to announce what never comes, holds them up for a moment each
time. The time runs from the announcement: what was announced together is given up together, in
however many row groups it is.

A shorter wait is always safe. An append whose data a primary doesn't have wasn't acknowledged, and
its client appends it again when it learns of the no-ops.
"""

from dataclasses import dataclass

from anabranch.core.sequencing.state.ring import Announcement
from anabranch.core.types import MS, Milliseconds, Nanoseconds

RETURN = 16
"""Time in which others were held up is given back in so many times as long."""
LEAST_PART = 32
"""A shard waits for at least this part of `noop_ms`, whoever has announced the row: data often
comes a little after it.
"""
GRACE_PART = 4
"""And for this part where the time allowed isn't used up: order may have been held up by others for
so long that the client has yet to find its shard.
"""
STEP_MS: Milliseconds = 50
"""Waits are rounded up to this, so that most rows of a group have the same."""


@dataclass(slots=True)
class _Account:
    left: Nanoseconds
    at: Nanoseconds
    """When so much was left."""


class Patience:
    """Of one leader, from fence to fence."""

    def __init__(self, noop_ms: Milliseconds) -> None:
        assert noop_ms > 0, "data often comes a little after its row"
        self._whole = noop_ms * MS
        self._accounts: dict[int, _Account] = {}
        """By principal; of those for whom not all is left."""

    def wait_ms(self, announced: Announcement | None, now: Nanoseconds) -> Milliseconds:
        """For the data of a row that is cut now. None: nobody knows any more who announced it."""
        whole = self._whole
        who, age = (announced.who, now - announced.at) if announced is not None else (-1, 0)
        allowed = self._left(who, now)
        wait = max(allowed - age, min(allowed, whole // GRACE_PART), whole // LEAST_PART)
        step = STEP_MS * MS
        return -(-wait // step) * STEP_MS

    def held_up(self, who: int, wait_ms: Milliseconds, now: Nanoseconds) -> None:
        """Rows of this principal became no-ops after so long a wait."""
        assert wait_ms >= 0
        left = max(0, self._left(who, now) - wait_ms * MS)
        self._accounts[who] = _Account(left, now)
        if len(self._accounts) > 1_000:
            for each in [each for each in self._accounts if self._left(each, now) == self._whole]:
                del self._accounts[each]

    def _left(self, who: int, now: Nanoseconds) -> Nanoseconds:
        account = self._accounts.get(who)
        if account is None:
            return self._whole
        assert account.at <= now, "time goes on"
        return min(self._whole, account.left + (now - account.at) // RETURN)
