"""Reads: of stable positions at once, of later ones when they become stable (LazyLog, 4.4).

A read that waits is an entry in a heap: it holds up neither pushes nor other reads.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from anabranch.core.alarms import Alarm, Alarms
from anabranch.core.askers import asker_of
from anabranch.core.budget import Budget
from anabranch.core.errors import AnabranchError, Overloaded, PositionTrimmed
from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.protocol.messages import Read, Records
from anabranch.core.erwin.shard.contents import Contents
from anabranch.core.erwin.shard.counters import ErwinShardCounters
from anabranch.core.erwin.shard.item_reader import ItemReader
from anabranch.core.erwin.shard.items import ShardItem
from anabranch.core.erwin.shard.passages import Bounds, Passage, gather
from anabranch.core.limits import Limits
from anabranch.core.machine import Effect, Reply, Token
from anabranch.core.types import Position

_HEAP_SLACK = 1_024
_POSITIONS_MIN = 16
"""So many positions are looked at for a read of fewer records: some may be no-ops."""

Name = Callable[[int | None, Position], str | None]


@dataclass(slots=True)
class HeldRead:
    message: Read
    alarm: Alarm | None
    """Of its deadline. None: its position is stable, and its items are fetched."""


class Reads:
    """Of a primary."""

    def __init__(
        self,
        limits: Limits,
        contents: Contents,
        reader: ItemReader,
        name: Name,
        effects: list[Effect],
        alarms: Alarms,
        counters: ErwinShardCounters,
    ) -> None:
        self._limits = limits
        self._contents = contents
        self._reader = reader
        self._name = name
        self._effects = effects
        self._alarms = alarms
        self._counters = counters
        self._held: dict[Token, HeldRead] = {}
        self._room = Budget(limits.waits_max)
        """Shared by those whose reads are held."""
        self._order: list[tuple[Position, Token]] = []
        """Those that wait for a position; also some that were dropped since."""

    def __len__(self) -> int:
        """Held reads."""
        return len(self._held)

    def read(self, token: Token, message: Read) -> None:
        """Raises PositionTrimmed, and Overloaded where too many wait."""
        assert token not in self._held, "each request has a token of its own"
        if message.start < self._contents.readable:
            self._answer(token, message)
        elif message.wait_ms <= 0:
            self._answer_short(token, message)
        else:
            self._take_room(token)
            wait_ms = min(message.wait_ms, self._limits.read_wait_ms_max)
            alarm = self._alarms.after(wait_ms, partial(self._expire, token))
            self._held[token] = HeldRead(message, alarm)
            heapq.heappush(self._order, (message.start, token))
            self._counters.slow_reads += 1

    def pump(self) -> None:
        """Answer those whose position is stable by now."""
        if not self._order:
            return
        readable = self._contents.readable
        while self._order and self._order[0][0] < readable:
            token = heapq.heappop(self._order)[1]
            held = self._held.get(token)
            if held is not None and held.alarm is not None:
                held.alarm.cancel()
                self._release(token)
                self._answer_or_refuse(token, held.message)

    def drop(self, token: Token) -> None:
        """Nobody waits any more."""
        held = self._release(token)
        if held is not None and held.alarm is not None:
            held.alarm.cancel()
        if len(self._order) > 2 * len(self._held) + _HEAP_SLACK:
            self._order = [each for each in self._order if each[1] in self._held]
            heapq.heapify(self._order)

    def abandon(self, answer: object) -> None:
        """Another replica is the primary."""
        for token in list(self._held):
            self.drop(token)
            self._effects.append(Reply(token, answer))
        self._order.clear()

    def _expire(self, token: Token) -> None:
        held = self._release(token)
        assert held is not None
        assert held.alarm is not None, "what is stable is answered without a deadline"
        self._answer_short(token, held.message)

    def _take_room(self, token: Token) -> None:
        if not self._room.take(asker_of(token), 1):
            what = "this client's share of reads that wait"
            raise Overloaded(what, self._room.limit, "waits_max")

    def _release(self, token: Token) -> HeldRead | None:
        """None if it isn't held any more."""
        held = self._held.pop(token, None)
        if held is not None:
            self._room.give(asker_of(token), 1)
        return held

    def _answer_or_refuse(self, token: Token, message: Read) -> None:
        try:
            self._answer(token, message)
        except AnabranchError as error:
            self._counters.refused += 1
            self._effects.append(Reply(token, Refused.of(error)))

    def _answer(self, token: Token, message: Read) -> None:
        contents = self._contents
        if message.start < contents.marks.trimmed:
            raise PositionTrimmed(message.start, contents.marks.trimmed)
        assert message.start < contents.readable
        low = contents.map.holder(message.start)
        # Whoever wants few records isn't looked up many: others' rows count as positions, too.
        wanted = message.start + max(message.records_max, _POSITIONS_MIN)
        high = contents.map.holder(min(contents.readable, wanted) - 1) + 1
        bytes_max = min(message.bytes_max, self._limits.read_bytes_max)
        items = self._reader.cached(low, high, bytes_max)
        if items is not None:
            self._answer_with(token, message, items)
            return
        self._take_room(token)
        self._held[token] = HeldRead(message, None)
        self._reader.fetch(low, high, bytes_max, partial(self._fetched, token))

    def _fetched(self, token: Token, items: list[ShardItem]) -> None:
        held = self._release(token)
        if held is None:
            return  # the client has gone
        assert held.alarm is None, "a token names one request"
        if items:
            self._answer_with(token, held.message, items)
        else:
            self._answer_or_refuse(token, held.message)  # trimmed meanwhile

    def _answer_with(self, token: Token, message: Read, items: list[ShardItem]) -> None:
        bounds = Bounds(
            stable=self._contents.marks.stable,
            bytes_max=min(message.bytes_max, self._limits.read_bytes_max),
            records_max=min(message.records_max, self._limits.batch_records_max),
        )
        self._reply(token, gather(items, message.start, bounds, self._name))

    def _answer_short(self, token: Token, message: Read) -> None:
        self._counters.short_reads += 1
        self._reply(token, Passage(message.start))

    def _reply(self, token: Token, passage: Passage) -> None:
        self._counters.reads += 1
        marks = self._contents.marks
        records = Records(
            upto=passage.upto,
            stable=marks.stable,
            trimmed=marks.trimmed,
            firsts=tuple(passage.firsts),
            counts=tuple(passage.counts),
            batches=tuple(passage.batches),
            elsewhere=tuple(passage.elsewhere),
        )
        self._effects.append(Reply(token, records))
