"""A subscription: one stream per shard, merged, and taken by the application. What comes is stable,
and stays as it is.
"""

from typing import Any

from anabranch.client.erwin.dialect import FromNode, NodeLine, ToNode
from anabranch.client.erwin.directory import ErwinCommons, Whereabouts
from anabranch.client.erwin.merge import Merge
from anabranch.client.erwin.pieces import piece
from anabranch.client.session import stream
from anabranch.client.session.effects import Arrived
from anabranch.client.session.records import LogRecord
from anabranch.core.errors import AnabranchError, BadFrame, Unavailable
from anabranch.core.erwin.protocol.messages import Delivered, Elsewhere, Subscribe
from anabranch.core.types import LogId, Position
from anabranch.core.wire.session import Credit


class Stream(stream.Stream[ToNode, FromNode]):
    """Of one shard's primary."""

    def __init__(self, commons: ErwinCommons, owner: stream.Owner[FromNode], shard: str) -> None:
        super().__init__(commons, owner, shard)
        self._router = commons.router

    def _line_to(self, node: str) -> NodeLine:
        return self._router.shard_line(node)

    def _question(self, start: Position, credit: int) -> Subscribe:
        return Subscribe(shard=self.shard, start=start, window_bytes=credit)

    def _credit(self, request: int, size: int) -> Credit:
        return Credit(request, size)

    def _moved(self, message: FromNode) -> bool:
        return isinstance(message, Elsewhere)


class Subscriber:
    """Made by a driver, given with Opened. It takes what is there, and says so with Taken."""

    def __init__(self, start: Position, origin: LogId) -> None:
        """`origin`: the log, whose records say so."""
        self.error: AnabranchError | None = None
        """Why there will be nothing more, once what is there has been taken."""
        self.waiter: object = None
        """The driver's own."""
        self.log: LogId | None = None
        self._origin = origin
        self._merge = Merge(start)
        self._streams: dict[str, Stream] = {}
        self._commons: ErwinCommons | None = None
        self._key = 0

    @property
    def next(self) -> Position:
        """Everything below was taken: where another subscription goes on."""
        return self._merge.next

    def ready(self) -> bool:
        return self._merge.ready

    def take(self, records_max: int) -> list[LogRecord]:
        """The next records that are there: whole batches, until there are so many."""
        taken: list[LogRecord] = []
        while len(taken) < records_max:
            start = self._merge.next
            piece = self._merge.take()
            if piece is None:
                break
            taken += piece.since(start)
            self._released(piece.shard, piece.credit)
        return taken

    def begin(self, commons: ErwinCommons) -> None:
        self._commons, self._key = commons, commons.key()
        commons.parts[self._key] = self
        self._tend()

    def taken(self, size: int) -> None:
        """The application has taken something."""
        if self.error is None:
            self._tend()
            if self.ready():
                self._begun[0].effects.append(Arrived(self))

    def located(self) -> None:
        """Somebody has told anew where the shards are: go to their primaries of now."""
        for each in self._streams.values():
            node = self.node_for(each.shard)
            if each.node and node and each.node != node:
                each.stop()
                each.open()
        self._tend()

    def close(self, error: AnabranchError) -> None:
        if self.error is None:
            self.error = error
            for each in self._streams.values():
                each.retire()
            self._streams.clear()
            commons, _ = self._begun
            commons.parts.pop(self._key, None)
            commons.effects.append(Arrived(self))

    def leave(self) -> None:
        self.close(Unavailable("this subscription", "it was closed"))

    def node_for(self, shard: str) -> str:
        known = self._begun[1].shard(shard)
        return "" if known is None else known.primary

    def start_of(self, shard: str) -> Position:
        return self._merge.follow(shard)

    def told(self, stream: stream.Stream[Any, Any], message: FromNode) -> None:
        if not isinstance(message, Delivered):
            name = type(message).__name__
            self.close(BadFrame(f"a subscription was answered with {name}"))
            return
        try:
            self._delivered(stream, message)
        except AnabranchError as bad:
            # What came before it is given out first.
            self.close(bad)
            return
        self._look_for_unknown()
        if self.ready():
            self._begun[0].effects.append(Arrived(self))

    def refused(self, stream: stream.Stream[Any, Any], error: AnabranchError) -> None:
        self.close(error)

    @property
    def _begun(self) -> tuple[ErwinCommons, Whereabouts]:
        assert self._commons is not None, "a subscription begins before it is heard of"
        return self._commons, self._commons.router

    def _delivered(self, stream: stream.Stream[Any, Any], news: Delivered) -> None:
        stream.held_bytes += sum(map(len, news.batches))
        if not len(news.firsts) == len(news.counts) == len(news.batches):
            raise BadFrame(f"{len(news.firsts)} positions of {len(news.batches)} batches")
        merge = self._merge
        for first, count, batch in zip(news.firsts, news.counts, news.batches, strict=True):
            made = piece(self._origin, stream.shard, first, count, batch)
            if not merge.add(made):
                stream.released(made.credit)
        merge.tell(stream.shard, news.upto)

    def _look_for_unknown(self) -> None:
        if self._merge.gap:
            self._begun[1].ask()

    def _tend(self) -> None:
        """Ask every shard that is known, and none that is gone."""
        if self.error is not None:
            return
        commons, where = self._begun
        if where.directory is None:
            where.ask()
            return
        for shard in where.shards:
            if shard.name not in self._streams:
                self._merge.tell(shard.name, self._merge.next)
                made = self._streams[shard.name] = Stream(commons, self, shard.name)
                made.open()
        for name in [each for each in self._streams if where.shard(each) is None]:
            self._streams.pop(name).retire()
            self._merge.forget(name)
        self._look_for_unknown()

    def _released(self, shard: str, size: int) -> None:
        stream = self._streams.get(shard)
        if stream is not None and size:
            stream.released(size)
