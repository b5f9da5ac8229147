"""The journal that lives as long as its process: for `anabranch up --memory`, and simulations."""

from collections.abc import Sequence

from anabranch.ports import Recovered, Snapshot


class MemoryJournal:
    """`ports.Journal` in memory; closing and recovering it again is what reopening is to a file."""

    def __init__(self) -> None:
        self._open = False
        self._snapshot: Snapshot | None = None
        self._first = 1
        self._entries: list[bytes] = []

    def recover(self) -> Recovered:
        assert not self._open
        self._open = True
        return Recovered(self._snapshot, self._first, self._entries.copy())

    def append(self, entries: Sequence[bytes]) -> int:
        assert self._open
        assert entries
        self._entries.extend(entries)
        return self._first + len(self._entries) - 1

    def save_snapshot(self, index: int, content: bytes) -> None:
        assert self._open
        assert 0 < index < self._first + len(self._entries)
        if index < self._first:
            return
        self._snapshot = Snapshot(index, content)
        del self._entries[: index + 1 - self._first]
        self._first = index + 1

    def close(self) -> None:
        assert self._open
        self._open = False
