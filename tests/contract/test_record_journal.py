"""What a journal of records promises (`ports.RecordJournal`): read back while it is written."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contract.test_journal_on_frail_disk import FrailDisk

from anabranch.core.errors import JournalCorrupt, StorageFailed, StorageFull
from anabranch.core.storage import journal as layout
from anabranch.ports import Disk, RecordJournal, Replayed
from anabranch.shell.journal import readback
from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.file_journal import FileJournal
from anabranch.shell.journal.unsynced_disk import UnsyncedDisk

SEED = 20_230


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that not every group is noted, though all are small."""
    monkeypatch.setattr(readback, "SPACING_BYTES", 300)


@pytest.fixture(params=["synced", "unsynced"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    real = RealDisk(str(tmp_path))
    return UnsyncedDisk(real) if request.param == "unsynced" else real


def opened(disk: Disk) -> FileJournal:
    """Small segments, so that a few appends go through several."""
    return FileJournal(disk, "c1", segment_bytes=2_000, ahead_bytes=1_024)


def begun(disk: Disk) -> FileJournal:
    journal = opened(disk)
    journal.recover()
    return journal


def filled(journal: FileJournal, groups: int = 60) -> list[bytes]:
    """What was appended: groups of one to four entries."""
    random = Random(SEED)
    entries: list[bytes] = []
    for _ in range(groups):
        count = random.randint(1, 4)
        group = [random.randbytes(random.randint(0, 120)) for _ in range(count)]
        entries += group
        assert journal.append(group) == len(entries)
    return entries


def recovered_into(journal: FileJournal) -> tuple[bytes | None, dict[int, bytes], Replayed]:
    states: list[bytes | None] = []
    taken: dict[int, bytes] = {}

    def take(index: int, entry: bytes) -> None:
        assert states, "the state comes first"
        taken[index] = entry

    replayed = journal.recover_into(states.append, take)
    (state,) = states
    return state, taken, replayed


def all_ranges(first: int, last: int) -> Iterator[tuple[int, int]]:
    for start in range(first, last + 2):
        for upto in range(start, last + 2):
            yield start, upto


def test_the_file_journal_is_one(disk: Disk) -> None:
    assert isinstance(opened(disk), RecordJournal)


def test_any_entries_are_read_back_while_it_is_written_and_after_it_was_opened_again(
    disk: Disk,
) -> None:
    journal = begun(disk)
    entries = filled(journal, 25)
    for start, upto in all_ranges(1, len(entries)):
        assert journal.read(start, upto) == entries[start - 1 : upto - 1]
    journal.close()
    again = begun(disk)
    for start, upto in all_ranges(1, len(entries)):
        assert again.read(start, upto) == entries[start - 1 : upto - 1]
    again.append([b"more"])
    assert again.read(len(entries), len(entries) + 2) == [entries[-1], b"more"]


def test_recovery_gives_the_state_first_and_then_each_entry_once(disk: Disk) -> None:
    journal = begun(disk)
    entries = filled(journal)
    journal.save_snapshot(40, b"state at 40")
    journal.close()
    state, taken, replayed = recovered_into(opened(disk))
    assert state == b"state at 40"
    assert replayed == Replayed(len(entries))
    assert taken == {n: entries[n - 1] for n in range(41, len(entries) + 1)}


def test_recovery_of_nothing(disk: Disk) -> None:
    journal = opened(disk)
    assert recovered_into(journal) == (None, {}, Replayed(0))
    assert journal.append([b"a"]) == 1
    assert journal.read(1, 2) == [b"a"]


def test_a_torn_tail_is_said_and_not_read(tmp_path: Path) -> None:
    journal = begun(RealDisk(str(tmp_path)))
    journal.append([b"first"])
    journal.append([b"second" * 50])
    segment = min(tmp_path.glob("*.segment"))
    first = layout.HEADER_BYTES + layout.GROUP_HEADER_BYTES + 4 + len(b"first")
    segment.write_bytes(segment.read_bytes()[: first + layout.GROUP_HEADER_BYTES])
    again = opened(RealDisk(str(tmp_path)))
    _, taken, replayed = recovered_into(again)
    assert taken == {1: b"first"}
    assert len(replayed.repairs) == 1
    assert again.append([b"another"]) == 2
    assert again.read(1, 3) == [b"first", b"another"]


def test_what_a_snapshot_made_needless_goes_and_the_rest_is_read(disk: Disk) -> None:
    journal = begun(disk)
    entries = filled(journal)
    for index in (60, 80, 100):
        journal.save_snapshot(index, b"state")
    assert journal.read(81, len(entries) + 1) == entries[80:]
    with pytest.raises(StorageFailed, match="entry 1 isn't kept"):
        journal.read(1, 2)
    journal.close()
    again = begun(disk)
    assert again.read(101, len(entries) + 1) == entries[100:]
    with pytest.raises(StorageFailed, match="entry 1 isn't kept"):
        again.read(1, 2)


def test_a_damaged_entry_is_refused_with_its_place_and_others_are_read(tmp_path: Path) -> None:
    journal = begun(RealDisk(str(tmp_path)))
    entries = filled(journal)
    segment = sorted(tmp_path.glob("*.segment"))[1]
    header = layout.read_header(segment.read_bytes(), segment.name, "c1")
    assert header is not None
    content = bytearray(segment.read_bytes())
    content[layout.HEADER_BYTES + layout.GROUP_HEADER_BYTES] ^= 1
    segment.write_bytes(content)
    with pytest.raises(JournalCorrupt) as refused:
        journal.read(header.extent, header.extent + 1)
    assert refused.value.facts["path"] == str(segment)
    assert refused.value.facts["offset"] == layout.HEADER_BYTES
    assert journal.read(1, header.extent) == entries[: header.extent - 1]


def test_a_segment_that_is_gone_is_said(tmp_path: Path) -> None:
    journal = begun(RealDisk(str(tmp_path)))
    filled(journal)
    min(tmp_path.glob("*.segment")).unlink()
    with pytest.raises(StorageFailed, match="No such file"):
        journal.read(1, 2)


def test_reads_go_on_in_other_threads_while_it_is_written_and_forgets(tmp_path: Path) -> None:
    journal = begun(RealDisk(str(tmp_path)))
    entries = [b"%d" % n * (n % 30 + 1) for n in range(1, 801)]
    journal.append(entries[:1])
    over = Event()
    known = 1
    forgotten = 0

    def look(seed: int) -> int:
        random, found = Random(seed), 0
        while True:
            last = over.is_set()
            start = random.randint(1, known)
            upto = min(known, start + random.randint(0, 40)) + 1
            try:
                assert journal.read(start, upto) == entries[start - 1 : upto - 1]
                found += upto - start
            except StorageFailed:
                assert start <= forgotten, "only what was forgotten can't be read"
            if last:
                return found

    def forget() -> None:
        nonlocal forgotten
        while not over.is_set():
            forgotten = max(1, known - 200)
            journal.save_snapshot(forgotten, b"state")

    with ThreadPoolExecutor(3) as others:
        readers = [others.submit(look, seed) for seed in (1, 2)]
        forgetting = others.submit(forget)
        try:
            while known < len(entries):
                known = journal.append(entries[known : known + 1 + known % 3])
        finally:
            over.set()
        forgetting.result()
        assert sum(reader.result() for reader in readers) > 0
    assert journal.read(701, 801) == entries[700:]


@given(
    steps=st.lists(
        st.one_of(
            st.lists(st.integers(0, 900), min_size=1, max_size=4),
            st.tuples(st.sampled_from(["sync", "full"]), st.integers(0, 3)),
            st.sampled_from(["power", "kill", "snapshot"]),
        ),
        max_size=25,
    ),
    seed=st.integers(0, 1 << 32),
)
def test_what_was_acknowledged_is_read_back_whatever_befell_the_disk(
    steps: list[list[int] | tuple[str, int] | str], seed: int
) -> None:
    disk, random = FrailDisk(seed), Random(seed)
    journal = begun(disk)
    entries: list[bytes] = []
    kept = 1

    def reopen() -> FileJournal:
        """A group whose append failed may be found by a later life."""
        again = opened(disk)
        _, taken, replayed = recovered_into(again)
        entries.extend(taken[n] for n in range(len(entries) + 1, replayed.last + 1))
        assert taken == {n: entries[n - 1] for n in range(kept, replayed.last + 1)}
        return again

    for step in steps:
        match step:
            case list():
                group = [random.randbytes(size) for size in step]
                assert journal.append(group) == len(entries) + len(group)
                entries += group
            case ("sync", after):
                disk.syncs_until_failure = after
                with suppress(StorageFailed):
                    journal.append([b"unsure" * 20])
                    entries.append(b"unsure" * 20)
                disk.syncs_until_failure = 1 << 40
            case ("full", after):
                disk.bytes_max = disk.bytes_max - disk.free + after * 300
                with suppress(StorageFull):
                    journal.append([b"too much" * 200])
                    entries.append(b"too much" * 200)
                disk.bytes_max = 1 << 40
            case "snapshot":
                if len(entries) >= kept:
                    journal.save_snapshot(len(entries), b"state")
                    kept = len(entries) + 1
            case _:
                if step == "power":
                    disk.lose_power()
                journal = reopen()
        assert journal.read(kept, len(entries) + 1) == entries[kept - 1 :]
