"""Subscriptions: a shard's records as soon as they are durable and foreseen, confirmations when
their cuts are actual (Belfast, 4.2, 4.3).

A record is delivered when it is durable and has a place in a published window (F3, F8). What a
subscriber hears is in order: the eras before what lies in them, a failure before what follows it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from anabranch.core.belfast.ledger.ledger import Ledger
from anabranch.core.belfast.ledger.placements import Placements
from anabranch.core.belfast.ledger.windows import Run, ShardId, extend
from anabranch.core.belfast.protocol.messages import Confirmed, Delivered, Failed, Subscribe, Where
from anabranch.core.belfast.protocol.predicates import wanted
from anabranch.core.belfast.shard.counters import ShardCounters
from anabranch.core.belfast.shard.decision_log import Following
from anabranch.core.belfast.shard.streams import Stream
from anabranch.core.errors import AnabranchError, Overloaded, PositionTrimmed, ShardAway
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import Effect, Reply, Token
from anabranch.core.replication.entries import Item
from anabranch.core.replication.log import Log
from anabranch.core.types import LocalSequence, Position
from anabranch.core.wire.session import Credit


@dataclass(slots=True)
class Passage:
    """Some of a local log, as subscribers get it."""

    end: LocalSequence
    complete: bool = True
    """Nothing was left out for want of room."""
    size: int = 0
    records: int = 0
    runs: list[Run] = field(default_factory=list[Run])
    batches: list[bytes] = field(default_factory=list[bytes])
    parts: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])


class Delivering:
    """Every subscriber of this replica."""

    def __init__(
        self,
        limits: Limits,
        following: Following,
        log: Log,
        placements: Placements,
        effects: list[Effect],
        counters: ShardCounters,
    ) -> None:
        self._limits = limits
        self._following = following
        self._log = log
        self._placements = placements
        self._effects = effects
        self._counters = counters
        self._open: dict[Token, Stream] = {}
        self._shared: dict[tuple[LocalSequence, Position, Where | None], Delivered] = {}
        self._passages: dict[tuple[LocalSequence, LocalSequence, Where | None], Passage] = {}
        self._pumped = (-1, -1, -1)
        """The entry applied, and how far records were delivered and confirmed, when it was last
        looked whether there is anything to push.
        """
        self._room = False
        """Since then somebody came, or has room again."""

    def __len__(self) -> int:
        return len(self._open)

    @property
    def _ledger(self) -> Ledger:
        return self._following.ledger

    def open(self, token: Token, shard: ShardId, message: Subscribe) -> Stream:
        trimmed, limit = self._ledger.trimmed, self._limits.subscriptions_max
        if message.start < trimmed:
            raise PositionTrimmed(message.start, trimmed)
        if len(self._open) >= limit:
            raise Overloaded("subscriptions", limit, "subscriptions_max")
        assert token not in self._open, "each request has a token of its own"
        credit = max(1, min(message.window_bytes, self._limits.subscription_bytes))
        stream = self._open[token] = Stream(
            token=token, shard=shard, message=message, credit=credit
        )
        self._room = True
        return stream

    def credit(self, message: Credit) -> None:
        stream = self._open.get(message.subscription)
        if stream is not None and message.bytes > 0:
            stream.credit = min(stream.credit + message.bytes, self._limits.subscription_bytes)
            self._room = True

    def drop(self, token: Token) -> None:
        stream = self._open.pop(token, None)
        if stream is not None:
            stream.over = True

    def failed(self, failed: Failed) -> None:
        """A new view: what comes after this is of it (4.8)."""
        if self._open:
            self._counters.views += 1
        for token in self._open:
            self._effects.append(Reply(token, failed))

    def end(self, answer: object, which: Callable[[Stream], bool]) -> None:
        """These subscribers are told to go elsewhere, or why there is no more."""
        for stream in [each for each in self._open.values() if which(each)]:
            self.drop(stream.token)
            self._effects.append(Reply(stream.token, answer))

    def pump(self, me: ShardId, upto: LocalSequence, confirmed: LocalSequence) -> None:
        """Push what there is to whoever has room: own records up to `upto`, of which those below
        `confirmed` are final.
        """
        at = (self._following.applied, upto, confirmed)
        if not self._open or (at == self._pumped and not self._room):
            return
        self._pumped, self._room = at, False
        self._shared.clear()
        self._passages.clear()
        news = Confirmed(self._ledger.view, self._ledger.confirmed)
        for stream in list(self._open.values()):
            stream.tell_eras(self._ledger, self._effects)
            if stream.shard == me:
                self._push(stream, upto, confirmed)
            else:
                self._advance(stream, self._ledger.horizon)
            if not stream.over:
                stream.tell_confirmed(news, self._effects)

    def _push(self, stream: Stream, upto: LocalSequence, confirmed: LocalSequence) -> None:
        if not stream.begun:
            if stream.start > self._ledger.horizon:
                return
            stream.next = self._placements.below(stream.start)
        while stream.next < upto and stream.credit > 0 and not stream.fetching:
            edge = confirmed if stream.next < confirmed else upto
            before = stream.next
            self._push_next(stream, min(edge, upto), confirmed)
            if stream.over:
                return
            if stream.next == before:
                break
        self._advance(stream, self._slot(stream.next))

    def _push_next(self, stream: Stream, edge: LocalSequence, confirmed: LocalSequence) -> None:
        assert stream.credit > 0, "nothing may be delivered"
        if stream.next < self._placements.floor:
            self._refuse(stream, PositionTrimmed(stream.upto, self._ledger.trimmed))
            return
        if self._placements.position(stream.next) is None:
            self._refuse(stream, ShardAway(self._name, "it looks for where older records are"))
            return
        edge = min(edge, stream.next + self._limits.batch_records_max)
        known = self._passages.get((stream.next, edge, stream.where))
        if known is not None and known.size <= stream.credit:
            self._deliver(stream, known, confirmed)
            return
        items = self._log.items(stream.next, edge)
        if items is None:
            self._fetch(stream, edge)
            return
        room = min(stream.credit, self._limits.read_bytes_max)
        passage = self._passage(items, stream.next, edge, room, stream.where)
        if passage.complete:
            self._passages[stream.next, edge, stream.where] = passage
        self._deliver(stream, passage, confirmed)

    @property
    def _name(self) -> str:
        me = self._following.me
        return me.name if me else ""

    def _refuse(self, stream: Stream, why: AnabranchError) -> None:
        self.drop(stream.token)
        self._counters.refused += 1
        self._effects.append(Reply(stream.token, Refused.of(why)))

    def _fetch(self, stream: Stream, edge: LocalSequence) -> None:
        """Older records are read back from the journal, a piece at a time."""
        assert not stream.fetching, "one piece is read at a time"
        low = stream.next
        room = min(stream.credit, self._limits.read_bytes_max)

        def fetched(items: list[Item] | None) -> None:
            stream.fetching, self._room = False, True
            if stream.over or not items:
                return
            # What was confirmed then still is, and what wasn't is looked at by the next pump.
            sure = self._placements.below(self._ledger.confirmed)
            end = min(edge, items[-1].end, sure if low < sure else self._placements.end)
            if stream.next == low < end:
                self._deliver(stream, self._passage(items, low, end, room, stream.where), sure)

        stream.fetching = True
        self._log.fetch(low, edge, room, fetched)

    def _passage(
        self,
        items: list[Item],
        low: LocalSequence,
        high: LocalSequence,
        room: int,
        where: Where | None,
    ) -> Passage:
        assert low < high, "there is something to deliver"
        passage = Passage(low)
        for item in items:
            if item.first >= high:
                break
            if passage.size >= room:
                passage.complete = False
                break
            begin, end = max(low, item.first), min(high, item.end)
            passage.end = end
            if not item.batch:
                continue
            parts = wanted(item.batch, begin - item.first, end - begin, where)
            for skip, count in parts:
                first = item.first + skip
                passage.parts.append((skip, count))
                passage.batches.append(item.batch)
                passage.records += count
                extend(passage.runs, self._placements.runs(first, first + count))
            passage.size += len(item.batch) if parts else 0
        return passage

    def _deliver(self, stream: Stream, passage: Passage, confirmed: LocalSequence) -> None:
        assert passage.end >= stream.next, "deliveries only go on"
        before = (stream.next, stream.upto, stream.where)
        stream.next = passage.end
        stream.upto = max(stream.upto, self._slot(passage.end))
        stream.credit -= passage.size
        speculative = passage.end > confirmed
        self._counters.delivered += passage.records
        self._counters.speculative += passage.records if speculative else 0
        delivered = self._shared.get(before)
        if delivered is None or not passage.complete:
            delivered = Delivered(
                self._ledger.view,
                stream.upto,
                speculative,
                tuple(passage.runs),
                tuple(passage.batches),
                tuple(passage.parts),
            )
            if passage.complete:
                self._shared[before] = delivered
        self._effects.append(Reply(stream.token, delivered))

    def _advance(self, stream: Stream, upto: Position) -> None:
        """There is nothing below: said also when nothing else is (spec, D10)."""
        if upto > stream.upto:
            stream.upto = upto
            speculative = upto > self._ledger.confirmed
            empty = Delivered(self._ledger.view, upto, speculative, (), (), ())
            self._effects.append(Reply(stream.token, empty))

    def _slot(self, local: LocalSequence) -> Position:
        """Where the shard's next record is or will be, at the least."""
        places, me = self._placements, self._following.me
        position = places.position(local)
        if position is not None:
            return position
        if me is None or local >= max(me.placed, places.end):
            return self._ledger.horizon
        # It has a place, which isn't known here.
        before = places.position(local - 1)
        return 0 if before is None else before + 1
