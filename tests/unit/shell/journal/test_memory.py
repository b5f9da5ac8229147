"""The journal in memory, read back entry by entry."""

import pytest

from anabranch.core.errors import StorageFailed
from anabranch.shell.journal.memory import MemoryJournal


def filled() -> MemoryJournal:
    journal = MemoryJournal()
    journal.recover()
    journal.append([b"1", b"2"])
    journal.append([b"3"])
    return journal


def test_entries_are_read_back_by_their_numbers() -> None:
    journal = filled()
    assert journal.read(1, 4) == [b"1", b"2", b"3"]
    assert journal.read(2, 3) == [b"2"]
    assert journal.read(4, 4) == []


def test_what_a_snapshot_holds_cant_be_read_back() -> None:
    journal = filled()
    journal.save_snapshot(2, b"state")
    assert journal.read(3, 4) == [b"3"]
    with pytest.raises(StorageFailed, match="entry 2 was forgotten"):
        journal.read(2, 4)


def test_it_is_recovered_into_whoever_takes_its_entries_one_by_one() -> None:
    journal = filled()
    journal.save_snapshot(1, b"state")
    journal.close()
    states: list[bytes | None] = []
    taken: dict[int, bytes] = {}
    replayed = journal.recover_into(states.append, taken.__setitem__)
    assert (states, taken, replayed.last) == ([b"state"], {2: b"2", 3: b"3"}, 3)
