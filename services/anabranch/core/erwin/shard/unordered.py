"""Mode st: data that clients have sent and no row has named yet (LazyLog, 5.1 to 5.4).

Every replica of the epoch keeps a batch, in its journal, before it answers. A row binds the batch
to its positions; the batch is kept until these are stable, because a new fence may still void the
row. A row whose batch doesn't come is bound to no-ops: the batch is refused from then on.

Data without a row is an orphan when no row can name it any more, and time alone doesn't tell: its
row may be held up by another shard. So what counts is an append that was bound here, and began
after this one was acknowledged or given up: its producer's lowest sequence, or its time, says so.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from anabranch.core.alarms import Alarms
from anabranch.core.askers import principal_of
from anabranch.core.budget import Budget
from anabranch.core.errors import (
    BadRequest,
    Overloaded,
    RecordVoided,
    RequestReused,
    ShardAway,
    StaleView,
    Unavailable,
)
from anabranch.core.erwin.protocol.messages import Data, Stored
from anabranch.core.erwin.protocol.rows import NO_SHARD, Mode, Row
from anabranch.core.erwin.shard.contents import Contents
from anabranch.core.erwin.shard.counters import ErwinShardCounters
from anabranch.core.erwin.shard.items import Head, bound_batches, kept_batches
from anabranch.core.limits import MIB, Limits
from anabranch.core.machine import Effect, Reply, Token
from anabranch.core.producers import is_request
from anabranch.core.records import batch as batches
from anabranch.core.records.digest import digest_of_records, matches
from anabranch.core.replication.replica import Replica, Role
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.types import MS, Nanoseconds, Position

FATES_MAX = 100_000
"""So many ids of bound rows, and as many of no-ops, are known after their positions are stable."""
OPENING_BYTES_MAX = 4 * MIB
"""Of one item that brings unordered data to the other replicas."""


class KeptData(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One batch, as the journal and an image hold it."""

    lowest: int
    batch: bytes


