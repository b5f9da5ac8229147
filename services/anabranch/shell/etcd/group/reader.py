"""Reads the journal in etcd: every group once, in order, checked, or a sentence on what is wrong.

All reads of one look are of one revision. A compaction in the midst of it begins it anew.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from anabranch.core.errors import EntryCorrupt
from anabranch.ports import Recovered
from anabranch.shell.etcd.api.calls import Compacted
from anabranch.shell.etcd.api.client import EtcdClient, prefix_end
from anabranch.shell.etcd.api.etcd_pb2 import KeyValue
from anabranch.shell.etcd.archive.snapshots import Blobs, Pointer, Snapshots
from anabranch.shell.etcd.group import layout
from anabranch.shell.etcd.group.layout import Keys

GROUPS_A_PAGE = 64


@dataclass(frozen=True, slots=True)
class Group:
    """The entries of one append, from index `first` on."""

    first: int
    entries: list[bytes]

    @property
    def last(self) -> int:
        return self.first + len(self.entries) - 1


@dataclass(frozen=True, slots=True)
class Look:
    """What the journal held at a revision of etcd's: what comes later is watched from the next."""

    recovered: Recovered
    revision: int


class JournalReader:
    """For any member of a group, and for those who only look. Any thread may read."""

    def __init__(self, client: EtcdClient, cluster: str, blobs: Blobs) -> None:
        self.client = client
        self.keys = Keys(cluster)
        self.snapshots = Snapshots(cluster, blobs)
        self.where = f"{client.where} {self.keys.groups.decode()}"

    def recover(self) -> Look:
        """The newest snapshot and all that follows it."""
        while True:
            revision = self.client.range(self.keys.snapshot).revision
            try:
                return self._whole(revision)
            except Compacted:
                continue

    def read_after(self, index: int) -> Look:
        """The entries after this one; with a snapshot only if they don't reach back so far."""
        while True:
            try:
                return self._after(index)
            except Compacted:
                continue

    def last(self) -> int:
        """The index of the journal's last entry, as far as its keys tell: 0 if it has none."""
        found = self.client.range(
            self.keys.groups, prefix_end(self.keys.groups), limit=1, descending=True
        )
        return self._head(found.kvs[0]).last if found.kvs else 0

    def end(self) -> int:
        """The last entry that etcd knows of, be it only by what points to a snapshot."""
        pointer = self.pointer()
        return max(self.last(), pointer.index if pointer else 0)

    def group(self, kv: KeyValue, revision: int = 0) -> Group:
        """The group behind its key; Compacted if it has been cut off meanwhile."""
        head = self._head(kv)
        body = self._chunked(head, revision) if head.chunks else layout.inline_body(kv.value)
        return Group(head.first, layout.read_body(self.where, head, body))

    def pointer(self, revision: int = 0) -> Pointer | None:
        found = self.client.range(self.keys.snapshot, revision=revision).one
        return msgspec.json.decode(found.value, type=Pointer) if found else None

    def holding(self, index: int, revision: int = 0) -> tuple[KeyValue | None, int]:
        """The last group that begins at this entry or before, and the revision of that look."""
        found = self.client.range(
            self.keys.groups,
            self.keys.group(index + 1),
            limit=1,
            revision=revision,
            descending=True,
        )
        return found.one, found.revision

    def _after(self, index: int) -> Look:
        before, revision = self.holding(index + 1)
        if before is not None and self._head(before).last >= index:
            entries = self._entries_after(index, before.key, revision)
            return Look(Recovered(None, index + 1, entries), revision)
        look = self._whole(revision)
        found = look.recovered
        if found.last < index:
            reason = f"the journal ends here, and had {index} entries before"
            raise EntryCorrupt(found.last + 1, self.where, reason)
        if found.first > index + 1:
            return look
        entries = found.entries[index + 1 - found.first :]
        return Look(Recovered(None, index + 1, entries, found.repairs), revision)

    def _whole(self, revision: int) -> Look:
        pointer = self.pointer(revision)
        oldest = self._oldest(revision)
        # Without any entry it is the pointer that says how far the journal went.
        index_min = oldest - 1 if oldest else pointer.index if pointer else 0
        snapshot, repairs = None, ()
        if pointer is not None or index_min:
            snapshot, repairs = self.snapshots.load(pointer, index_min)
        if snapshot is None and index_min:
            tried = " / ".join(repairs) or "no snapshot has what came before it"
            raise EntryCorrupt(index_min + 1, self.where, tried)
        index = snapshot.index if snapshot else 0
        before, _ = self.holding(index + 1, revision)
        start = before.key if before is not None else self.keys.group(index + 1)
        entries = self._entries_after(index, start, revision)
        return Look(Recovered(snapshot, index + 1, entries, repairs), revision)

    def _oldest(self, revision: int) -> int:
        """The first entry of the oldest group; 0 if there is none."""
        found = self.client.range(
            self.keys.groups,
            prefix_end(self.keys.groups),
            limit=1,
            revision=revision,
            keys_only=True,
        )
        return self.keys.group_first(found.kvs[0].key) if found.kvs else 0

    def _entries_after(self, index: int, start: bytes, revision: int) -> list[bytes]:
        """From the group at `start`, which must hold the next one or end with this one."""
        entries: list[bytes] = []
        last = index
        for group in self._groups(start, revision):
            if group.last <= last:
                continue
            if group.first > last + 1:
                reason = f"it is missing, and entry {group.first} is there"
                raise EntryCorrupt(last + 1, self.where, reason)
            entries += group.entries[last + 1 - group.first :]
            last = group.last
        return entries

    def _groups(self, start: bytes, revision: int) -> Iterator[Group]:
        end = prefix_end(self.keys.groups)
        more = True
        while more:
            page = self.client.range(start, end, limit=GROUPS_A_PAGE, revision=revision)
            for kv in page.kvs:
                yield self.group(kv, revision)
                start = kv.key + b"\0"
            more = page.more

    def _head(self, kv: KeyValue) -> layout.Head:
        return layout.read_head(self.where, self.keys.group_first(kv.key), kv.value)

    def _chunked(self, head: layout.Head, revision: int) -> bytes:
        parts: list[bytes] = []
        for number in range(head.chunks):
            found = self.client.range(self.keys.chunk(head, number), revision=revision).one
            if found is None:
                if revision == 0 and self.client.get(self.keys.group(head.first)) is None:
                    raise Compacted(f"entry {head.first}")
                raise EntryCorrupt(head.first, self.where, f"its chunk {number} is missing")
            parts.append(found.value)
        return b"".join(parts)
