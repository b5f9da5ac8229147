"""What the leader does for compactors: it says what to copy, and notices when their leases end."""

from anabranch.core.bolt.metadata.compaction import SCANNED_MAX, find
from anabranch.core.bolt.metadata.delegation import Delegation
from anabranch.core.bolt.protocol.commands import Bare
from anabranch.core.bolt.protocol.compactors import (
    TAKEN_COPIES_MAX,
    TAKEN_EXTENTS_MAX,
    CopyToMake,
    LapseCompactors,
    TakeCopies,
    TakenCopies,
)
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.bolt.state.scans import compactors
from anabranch.core.errors import AnabranchError, BadRequest
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.records.set_sum import UNKNOWN
from anabranch.core.types import Milliseconds


class CompactorDuties:
    """Known to the leader alone: which commands about compactors are on their way."""

    def __init__(self, replica: Replica, limits: Limits, delegation: Delegation) -> None:
        self._replica = replica
        self._limits = limits
        self._delegation = delegation
        self.lapsing = False
        """A LapseCompactors is on its way to the journal."""

    def take(self, query: TakeCopies, now: Milliseconds) -> TakenCopies | Refused:
        try:
            return self._take(query, now)
        except AnabranchError as error:
            return Refused.of(error)

    def overdue(self, now: Milliseconds) -> LapseCompactors | None:
        """Compactors that are to end, and those that can be forgotten."""
        if self.lapsing or not self._replica.compactors:
            return None
        ended = compactors.overdue(self._replica, now)
        # A URL is used before the lease ends, but a PUT takes its time, and clocks differ.
        forgotten = compactors.unusable(self._replica, now - self._limits.signed_url_ms)
        return LapseCompactors(ended, forgotten) if ended or forgotten else None

    def next_lapse(self) -> Milliseconds | None:
        if self.lapsing:
            return None
        return min(
            (
                each.expires
                for each in self._replica.compactors.values()
                if each.ended == compactors.RUNNING
            ),
            default=None,
        )

    def settled(self, command: Bare) -> bool:
        """A command was applied or refused: may orphans have been left behind?"""
        if isinstance(command, LapseCompactors):
            self.lapsing = False
            return bool(command.forgotten)
        return False

    def _take(self, query: TakeCopies, now: Milliseconds) -> TakenCopies:
        replica, limits = self._replica, self._limits
        compactor = compactors.alive(replica, query.compactor)
        plan = replica.plans.find(query.plan, query.log)
        log = replica.forest.find_own(query.log, "compaction")
        if not query.since >= 0:
            raise BadRequest(f"copies from position {query.since} on", "positions begin at 0")
        self._delegation.give_to(log, compactor.key, now)
        copies: list[CopyToMake] = []
        before, since, more = now - limits.compact_age_ms, query.since, True
        count = max(1, min(query.copies_max, TAKEN_COPIES_MAX))
        named = scanned = 0
        while more and len(copies) < count and max(named, scanned) < TAKEN_EXTENTS_MAX:
            found = find(replica, log, since, before, limits)
            scanned += found.scanned
            if found.copy is None:
                more = found.scanned >= SCANNED_MAX
                since = found.since
                continue
            extents = found.copy.extents
            since = extents[-1].first + extents[-1].count
            # Whether a copy is what was committed is judged by the sums: brokers copy what has
            # none, because they read the originals themselves.
            if all(each.sum != UNKNOWN for each in extents):
                named += len(extents)
                copies.append(CopyToMake(extents, found.copy.joined))
            more = since < plan.plan.end
        assert len(copies) <= count, "an answer is bounded"
        return TakenCopies(copies, since, more, secret=plan.secret)
