"""The journal that lives as long as its process: for `anabranch up --memory`, and simulations."""

from collections.abc import Callable, Sequence
from threading import Lock

from anabranch.core.errors import StorageFailed
from anabranch.ports import Recovered, Replayed, Snapshot


class MemoryJournal:
    """`ports.RecordJournal` in memory; to close and recover it again is what reopening is to a
    file.
    """

    def __init__(self) -> None:
        self._open = False
        self._snapshot: Snapshot | None = None
        self._first = 1
        self._entries: list[bytes] = []
        self._lock = Lock()
        """Entries are appended, forgotten and read back in threads of their own."""

    def recover(self) -> Recovered:
        assert not self._open
        self._open = True
        return Recovered(self._snapshot, self._first, self._entries.copy())

    def recover_into(
        self, restore: Callable[[bytes | None], None], take: Callable[[int, bytes], None]
    ) -> Replayed:
        found = self.recover()
        restore(found.snapshot.content if found.snapshot else None)
        for index, entry in enumerate(found.entries, found.first):
            take(index, entry)
        return Replayed(found.last)

    def read(self, first: int, upto: int) -> list[bytes]:
        assert self._open
        with self._lock:
            if first < self._first:
                raise StorageFailed("memory", f"entry {first} was forgotten with a snapshot")
            assert first <= upto <= self._first + len(self._entries)
            return self._entries[first - self._first : upto - self._first]

    def append(self, entries: Sequence[bytes]) -> int:
        assert self._open
        assert entries
        with self._lock:
            self._entries.extend(entries)
            return self._first + len(self._entries) - 1

    def save_snapshot(self, index: int, content: bytes) -> None:
        assert self._open
        with self._lock:
            assert 0 < index < self._first + len(self._entries)
            if index < self._first:
                return
            self._snapshot = Snapshot(index, content)
            del self._entries[: index + 1 - self._first]
            self._first = index + 1

    def close(self) -> None:
        assert self._open
        self._open = False
