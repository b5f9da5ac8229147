"""Appends, and their answers: given when an actual cut covers all of a batch, and not before (F7).

Order doesn't follow from durability alone: who is told a position must know that nothing is put
before it any more (Belfast, 3.2).
"""

import heapq
from dataclasses import dataclass, field

from anabranch.core.belfast.ledger.placements import Placements
from anabranch.core.belfast.protocol.messages import Appended
from anabranch.core.belfast.shard.counters import ShardCounters
from anabranch.core.belfast.shard.duplicates import Retries
from anabranch.core.errors import AnabranchError, OutcomeUnknown, Overloaded, RequestForgotten
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import Buffer, Effect, Reply, Token
from anabranch.core.records.batch import Header
from anabranch.core.replication.replica import Replica
from anabranch.core.types import NEVER, LocalSequence


@dataclass(slots=True)
class Waiting:
    """A batch that is logged and not confirmed, and who wants to know where it is."""

    end: LocalSequence
    bytes: int
    tokens: list[Token] = field(default_factory=list[Token])


class Acknowledging:
    """Of one primary."""

    def __init__(
        self,
        limits: Limits,
        shard: str,
        replica: Replica,
        placements: Placements,
        retries: Retries,
        effects: list[Effect],
        counters: ShardCounters,
    ) -> None:
        self._limits = limits
        self._shard = shard
        self._replica = replica
        self._placements = placements
        self._retries = retries
        self._effects = effects
        self._counters = counters
        self._waiting: dict[LocalSequence, Waiting] = {}
        self._order: list[tuple[LocalSequence, LocalSequence]] = []
        """End and first of those that wait, as a heap: a retry may come for any of them."""
        self._askers: dict[Token, LocalSequence] = {}
        self.held_bytes = 0

    @property
    def idle(self) -> bool:
        return not self._waiting

    @property
    def oldest(self) -> LocalSequence:
        """Of those that wait."""
        return self._order[0][1] if self._order else NEVER

    def repeats(
        self, token: Token, batch: Buffer, header: Header, confirmed: LocalSequence
    ) -> bool:
        """Is this batch there already? Then it is answered as the first time."""
        place = self._retries.find(batch, header)
        if place is not None:
            self._counters.repeated += 1
            self._again(token, *place, confirmed)
        return place is not None

    def append(self, token: Token, batch: bytes, header: Header) -> None:
        """A batch that was checked, and is new."""
        assert header.count > 0, "a batch has one record at least"
        limit = self._limits.queue_bytes_max
        if self.held_bytes + len(batch) > limit:
            raise Overloaded(f"appends to shard {self._shard}", limit, "queue_bytes_max")
        first = self._replica.append(batch, header.count)
        self._counters.appends += 1
        self._wait(token, first, header.count, len(batch))

    def settle(self, confirmed: LocalSequence) -> None:
        """Answer what the cuts have come to."""
        while self._order and self._order[0][0] <= confirmed:
            end, first = heapq.heappop(self._order)
            waiting = self._waiting.pop(first)
            self.held_bytes -= waiting.bytes
            assert self.held_bytes >= 0, "more was answered than was taken"
            self._counters.appended += 1
            self._counters.appended_records += end - first
            if waiting.tokens and self._is_forgotten(first):
                self._answer(waiting.tokens, Refused.of(self._forgotten()))
            elif waiting.tokens:
                appended = Appended(tuple(self._placements.runs(first, end)))
                for token in waiting.tokens:
                    del self._askers[token]
                    self._effects.append(Reply(token, appended))

    def drop(self, token: Token) -> None:
        """Nobody waits any more; the batch is in the log all the same."""
        first = self._askers.pop(token, None)
        if first is not None:
            self._waiting[first].tokens.remove(token)

    def void(self, beyond: LocalSequence, why: AnabranchError) -> None:
        """What ends beyond this place was never confirmed, and never will be; but some records of
        a batch may be.
        """
        assert beyond >= 0, "sequences begin at 0"
        kept: list[tuple[LocalSequence, LocalSequence]] = []
        refused, unknown = Refused.of(why), Refused.of(self._unknown())
        for end, first in self._order:
            if end <= beyond:
                kept.append((end, first))
                continue
            waiting = self._waiting.pop(first)
            self.held_bytes -= waiting.bytes
            assert self.held_bytes >= 0, "more was answered than was taken"
            unsure = first < beyond
            self._answer(waiting.tokens, unknown if unsure else refused)
        heapq.heapify(kept)
        self._order = kept

    def abandon(self, answer: object) -> None:
        """Another replica is the primary: it knows what becomes of them."""
        for _, first in sorted(self._order):
            self._answer(self._waiting[first].tokens, answer)
        self._order, self._waiting, self.held_bytes = [], {}, 0
        assert not self._askers, "everybody is answered"

    def _answer(self, tokens: list[Token], answer: object) -> None:
        for token in tokens:
            del self._askers[token]
            self._counters.refused += 1
            self._effects.append(Reply(token, answer))

    def _again(
        self, token: Token, first: LocalSequence, count: int, confirmed: LocalSequence
    ) -> None:
        if first + count > confirmed:
            self._wait(token, first, count, 0)
        elif self._is_forgotten(first):
            raise self._forgotten()
        else:
            runs = tuple(self._placements.runs(first, first + count))
            self._effects.append(Reply(token, Appended(runs)))

    def _is_forgotten(self, first: LocalSequence) -> bool:
        """Some of a batch may have been trimmed before the rest of it was confirmed."""
        return self._placements.position(first) is None

    def _unknown(self) -> OutcomeUnknown:
        what = f"an append to shard {self._shard}"
        return OutcomeUnknown(what, "the shard failed when part of it was confirmed")

    def _forgotten(self) -> RequestForgotten:
        return RequestForgotten(f"this append to shard {self._shard}, which was trimmed,")

    def _wait(self, token: Token, first: LocalSequence, count: int, size: int) -> None:
        assert count > 0, "a batch has one record at least"
        waiting = self._waiting.get(first)
        if waiting is None:
            waiting = self._waiting[first] = Waiting(first + count, size)
            self.held_bytes += size
            heapq.heappush(self._order, (waiting.end, first))
        waiting.tokens.append(token)
        self._askers[token] = first
