"""What a replica of a shard holds: its items, where positions lie among them, and what of them is
stable and trimmed. All of it is rebuilt from the journal.
"""

from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from anabranch.core.erwin.protocol.rows import NO_SHARD, Mode, Row
from anabranch.core.erwin.shard.counters import ErwinShardCounters
from anabranch.core.erwin.shard.item_map import ItemMap, MapImage
from anabranch.core.erwin.shard.items import Head, decode_head, encode_item
from anabranch.core.erwin.shard.storage import Storage
from anabranch.core.erwin.shard.watermarks import Watermarks
from anabranch.core.replication.entries import Item
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.types import LocalSequence, Position

_TRIM_SHARE = 16
"""The storage forgets items when they are one in so many: each time it saves a map of the rest."""


class ContentsImage(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """What a snapshot of the journal begins with."""

    stable: Position
    trimmed: Position
    map: MapImage
    owner: bytes = b""
    """Of the part that keeps unordered data."""


_pack = msgspec.msgpack.Encoder().encode
_image = msgspec.msgpack.Decoder(ContentsImage)


class Contents:
    """Of a replica in any role."""

    def __init__(self, storage: Storage, counters: ErwinShardCounters) -> None:
        self.map = ItemMap()
        self.marks = Watermarks()
        self.storage = storage
        self.number = NO_SHARD
        """The shard's, once the configuration is known."""
        self.mode = Mode.M
        self.marked = Watermarks()
        """What of the watermarks is in an item."""
        self.on_item: Callable[[Head, bytes], None] = lambda head, content: None
        """An item was logged, or replayed."""
        self.on_skip: Callable[[], None] = lambda: None
        self.on_cut: Callable[[Position], None] = lambda to: None
        """The rows from here on are void."""
        self.owner_image: Callable[[], bytes] = lambda: b""
        self._counters = counters
        self._appending: Head | None = None
        self._trims: deque[tuple[LocalSequence, Position]] = deque()
        """Ends of items that tell of a trim for the first time."""
        self._trimmed_durably: Position = 0

    @property
    def durable(self) -> Position:
        """The end of the rows that are known to be durable."""
        return self.map.end_before(max(self.map.first, self.storage.durable))

    @property
    def trimmed_durably(self) -> Position:
        """Whichever replica is the primary next knows that everything below is trimmed."""
        while self._trims and self._trims[0][0] <= self.storage.durable:
            self._trimmed_durably = self._trims.popleft()[1]
        return self._trimmed_durably

    @property
    def readable(self) -> Position:
        """The end of what may be read here."""
        return min(self.marks.stable, self.map.end)

    def restore(self, content: bytes) -> bytes:
        """Returns what `owner_image` was."""
        image = _image.decode(content)
        self.map.restore(image.map)
        self.marks.advance(image.stable, image.trimmed)
        self.marked.advance(image.trimmed, image.trimmed)
        self._trimmed_durably = image.trimmed
        return image.owner

    def append(self, first: Position, rows: list[Row], batches: Sequence[bytes]) -> None:
        """Log the next rows and the batches of the shard's own: empty ones for no-ops."""
        assert self.storage.last == self.map.last, "the map knows every item"
        own = [row for row in rows if row.shard == self.number]
        assert len(own) == len(batches), "each of the shard's own rows has a batch"
        head = Head(
            first=first,
            rows=rows,
            sizes=list(map(len, batches)),
            stable=self.marks.stable,
            trimmed=self.marks.trimmed,
            number=self.number,
            remembers=self.mode is Mode.ST,
        )
        for row, batch in zip(own, batches, strict=True):
            self._counters.noops += 0 if batch else row.count
            self._counters.records += row.count if batch else 0
        self._log(head, encode_item(head, batches))

    def mark(self, at: Position) -> None:
        """Log an item without rows: other replicas learn of the watermarks, and where the shard
        begins or goes on.
        """
        self.append(at, [], [])

    def keep(
        self,
        kept: Sequence[tuple[int, bytes]],
        *,
        opens: int,
        voided: Sequence[AppendId] = (),
    ) -> None:
        """Log unordered data: batches, each with its producer's lowest sequence. And ids whose rows
        are no-ops.
        """
        assert self.mode is Mode.ST, "elsewhere no data comes without its row"
        assert kept or voided or opens, "an item says something"
        head = Head(
            first=self.map.end,
            rows=[],
            sizes=[],
            stable=self.marks.stable,
            trimmed=self.marks.trimmed,
            number=self.number,
            remembers=True,
            opens=opens,
            kept=[(lowest, len(batch)) for lowest, batch in kept],
            voided=list(voided),
        )
        self._log(head, encode_item(head, (), [batch for _, batch in kept]))

    def cut_back(self, to: LocalSequence) -> None:
        """Called by the storage: the items from here on are void."""
        self._counters.cut_items += self.map.last - to
        assert to >= self.map.last or self.map.start(to) >= self.marks.stable, (
            "what is stable never changes (LazyLog, 4.5)"
        )
        self.map.cut(to)
        while self._trims and self._trims[-1][0] > to:
            self._trims.pop()
        trimmed = self._trims[-1][1] if self._trims else self._trimmed_durably
        self.marked = Watermarks(trimmed, trimmed)
        self.on_cut(self.map.end)

    def logged(self, item: Item) -> None:
        """Called by the storage, live and when the journal is replayed."""
        head, self._appending = self._appending or decode_head(item.batch), None
        self.map.add(item.first, head.first, head.end)
        self.marks.advance(head.stable, head.trimmed)
        if head.trimmed > self.marked.trimmed:
            self._trims.append((item.end, head.trimmed))
        self.marked.advance(head.stable, head.trimmed)
        self.on_item(head, item.batch)

    def skipped(self, to: LocalSequence) -> None:
        """Called by the storage: a backup lacked what others have trimmed."""
        self.map.skip(to)
        self._trims.clear()
        self.marked = Watermarks()
        self.on_skip()

    def forget_trimmed(self) -> None:
        """Let the storage forget what is trimmed, but never its last item: that says where the
        shard's positions end.
        """
        map_ = self.map
        below = min(map_.holder(self.marks.trimmed), map_.last - 1)
        if (below - self.storage.first) * _TRIM_SHARE < max(len(map_), _TRIM_SHARE):
            return
        map_.trim(below)
        image = ContentsImage(
            stable=self.marks.stable,
            trimmed=self.marks.trimmed,
            map=map_.image(),
            owner=self.owner_image(),
        )
        self.storage.trim(below, _pack(image))

    def _log(self, head: Head, content: bytes) -> None:
        self._appending = head
        self.storage.append(content)
        assert self._appending is None, "the item was logged"