class Binding(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What became of an id whose position isn't stable yet."""

    end: Position
    id: AppendId
    voided: bool


class UnorderedImage(msgspec.Struct, frozen=True, array_like=True):
    data: list[KeptData]
    bindings: list[Binding]
    voided: list[AppendId]
    opened: int
    opened_at: int


_pack = msgspec.msgpack.Encoder().encode
_note = msgspec.msgpack.Decoder(KeptData)
_image = msgspec.msgpack.Decoder(UnorderedImage)


@dataclass(slots=True)
class Datum:
    batch: bytes
    lowest: int
    arrived: Nanoseconds
    who: int
    """Whose share of the room it takes."""
    sent: Nanoseconds = 0
    """When a client had sent it. 0: it came from another replica, perhaps long after that."""


@dataclass(slots=True)
class _Fates:
    """Ids whose positions are stable, the latest ones."""

    ids: dict[AppendId, None] = field(default_factory=dict[AppendId, None])

    def add(self, id: AppendId) -> None:
        self.ids[id] = None
        if len(self.ids) > FATES_MAX:
            del self.ids[next(iter(self.ids))]


class Unordered:
    """Of a replica in any role."""

    def __init__(
        self,
        shard: str,
        limits: Limits,
        replica: Replica,
        contents: Contents,
        effects: list[Effect],
        alarms: Alarms,
        counters: ErwinShardCounters,
    ) -> None:
        self._shard = shard
        self._limits = limits
        self._replica = replica
        self._contents = contents
        self._effects = effects
        self._alarms = alarms
        self._counters = counters
        self._data: dict[AppendId, Datum] = {}
        """In the order in which they came."""
        self._producers: dict[int, dict[AppendId, None]] = {}
        self._bindings: deque[Binding] = deque()
        """In the order of their positions."""
        self._bound: dict[AppendId, Binding] = {}
        self._known = _Fates()
        self._voided = _Fates()
        self._opened = 0
        """The epoch whose opening is in this replica's log; and the opening's place."""
        self._opened_at = 0
        self._room = Budget(limits.unordered_bytes_max)
        """Shared by those who send data: some of it may never be ordered."""
        self._suspects: tuple[dict[int, int], Nanoseconds] = {}, 0
        """Bytes that may be orphans, by holder; and until when they aren't counted again."""

    def __len__(self) -> int:
        return len(self._data)

    @property
    def held_bytes(self) -> int:
        return self._room.used

    @property
    def may_be_sealed(self) -> bool:
        """Does this replica have what clients sent to the epoch's other replicas before it came? A
        backup that doesn't must not take over: acknowledged data would become no-ops. No data is
        older than the first epoch.
        """
        replica = self._replica
        applies = self._contents.mode is Mode.ST and replica.role is Role.BACKUP
        return not applies or replica.founder or self._opened == replica.epoch

    # Requests.

    def store(self, token: Token, message: Data) -> None:
        """Answers when the batch is journaled. Raises what keeps it from being taken."""
        self._check(message)
        header = batches.check(message.batch, self._limits, f"data for shard {self._shard}")
        if header.producer_id < 0:
            raise BadRequest("data", "its batch must name a producer")
        id = AppendId.of(header)
        binding = self._bound.get(id)
        if id in self._voided.ids:
            self._counters.late += 1
            raise RecordVoided(self._shard)
        if binding is not None and binding.voided:
            # A new fence may still void the row, and then the batch is wanted. Until then no
            # replica may say that it has it: it may be the only one of the next epoch.
            self._counters.late += 1
            raise Unavailable(f"shard {self._shard}", "an append's position is being decided")
        if id in self._data or binding is not None or id in self._known.ids:
            self._check_repeated(id, message.batch)
            self._counters.stored_again += 1
        else:
            assert id not in self._bound
            who = principal_of(token) or _holder(id)
            self._check_room(who, len(message.batch))
            self._counters.stored += 1
            now = self._alarms.now
            self._add(id, Datum(message.batch, message.lowest, now, who, sent=now))
            self._replica.log.note(_pack(KeptData(message.lowest, message.batch)))
        answer = Reply(token, Stored())
        self._replica.log.journal.when_stored(lambda: self._effects.append(answer))

    def _check(self, message: Data) -> None:
        replica = self._replica
        if self._contents.number == NO_SHARD:
            raise ShardAway(self._shard, "this replica waits for the log's controller")
        if self._contents.mode is not Mode.ST:
            raise BadRequest("data", "this log's records go through the sequencing layer")
        if message.epoch != replica.epoch or replica.role not in (Role.PRIMARY, Role.BACKUP):
            raise StaleView(f"data for shard {self._shard}", message.epoch, replica.epoch)
        if replica.log.journal.obstacle is not None:
            raise ShardAway(self._shard, replica.log.journal.obstacle)

    def _check_repeated(self, id: AppendId, batch: bytes) -> None:
        """The sequencers refuse other records under a request id, but two programs may be here at
        once. Each would take the other's records for its own.
        """
        datum = self._data.get(id)
        if datum is None or not is_request(id.producer, id.epoch, id.sequence):
            return
        held = digest_of_records(datum.batch, batches.peek(datum.batch))
        if not matches(held, digest_of_records(batch, batches.peek(batch))):
            raise RequestReused

    def _check_room(self, who: int, size: int) -> None:
        """Possible orphans take room of their own: otherwise they could keep out the appends whose
        rows show that they are orphans.
        """
        room = self._room
        if size <= room.room(who):
            return
        suspects = self._count_suspects()
        spare = min(room.limit, sum(suspects.values()))
        own = min(spare, suspects.get(who, 0), room.held(who))
        if size > room.room(who, spare=spare, spare_of_who=own):
            what = f"this client's share of unordered data of shard {self._shard}"
            raise Overloaded(what, room.limit, "unordered_bytes_max")

    def _count_suspects(self) -> dict[int, int]:
        found, until = self._suspects
        now = self._alarms.now
        if now >= until:
            old = now - self._limits.orphan_ms * MS
            found = dict[int, int]()
            for id, datum in self._data.items():
                if datum.arrived < old and id not in self._bound:
                    found[datum.who] = found.get(datum.who, 0) + len(datum.batch)
            self._suspects = found, now + 1_000 * MS
        return found

    # Binding.

    def lacks(self, ids: Iterable[AppendId]) -> list[AppendId]:
        """Those whose data isn't here."""
        return [id for id in ids if id not in self._data]

    def batches_of(self, rows: Sequence[Row]) -> list[bytes]:
        """Of own rows: empty where the data isn't here."""
        assert self._leads, "only the primary binds"
        return [self._batch_of(row) for row in rows if row.shard == self._contents.number]

    def _batch_of(self, row: Row) -> bytes:
        """A client tells the sequencers how many records its batch has, and sends it elsewhere. If
        the two differ its append becomes no-ops: bound, it would stop each reader that came to it.
        """
        datum = self._data.get(row.id)
        if datum is None or batches.peek(datum.batch).count != row.count:
            return b""
        return datum.batch

    def settle(self) -> None:
        """The end of a step."""
        self._release(self._contents.marks.stable)
        if self._leads and self._opened != self._replica.epoch:
            self._open(self._replica.epoch)

    @property
    def _leads(self) -> bool:
        return self._contents.mode is Mode.ST and self._replica.role is Role.PRIMARY

    def _open(self, epoch: int) -> None:
        """Bring what clients sent to earlier epochs to all replicas of this one. A replica that is
        new has none of it, and clients send it only what they send from now on (LazyLog, 5.4). It
        also has no row that is trimmed, so it is told which ids became no-ops.
        """
        assert self._leads, "the primary opens its epoch"
        assert epoch > self._opened, "epochs only grow"
        if self._voided.ids:
            self._contents.keep((), opens=0, voided=list(self._voided.ids))
        chunk: list[tuple[int, bytes]] = []
        size = 0
        for datum in list(self._data.values()):
            if chunk and size + len(datum.batch) > OPENING_BYTES_MAX:
                self._contents.keep(chunk, opens=0)
                chunk, size = [], 0
            chunk.append((datum.lowest, datum.batch))
            size += len(datum.batch)
        self._contents.keep(chunk, opens=epoch)
        assert self._opened == epoch

    # The log (contents.on_item, on_cut).

    def logged(self, head: Head, content: bytes) -> None:
        """Called for items live, and when the journal is replayed."""
        if not head.remembers:
            return
        for row, batch in bound_batches(head, content):
            assert not self._bindings or self._bindings[-1].end <= row.first, "rows are in order"
            binding = Binding(row.end, row.id, not batch)
            self._bindings.append(binding)
            self._bound[row.id] = binding
            if batch and row.id not in self._data:
                # A new fence may void the row, and this replica got the batch in no other way.
                self._add(row.id, Datum(batch, 0, self._alarms.now, _holder(row.id)))
        for id in head.voided:
            self._voided.add(id)
            if id not in self._bound:
                self._remove(id)
        for lowest, batch in kept_batches(head, content):
            self._keep(lowest, batch)
        if head.opens:
            self._opened, self._opened_at = head.opens, self._contents.map.last - 1
        self._release(head.stable)

    def cut(self, to: Position) -> None:
        """Rows from here on are void; their data isn't."""
        while self._bindings and self._bindings[-1].end > to:
            binding = self._bindings.pop()
            if self._bound.get(binding.id) is binding:
                del self._bound[binding.id]
        if self._opened_at >= self._contents.map.last:
            # Other replicas may lack it: the primary brings it once more. A trim needs no such
            # care: what is trimmed was durable, and so was the opening before it.
            self._opened = 0

    def skipped(self) -> None:
        """Items are gone that this replica lacked, the opening perhaps, or that were void."""
        self._opened = 0
        self._bindings.clear()
        self._bound.clear()

    def replayed(self, note: bytes) -> None:
        kept = _note.decode(note)
        self._keep(kept.lowest, kept.batch)

    def started(self) -> None:
        """The journal was replayed; when its data came isn't known any more."""
        for datum in self._data.values():
            datum.arrived = datum.sent = self._alarms.now

    def restore(self, content: bytes) -> None:
        if not content:
            return
        image = _image.decode(content)
        assert not self._data, "an image comes before what follows it"
        for binding in image.bindings:
            self._bindings.append(binding)
            self._bound[binding.id] = binding
        for kept in image.data:
            self._keep(kept.lowest, kept.batch)
        for id in image.voided:
            self._voided.add(id)
        self._opened, self._opened_at = image.opened, image.opened_at

    def image(self) -> bytes:
        """Empty in mode m; the mode may not be known yet."""
        if not (self._data or self._bindings or self._voided.ids or self._opened):
            return b""
        data = [KeptData(datum.lowest, datum.batch) for datum in self._data.values()]
        return _pack(
            UnorderedImage(
                data, list(self._bindings), list(self._voided.ids), self._opened, self._opened_at
            )
        )

    def _keep(self, lowest: int, batch: bytes) -> None:
        id = AppendId.of(batches.peek(batch))
        if id not in self._data and id not in self._known.ids and id not in self._voided.ids:
            self._add(id, Datum(batch, lowest, self._alarms.now, _holder(id)))

    def _add(self, id: AppendId, datum: Datum) -> None:
        assert id not in self._data
        self._data[id] = datum
        self._producers.setdefault(id.producer, {})[id] = None
        self._room.hold(datum.who, len(datum.batch))

    def _remove(self, id: AppendId) -> Datum | None:
        datum = self._data.pop(id, None)
        if datum is not None:
            self._room.give(datum.who, len(datum.batch))
            ids = self._producers[id.producer]
            del ids[id]
            if not ids:
                del self._producers[id.producer]
        return datum

    def _release(self, stable: Position) -> None:
        """Rows below are final: their data isn't needed here any more."""
        while self._bindings and self._bindings[0].end <= stable:
            binding = self._bindings.popleft()
            if self._bound.get(binding.id) is binding:
                del self._bound[binding.id]
            if binding.voided:
                self._voided.add(binding.id)
            elif not _may_be_used_anew(binding.id):
                self._known.add(binding.id)
            datum = self._remove(binding.id)
            if datum is not None:
                self._drop_orphans(binding.id, datum)

    def _drop_orphans(self, id: AppendId, datum: Datum) -> None:
        """Data that came before this append's and has no row by now. Its own append, if it was ever
        acknowledged, was so before this one began, and thus was ordered before it.
        """
        assert id not in self._data, "its row is final"
        orphans = self._given_up(id, datum.lowest)
        orphans.extend(self._older(datum.sent - self._limits.orphan_ms * MS))
        for each in orphans:
            if self._remove(each) is not None:
                self._counters.orphans += 1

    def _given_up(self, by: AppendId, lowest: int) -> list[AppendId]:
        """They came first, so the look ends at the first that isn't below: each append's own look
        must not cost more the more its producer has under way.
        """
        found: list[AppendId] = []
        for id in self._producers.get(by.producer, ()):
            if not _is_below(id, by, lowest):
                break
            if id not in self._bound:
                found.append(id)
        return found

    def _older(self, than: Nanoseconds) -> list[AppendId]:
        found: list[AppendId] = []
        for id, datum in self._data.items():
            if datum.arrived >= than:
                break
            if id not in self._bound:
                found.append(id)
        return found


def _may_be_used_anew(id: AppendId) -> bool:
    """Sequencers forget a request after `request_memory_ms`, and all of them at once if a view is
    lost: the next append under its id is another one. Taken for known here, it would be
    acknowledged and become no-ops. Data of a repetition is an orphan instead.
    """
    return is_request(id.producer, id.epoch, id.sequence)


def _holder(id: AppendId) -> int:
    """Whose share a batch takes where clients aren't told apart: its producer's. Connections end
    before what came over them is ordered. Principals are numbered from 1.
    """
    return -1 - id.producer


def _is_below(id: AppendId, later: AppendId, lowest: int) -> bool:
    """Had this append been acknowledged or given up when the later one of its producer began?"""
    if id.epoch != later.epoch:
        return id.epoch < later.epoch
    return id.sequence < lowest
