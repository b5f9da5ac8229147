"""A subscription: one stream per shard, merged, rolled back, and taken by the application."""

from collections.abc import Iterator
from itertools import chain

from anabranch.client.belfast.directory import UNSEEN_MAX, Whereabouts
from anabranch.client.belfast.merge import Merge, Piece
from anabranch.client.belfast.rollback import Predicate, Rollback, Standing
from anabranch.client.belfast.stream import AnyStream, BelfastCommons, Stream
from anabranch.client.session.effects import Arrived
from anabranch.client.session.records import Event, LogRecord
from anabranch.core.belfast.ledger.ledger import Standing as ShardStanding
from anabranch.core.belfast.protocol.messages import (
    Confirmed,
    Delivered,
    Eras,
    Failed,
    ToClient,
    Where,
)
from anabranch.core.errors import (
    AnabranchError,
    BadFrame,
    BatchTooLarge,
    BatchUnreadable,
    TooManyHeaders,
    Unavailable,
    UnknownShard,
)
from anabranch.core.machine import Buffer
from anabranch.core.records.record import Record, decode
from anabranch.core.types import NEVER, NOWHERE, LogId, Position

NOTHING = Where(key_modulus=1, key_remainder=1)
"""Of a shard whose records aren't wanted, and that tells of eras and confirmations: no record
fulfils it.
"""


class Subscriber:
    """Made by a driver, given with Opened. It takes what is there, and says so with Taken."""

    def __init__(
        self,
        start: Position,
        where: Where | None = None,
        only: Predicate | None = None,
        shards: frozenset[str] | None = None,
        origin: LogId = NOWHERE,
        *,
        speculative: bool = True,
    ) -> None:
        """`origin`: the log, whose records say so."""
        self.error: AnabranchError | None = None
        """Why there will be nothing more, once what is there has been taken."""
        self.waiter: object = None
        """The driver's own."""
        self._where, self._shards, self._start = where, shards, start
        self._origin = origin
        self._unseen = shards or frozenset[str]()
        """Of the shards that are wanted, those that no node has told of yet."""
        self._answers = 0
        """How many nodes in a row have told of others and not of these, since all have joined."""
        self._merge = Merge(start, shards)
        self._rollback = Rollback(self._merge, self._released, only, speculative=speculative)
        self.until: Position = NEVER
        """Reaching this position counts as something to take, though nothing may be there."""
        self._streams: dict[str, Stream] = {}
        self._retired: dict[str, Stream] = {}
        self.log: LogId | None = None
        self._commons: BelfastCommons | None = None
        self._key = 0

    @property
    def final(self) -> Position:
        """Everything below was delivered, and stays as it is."""
        return self._rollback.passed

    def ready(self, *, records: bool = True) -> bool:
        return self._rollback.ready(records=records) or self.final >= self.until

    def take(self, records_max: int) -> list[Event]:
        return self._rollback.take(records_max)

    def begin(self, commons: BelfastCommons) -> None:
        self._commons, self._key = commons, commons.key()
        commons.parts[self._key] = self
        self._look_for_unseen()
        self._tend()

    def taken(self, size: int) -> None:
        """The application has taken something: other shards may be needed, and some no more."""
        if self.error is None:
            self._tend()

    def located(self) -> None:
        """Somebody has told anew where the shards are: go to whoever serves them now."""
        if self._unseen:
            self._answers += not self._begun[1].joining
            self._look_for_unseen()
            if self.error is not None:
                return
        for stream in list(self._streams.values()):
            node = self.node_for(stream.shard)
            if stream.node and node and stream.node != node:
                stream.stop()
                stream.open()
        self._tend()

    def close(self, error: AnabranchError) -> None:
        if self.error is None:
            self.error = error
            for stream in self._streams.values():
                stream.retire()
            self._streams.clear()
            self._begun[0].parts.pop(self._key, None)
            self._begun[0].effects.append(Arrived(self))

    def leave(self) -> None:
        self.close(Unavailable("this subscription", "it was closed"))

    def node_for(self, shard: str) -> str:
        return self._begun[1].serves(shard)

    def start_of(self, shard: str) -> Position:
        """No later than where eras are known to: the first that is told is the one at the start."""
        merge = self._merge
        track = merge.tracks.get(shard)
        upto = merge.next if track is None else track.upto
        return min(upto, max(merge.known, merge.next))

    def told(self, stream: AnyStream, message: ToClient) -> None:
        commons, _ = self._begun
        match message:
            case Eras(eras, known):
                self._merge.tell(eras, known)
                self._tend()
            case Delivered():
                self._delivered(stream, message)
            case Confirmed(view, upto):
                if self._good(stream, view):
                    self._rollback.confirm(view, upto)
            case Failed():
                self._failed(message)
            case _:
                name = type(message).__name__
                self.close(BadFrame(f"a subscription was answered with {name}"))
        if self.error is None and self.ready():
            commons.effects.append(Arrived(self))

    def refused(self, stream: AnyStream, error: AnabranchError) -> None:
        self.close(error)

    @property
    def _begun(self) -> tuple[BelfastCommons, Whereabouts]:
        assert self._commons is not None, "a subscription begins before it is heard of"
        return self._commons, self._commons.router

    def _delivered(self, stream: AnyStream, news: Delivered) -> None:
        size = _size(news)
        stream.held_bytes += size
        if not self._good(stream, news.view):
            self._released(stream.shard, size)
            return
        pieces: list[Piece] = []
        upto, error = news.upto, None
        try:
            # Pieces that came before an error stay.
            pieces.extend(_pieces(self._origin, stream.shard, news, size))
        except BatchUnreadable as unreadable:
            # Whoever reads on after it doesn't ask again for what lies before it.
            upto, error = int(unreadable.facts["position"] or 0), unreadable
        except AnabranchError as bad:
            self.close(bad)
            return
        if not pieces:
            self._released(stream.shard, size)
        self._rollback.deliver(stream.shard, upto, pieces)
        if error is not None:
            self.close(error)

    def _look_for_unseen(self) -> None:
        """A shard that is known once may be gone later, when its records are trimmed."""
        _, whereabouts = self._begun
        self._unseen = frozenset(each for each in self._unseen if whereabouts.shard(each) is None)
        if self._unseen and self._answers >= UNSEEN_MAX:
            self.close(UnknownShard(min(self._unseen)))
        elif self._unseen and not whereabouts.joining:
            whereabouts.ask()

    def _good(self, stream: AnyStream, view: int) -> bool:
        """Else what came with it says nothing, and whoever said it is asked again."""
        match self._rollback.judge(view):
            case Standing.GOOD:
                return True
            case Standing.STALE:
                stream.retry()
            case Standing.AHEAD:
                self._rollback.restart(view)
                self._again()
        return False

    def _failed(self, failed: Failed) -> None:
        commons, whereabouts = self._begun
        if self._rollback.fail(failed) is Standing.AHEAD:
            self._again()
        whereabouts.ask()
        self._tend()
        commons.effects.append(Arrived(self))

    def _again(self) -> None:
        """Every shard is asked anew, from where nothing is confirmed on."""
        for stream in self._streams.values():
            stream.stop()
        self._tend()
        for stream in self._streams.values():
            stream.open()

    def _tend(self) -> None:
        """Ask the shards that may have something that hasn't come, and no others."""
        if self._unseen:
            return
        commons, _ = self._begun
        needed = self._needed()
        for shard, start in needed.items():
            self._merge.follow(shard, start)
            if shard not in self._streams:
                wanted = self._where if self._merge.wants(shard) else NOTHING
                stream = self._retired.pop(shard, None) or Stream(commons, self, shard, wanted)
                self._streams[shard] = stream
                stream.resume()
        for shard in [each for each in self._streams if each not in needed]:
            stream = self._retired[shard] = self._streams.pop(shard)
            stream.retire()

    def _needed(self) -> dict[str, Position]:
        _, whereabouts = self._begun
        if not self._merge.eras:
            wanted = self._shards or whereabouts.serving()
            return dict.fromkeys(sorted(wanted), self._start)
        if self._shards is None:
            return self._merge.missing()
        needed: dict[str, Position] = {}
        for shard in sorted(self._shards):
            known = whereabouts.shard(shard)
            if known is not None and known.standing is not ShardStanding.LEFT:
                needed[shard] = self.start_of(shard)
        needed |= self._merge.missing()
        if not needed:
            # Somebody must tell of eras and confirmations.
            seated = self._merge.eras[-1][1]
            needed = dict.fromkeys(seated[:1], self._merge.next)
        return needed

    def _released(self, shard: str, size: int) -> None:
        stream = self._streams.get(shard) or self._retired.get(shard)
        if stream is not None and size:
            stream.released(size)


