"""The journal in etcd (docs/decisions/0011-etcd.md): only the leader of the group can append.

Each append is one transaction that holds while the leader's election key is the one it was elected
with, and while nobody has put that entry: so a deposed leader writes nothing, and one that was not
answered can ask again. etcd answers NOSPACE also to a transaction that it has applied.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Lock

import msgspec

from anabranch.core.errors import (
    AccessDenied,
    BadRequest,
    DeadlineExceeded,
    Deposed,
    EntryCorrupt,
    StorageFailed,
    StorageFull,
    Unavailable,
)
from anabranch.ports import Recovered
from anabranch.shell.etcd.api.calls import Compacted
from anabranch.shell.etcd.api.client import (
    EtcdClient,
    absent,
    created_at,
    delete_op,
    prefix_end,
    put_op,
    range_op,
)
from anabranch.shell.etcd.api.etcd_pb2 import Compare, RequestOp, TxnResponse
from anabranch.shell.etcd.api.space import HEADROOM, Relief, Room
from anabranch.shell.etcd.archive.snapshots import Blobs, Pointer
from anabranch.shell.etcd.group import layout
from anabranch.shell.etcd.group.reader import JournalReader
from anabranch.shell.runtime.failpoints import reached
from anabranch.shell.telemetry.log import Log

KEPT_ENTRIES = 1_000
"""Entries older than the snapshot that stay, for followers that are a little behind."""
_ASKS = ((0.0, 1_000), (0.0, 1_000), (0.05, 2_000), (0.2, 4_000), (1.0, 16_000))
"""Seconds to pause before, and milliseconds to wait for an answer; each time at the next member.
Asking twice does no harm, so a member that has stopped is soon passed over.
"""


@dataclass(frozen=True, slots=True)
class Fence:
    """The lead of one term: an election key, for as long as it is the one created then."""

    key: bytes
    revision: int
    term: int


class EtcdJournal:
    """`ports.Journal` of a group of members, of which one at a time has the lead."""

    def __init__(
        self,
        client: EtcdClient,
        cluster: str,
        blobs: Blobs,
        log: Log,
        *,
        kept_entries: int = KEPT_ENTRIES,
        headroom: float = HEADROOM,
    ) -> None:
        self.reader = JournalReader(client, cluster, blobs)
        self.relief = Relief(client, log)
        self._room = Room(client, headroom)
        self.deposed: Callable[[Fence], None] | None = None
        """Told when etcd says that the lead of this fence is over."""
        self._client = client
        self._keys = self.reader.keys
        self._kept_entries = kept_entries
        self._lock = Lock()
        self._fence: Fence | None = None
        self._last = 0
        self._attempts = 0
        self._closed = Event()

    @property
    def last(self) -> int:
        """Of the entries this member knows to be in the journal by its own doing."""
        return self._last

    def recover(self) -> Recovered:
        return self.reader.recover().recovered

    def read_after(self, index: int) -> Recovered:
        """The entries after this one; with a snapshot only if they don't reach back so far."""
        return self.reader.read_after(index).recovered

    def lead(self, fence: Fence, last: int) -> None:
        """From here on this member appends, behind the last entry of the leader before it."""
        with self._lock:
            self._fence = fence
            self._last = last

    def yield_lead(self) -> None:
        """Append nothing more; what is under way is settled."""
        with self._lock:
            self._fence = None

    def append(self, entries: Sequence[bytes]) -> int:
        """As `ports.Journal`; and Deposed: none of them is in the journal, nor will be by us."""
        assert entries
        with self._lock:
            fence, first = self._fence, self._last + 1
            self._attempts += 1
        if fence is None:
            raise Deposed(self.reader.where, 0)
        head, value, chunks = layout.group(first, fence.term, self._attempts, entries)
        try:
            self._room.take(head.body_bytes)
            reached("journal.append.before")
            self._put_chunks(fence, head, chunks)
            self._put_group(fence, head, value)
            reached("journal.append.after")
        except Deposed:
            if self.deposed is not None:
                self.deposed(fence)
            raise
        except StorageFull:
            self.relief.soon()
            raise
        with self._lock:
            if self._fence is fence:
                self._last = head.last
        return head.last

    def save_snapshot(self, index: int, content: bytes) -> None:
        """Nothing is kept for who has no lead: the leader of the day keeps its own."""
        with self._lock:
            fence, last = self._fence, self._last
        if fence is None:
            return
        assert 0 < index <= last
        pointer = self.reader.pointer()
        if pointer is None or pointer.index < index:
            pointer = self.reader.snapshots.put(index, fence.term, content)
            self._point_to(fence, pointer)
        elif pointer.index > index:
            return
        revision = self._cut(fence, max(1, index - self._kept_entries))
        with suppress(Compacted):
            self._client.compact(revision)
        if self._room.full:
            self.relief.relieve()
        self.reader.snapshots.forget_old(pointer)

    def close(self) -> None:
        """From any thread; an append under way fails, its outcome unknown."""
        self.yield_lead()
        self._closed.set()

    def _put_chunks(self, fence: Fence, head: layout.Head, chunks: Sequence[bytes]) -> None:
        """Nobody reads them before the group's key is there."""
        try:
            for number, chunk in enumerate(chunks):
                self._settle(fence, (), put_op(self._keys.chunk(head, number), chunk))
        except StorageFull:
            litter = self._keys.attempt(head)
            with suppress(Unavailable, DeadlineExceeded):
                self._client.delete(litter, prefix_end(litter))
            raise

    def _put_group(self, fence: Fence, head: layout.Head, value: bytes) -> None:
        key = self._keys.group(head.first)
        answer = self._settle(fence, (absent(key),), put_op(key, value))
        if answer is not None and not answer.succeeded:
            reason = f"somebody else has put it in term {fence.term}, which is this member's"
            raise EntryCorrupt(head.first, self.reader.where, reason)

    def _point_to(self, fence: Fence, pointer: Pointer) -> None:
        """Deleting is what a full etcd still does, so then the journal is cut first. A reader that
        finds entries missing behind what is pointed to looks for a snapshot that has them.
        """
        put = put_op(self._keys.snapshot, msgspec.json.encode(pointer))
        try:
            self._settle(fence, (), put)
        except StorageFull:
            self._cut(fence, pointer.index)
            self.relief.relieve()
            self._settle(fence, (), put)

    def _cut(self, fence: Fence, index: int) -> int:
        """Delete all groups before the one that holds this entry; the revision of that."""
        holding, revision = self.reader.holding(index)
        if holding is None:
            return revision
        first = self._keys.group_first(holding.key)
        answer = self._settle(
            fence,
            (),
            delete_op(self._keys.groups, holding.key),
            delete_op(self._keys.chunks, self._keys.chunks_of(first)),
        )
        return answer.header.revision if answer else revision

    def _settle(
        self, fence: Fence, holds: Iterable[Compare], *ops: RequestOp
    ) -> TxnResponse | None:
        """Ask until the outcome is known: the answer, or None if it was found to be done already.

        Raises Deposed, or an error after which it is sure that nothing was and will be done.
        """
        compare = (created_at(fence.key, fence.revision), *holds)
        put = ops[0].request_put
        look = (range_op(put.key), range_op(fence.key)) if put.key else (range_op(fence.key),)
        unknown = False
        for pause_s, deadline_ms in _asks():
            if self._closed.wait(pause_s):
                reason = "it was closed before etcd told whether the last entries are in it"
                raise StorageFailed(self.reader.where, reason)
            try:
                answer = self._client.txn(compare, ops, look, deadline_ms=deadline_ms)
            except (Unavailable, DeadlineExceeded):
                unknown = True
                continue
            except (AccessDenied, BadRequest) as refused:
                if not unknown:
                    raise StorageFailed(self.reader.where, refused.message) from refused
                continue
            except StorageFull:
                try:
                    if self._is_there(put.key, put.value):
                        return None
                    if not unknown:
                        raise
                    # What an earlier attempt sent may yet be applied: that must be known first.
                    self.relief.relieve()
                except (Unavailable, DeadlineExceeded):
                    unknown = True
                continue
            if answer.succeeded:
                return answer
            *there, lead = (each.response_range.kvs for each in answer.responses)
            if there and there[0] and there[0][0].value == put.value:
                return None
            if not lead or lead[0].create_revision != fence.revision:
                raise Deposed(self.reader.where, fence.term)
            return answer
        raise AssertionError("it is always asked again")

    def _is_there(self, key: bytes, value: bytes) -> bool:
        found = self._client.get(key)
        return found is not None and found.value == value


def _asks() -> Iterator[tuple[float, int]]:
    yield from _ASKS
    while True:
        yield _ASKS[-1]
