"""Outcomes of requests that are remembered, so that a repetition gets the first outcome (spec D4).

Requests are kept by their own identities, apart from the logs they were about: whatever becomes of
a log, what was done under a request id stays known for as long as that is promised.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

from anabranch.core.bolt.protocol.commands import Outcome
from anabranch.core.errors import BY_CODE, RequestReused
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.records.digest import UNKNOWN, matches
from anabranch.core.types import Milliseconds

APART_FORMAT = 4
"""From this format on appends are remembered here, and refusals that may pass are forgotten."""

Id = TypeVar("Id")
Kept = TypeVar("Kept")


class Requests(Generic[Id, Kept]):
    """Outcomes by identity, oldest first; bounded by age and by number."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        # Ordered, because a plain dict that is emptied from the front is slow to find its first.
        self._kept: OrderedDict[Id, tuple[Milliseconds, Kept, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, identity: Id) -> bool:
        return identity in self._kept

    def items(self) -> Iterator[tuple[Id, Milliseconds, Kept]]:
        return ((identity, at, outcome) for identity, (at, outcome, _) in self._kept.items())

    def digests(self) -> Iterator[tuple[Id, int]]:
        """Those that are known."""
        kept = self._kept.items()
        return ((identity, digest) for identity, (_, _, digest) in kept if digest != UNKNOWN)

    def outcome(self, identity: Id, digest: int = UNKNOWN) -> Kept | None:
        """RequestReused if the request that is remembered asked for something else."""
        known = self._kept.get(identity)
        if known is None:
            return None
        if not matches(known[2], digest):
            raise RequestReused
        return known[1]

    def remember(
        self, identity: Id, at: Milliseconds, outcome: Kept, digest: int = UNKNOWN
    ) -> None:
        """`at` never goes back, so that the order is that of age."""
        assert identity not in self._kept, "the first outcome counts"
        self._kept[identity] = (at, outcome, digest)

    def clear(self) -> None:
        self._kept.clear()

    def prune(self, now: Milliseconds, limits: Limits) -> None:
        """Forget what is older than any caller may count on."""
        self._forget(now - limits.request_memory_ms, 0)

    def has_room(self, now: Milliseconds, limits: Limits) -> bool:
        """Is there room for one more, once the oldest are gone that nobody can still wait for?"""
        assert limits.requests_max > 0, "no request could be remembered"
        if len(self._kept) >= limits.requests_max:
            self._forget(now - limits.request_memory_min_ms, limits.requests_max - 1)
        return len(self._kept) < limits.requests_max

    def _forget(self, before: Milliseconds, kept_min: int) -> None:
        assert kept_min >= 0
        kept = self._kept
        while len(kept) > kept_min:
            oldest = next(iter(kept))
            if kept[oldest][0] >= before:
                return
            kept.popitem(last=False)


def is_kept(outcome: Outcome, cluster_format: int) -> bool:
    """A refusal that may pass changed nothing, and repeating the request must be able to succeed.

    Before `APART_FORMAT` only refusals that advise a retry were forgotten; a replay of older
    entries has to come to the same state.
    """
    if not isinstance(outcome, Refused):
        return True
    kind = BY_CODE.get(outcome.code)
    if kind is None:
        return True
    return not (kind.may_pass if cluster_format >= APART_FORMAT else kind.advice == "retry")
