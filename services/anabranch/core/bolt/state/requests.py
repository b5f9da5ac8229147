"""Outcomes of requests that are remembered, so that a repetition gets the first outcome (spec D4).

Requests are kept by their own identities, apart from the logs they were about: whatever becomes of
a log, what was done under a request id stays known for as long as that is promised.
"""

from collections import OrderedDict
from collections.abc import Iterator
from hashlib import blake2b
from typing import Generic, TypeVar

from anabranch.core.bolt.protocol.commands import Outcome, Receipt
from anabranch.core.errors import BY_CODE, RequestReused
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.records.digest import UNKNOWN, matches
from anabranch.core.types import Milliseconds, Position

APART_FORMAT = 4
"""From this format on appends are remembered here, and refusals that may pass are forgotten."""
LOG_FORMAT = 9
"""From this format on an append's request id is known at the log that it was appended to only."""
ANY_LOG = 0
"""The log's tag of an append that was remembered before `LOG_FORMAT`."""

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
            self._forgotten(oldest)

    def _forgotten(self, identity: Id) -> None:
        """A subclass keeps more of it."""


class RememberedAppends(Requests[tuple[int, int], Position | Receipt]):
    """First outcomes of appends, by the request's identity and the log's tag.

    Clients compute the identity from the log's name and the request id, and whoever may append to
    any log can send any identity there. So it counts for that log only: otherwise a stranger who
    guesses a request id could have another log's append refused, or taken for a repetition.
    """

    __slots__ = ("_tags",)

    def __init__(self) -> None:
        super().__init__()
        self._tags: dict[int, list[int]] = {}
        """Of every identity; mostly one."""

    def at_log(
        self, identity: int, name: str, digest: int, cluster_format: int
    ) -> Position | Receipt | None:
        """RequestReused if the request that is remembered appended other records to this log."""
        assert identity >= 0, "a request has an identity"
        known = None
        if cluster_format >= LOG_FORMAT:
            known = self.outcome((identity, log_tag(name)), digest)
        return self.outcome((identity, ANY_LOG), digest) if known is None else known

    def at_gone_log(self, identity: int, digest: int) -> Position | Receipt | None:
        """Of a log that is no more: its name isn't known. None if several logs had this identity,
        of which one at most had it honestly.
        """
        tags = self._tags.get(identity, ())
        return self.outcome((identity, tags[0]), digest) if len(tags) == 1 else None

    def remember_append(
        self,
        key: tuple[int, int],
        at: Milliseconds,
        outcome: Position | Receipt,
        digest: int,
    ) -> None:
        """`key`: the request's identity, and the tag of its log."""
        self.remember(key, at, outcome, digest)
        tags = self._tags.setdefault(key[0], [])
        assert key[1] not in tags, "the first outcome at a log counts"
        tags.append(key[1])

    def save(self, cluster_format: int) -> "SavedAppends":
        kept = self._kept.items()
        appends = [(identity, at, outcome) for (identity, _), (at, outcome, _) in kept]
        if cluster_format >= LOG_FORMAT:
            return appends, [], [(tag, digest) for (_, tag), (_, _, digest) in kept]
        return appends, [(identity, digest) for (identity, _), digest in self.digests()], []

    def load(
        self,
        appends: list[tuple[int, Milliseconds, Position | Receipt]],
        digests: list[tuple[int, int]],
        logs: list[tuple[int, int]],
    ) -> None:
        assert not self._kept, "a snapshot comes before all commands"
        known = dict(digests)
        before = ((ANY_LOG, known.get(identity, UNKNOWN)) for identity, _, _ in appends)
        for (identity, at, outcome), (tag, digest) in zip(appends, logs or before, strict=True):
            self.remember_append((identity, tag), at, outcome, digest)

    def clear(self) -> None:
        super().clear()
        self._tags.clear()

    def _forgotten(self, identity: tuple[int, int]) -> None:
        tags = self._tags[identity[0]]
        assert identity[1] in tags, "every append is known by its log"
        tags.remove(identity[1])
        if not tags:
            del self._tags[identity[0]]


SavedAppends = tuple[
    list[tuple[int, Milliseconds, Position | Receipt]], list[tuple[int, int]], list[tuple[int, int]]
]
"""Identities, times and outcomes; digests by identity, before `LOG_FORMAT`; else the log's tag and
the digest of each.
"""


def log_tag(name: str) -> int:
    """Eight bytes of a log's name; never `ANY_LOG`."""
    assert name, "every log has a name"
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) or 1


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