def _size(news: Delivered) -> int:
    """The credit that it took: a batch of several parts counts once, and so does each of several
    that are alike, whose parts don't lie behind each other.
    """
    size, before, end = 0, None, 0
    for batch, (skip, count) in zip(news.batches, news.parts, strict=True):
        if batch != before or skip < end:
            size += len(batch)
        before, end = batch, skip + count
    return size


def _pieces(log: LogId, shard: str, news: Delivered, size: int) -> Iterator[Piece]:
    """Run by run; the credit of all is with the last.

    Raises BatchUnreadable behind the records that lie before that batch.
    """
    records = _records(shard, news)
    last = len(news.runs) - 1
    for index, run in enumerate(news.runs):
        placed: list[LogRecord] = []
        for position in range(run.first, run.end):
            try:
                record = next(records, None)
            except BatchUnreadable:
                if placed:
                    yield Piece(shard, placed, 0)
                raise
            if record is None:
                raise BadFrame(f"fewer records came of shard {shard} than their positions tell")
            placed.append(
                LogRecord(
                    position,
                    record.value,
                    record.key,
                    record.headers,
                    record.timestamp,
                    log,
                    position,
                    shard,
                )
            )
        if placed:
            yield Piece(shard, placed, size if index == last else 0)


def _records(shard: str, news: Delivered) -> Iterator[Record]:
    before: Buffer | None = None
    decoded: list[Record] = []
    passed = 0
    for batch, (skip, count) in zip(news.batches, news.parts, strict=True):
        if batch != before:
            try:
                decoded = decode(batch)
            except (BatchTooLarge, TooManyHeaders) as error:
                first, last = _places(news, passed, passed + count - 1)
                name = f"(shard {shard})"
                raise BatchUnreadable(name, first, last + 1, error.message) from None
            before = batch
        if len(decoded) < skip + count:
            raise BadFrame(f"{skip + count} records were named and {len(decoded)} came")
        yield from decoded[skip : skip + count]
        passed += count


def _places(news: Delivered, *nths: int) -> list[Position]:
    """Positions of the delivery's records of these numbers."""
    positions = list(chain.from_iterable(range(run.first, run.end) for run in news.runs))
    return [positions[nth] for nth in nths]
