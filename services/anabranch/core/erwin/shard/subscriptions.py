"""Subscriptions: a shard's records as they become stable, as fast as a subscriber takes them."""

from anabranch.core.errors import AnabranchError, Overloaded, PositionTrimmed
from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.protocol.messages import Delivered, Subscribe
from anabranch.core.erwin.shard.contents import Contents
from anabranch.core.erwin.shard.counters import ErwinShardCounters
from anabranch.core.erwin.shard.item_reader import ItemReader
from anabranch.core.erwin.shard.items import ShardItem
from anabranch.core.erwin.shard.passages import Bounds, Passage, gather
from anabranch.core.limits import Limits
from anabranch.core.machine import Effect, Reply, Token
from anabranch.core.types import Position
from anabranch.core.wire.session import Credit


class Stream:
    """One subscriber."""

    __slots__ = ("credit", "fetching", "over", "token", "told", "upto")

    def __init__(self, token: Token, start: Position, credit: int) -> None:
        self.token = token
        self.upto = start
        """Everything of the shard's below is delivered."""
        self.told = start
        """What of that the subscriber was told."""
        self.credit = credit
        self.fetching = False
        self.over = False


class Subscriptions:
    """Of a primary."""

    def __init__(
        self,
        limits: Limits,
        contents: Contents,
        reader: ItemReader,
        effects: list[Effect],
        counters: ErwinShardCounters,
    ) -> None:
        self._limits = limits
        self._contents = contents
        self._reader = reader
        self._effects = effects
        self._counters = counters
        self._open: dict[Token, Stream] = {}
        self._shared: dict[Position, Passage] = {}
        """What streams at the same position get, in one pump."""
        self._pumped: Position = -1
        """How far was readable when all streams were looked at last."""
        self._ready: dict[Token, Stream] = {}
        """Streams that came since, or have room again."""

    def __len__(self) -> int:
        return len(self._open)

    def open(self, token: Token, message: Subscribe) -> None:
        """Raises PositionTrimmed and Overloaded."""
        trimmed, limit = self._contents.marks.trimmed, self._limits.subscriptions_max
        if message.start < trimmed:
            raise PositionTrimmed(message.start, trimmed)
        if len(self._open) >= limit:
            raise Overloaded("subscriptions", limit, "subscriptions_max")
        assert token not in self._open, "each request has a token of its own"
        credit = max(1, min(message.window_bytes, self._limits.subscription_bytes))
        self._ready[token] = self._open[token] = Stream(token, message.start, credit)

    def credit(self, message: Credit) -> None:
        stream = self._open.get(message.subscription)
        if stream is not None and message.bytes > 0:
            stream.credit = min(stream.credit + message.bytes, self._limits.subscription_bytes)
            self._ready[stream.token] = stream

    def drop(self, token: Token) -> None:
        stream = self._open.pop(token, None)
        self._ready.pop(token, None)
        if stream is not None:
            stream.over = True

    def end(self, answer: object) -> None:
        """Another replica is the primary."""
        for token in list(self._open):
            self.drop(token)
            self._effects.append(Reply(token, answer))

    def pump(self) -> None:
        """Push what there is to whoever has room."""
        if not self._open:
            return
        readable = self._contents.readable
        streams = self._ready if readable == self._pumped else self._open
        self._pumped, self._ready = readable, {}
        if streams:
            self._shared.clear()
            for stream in list(streams.values()):
                self._push(stream)

    def _push(self, stream: Stream) -> None:
        contents = self._contents
        while not stream.over and not stream.fetching and stream.credit > 0:
            if stream.upto >= contents.readable:
                break
            if stream.upto < contents.marks.trimmed:
                self._refuse(stream, PositionTrimmed(stream.upto, contents.marks.trimmed))
                return
            passage = self._shared.get(stream.upto)
            if passage is None or passage.size > stream.credit:
                items = self._items(stream)
                if items is None:
                    break
                passage = gather(items, stream.upto, self._bounds(stream))
                if stream.credit >= self._limits.subscription_bytes // 2:
                    self._shared[stream.upto] = passage
            if passage.upto == stream.upto:
                break
            self._take(stream, passage)
        self._tell_end(stream)

    def _bounds(self, stream: Stream) -> Bounds:
        return Bounds(
            stable=self._contents.marks.stable,
            bytes_max=min(stream.credit, self._limits.read_bytes_max),
            records_max=self._limits.batch_records_max,
        )

    def _items(self, stream: Stream) -> list[ShardItem] | None:
        """The next items, if they are in memory. Otherwise they are fetched, a piece at a time."""
        contents = self._contents
        low = contents.map.holder(stream.upto)
        high = contents.map.holder(contents.readable - 1) + 1
        bytes_max = self._bounds(stream).bytes_max
        items = self._reader.cached(low, high, bytes_max)
        if items is not None:
            return items

        def fetched(found: list[ShardItem]) -> None:
            stream.fetching = False
            if stream.over:
                return
            self._ready[stream.token] = stream
            if found and stream.credit > 0 and stream.upto >= contents.marks.trimmed:
                self._take(stream, gather(found, stream.upto, self._bounds(stream)))

        assert not stream.fetching, "one piece is read at a time"
        stream.fetching = True
        self._reader.fetch(low, high, bytes_max, fetched)
        return None

    def _take(self, stream: Stream, passage: Passage) -> None:
        """Deliver batches; that there are none is told once, at the end."""
        assert passage.upto >= stream.upto, "deliveries only go on"
        stream.upto = passage.upto
        if passage.batches:
            stream.credit -= passage.size
            stream.told = passage.upto
            self._counters.delivered += passage.records
            self._effects.append(Reply(stream.token, _delivered(passage)))

    def _tell_end(self, stream: Stream) -> None:
        """Subscribers to several shards need to know that nothing of this one lies below."""
        if not stream.over and stream.told < stream.upto:
            stream.told = stream.upto
            self._effects.append(Reply(stream.token, _delivered(Passage(stream.upto))))

    def _refuse(self, stream: Stream, why: AnabranchError) -> None:
        self.drop(stream.token)
        self._counters.refused += 1
        self._effects.append(Reply(stream.token, Refused.of(why)))


def _delivered(passage: Passage) -> Delivered:
    return Delivered(
        upto=passage.upto,
        firsts=tuple(passage.firsts),
        counts=tuple(passage.counts),
        batches=tuple(passage.batches),
    )
