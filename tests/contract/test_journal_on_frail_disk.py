"""The file journal on a disk that loses power, fails to sync, or is full."""

from contextlib import suppress
from random import Random

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from anabranch.core.errors import StorageFailed, StorageFull
from anabranch.core.machine import Buffer
from anabranch.ports import Recovered, Snapshot
from anabranch.shell.journal.file_journal import FileJournal

SECTOR = 512
NEVER = 1 << 40


class FrailFile:
    """What reads see, what has reached the platter, and the sectors that are on their way."""

    def __init__(self, disk: "FrailDisk") -> None:
        self.seen = bytearray()
        self.stored = bytearray()
        self._disk = disk
        self._dirty: dict[int, None] = {}

    def write(self, content: Buffer, offset: int) -> None:
        grown = offset + len(content) - len(self.seen)
        if grown > max(0, self._disk.free):
            # As much as fits is written before the rest is refused.
            fits = len(content) - grown + max(0, self._disk.free)
            self._put(bytes(content)[: max(0, fits)], offset)
            raise StorageFull(self._disk.where)
        self._put(bytes(content), offset)

    def sync(self) -> None:
        if self._disk.sync_fails():
            self.lose_power()  # some sectors made it, and the cache calls all of them clean
            raise StorageFailed(self._disk.where, "Input/output error")
        self._keep(self._dirty)
        del self.stored[len(self.seen) :]

    def truncate(self, size: int) -> None:
        if self._disk.truncates_fail:
            raise StorageFailed(self._disk.where, "Input/output error")
        del self.seen[size:]
        self._dirty[size // SECTOR] = None  # the rest of its last sector reads as zeros
        self.seen.extend(bytes(size - len(self.seen)))

    def close(self) -> None:
        pass

    def lose_power(self) -> None:
        self._keep({sector: None for sector in self._dirty if self._disk.random.random() < 0.5})
        if self._disk.random.random() < 0.5:
            del self.stored[len(self.seen) :]

    def _put(self, content: bytes, offset: int) -> None:
        self.seen.extend(bytes(max(0, offset - len(self.seen))))
        self.seen[offset : offset + len(content)] = content
        if not content:
            return
        last = offset + len(content) - 1
        self._dirty.update(dict.fromkeys(range(offset // SECTOR, last // SECTOR + 1)))

    def _keep(self, sectors: dict[int, None]) -> None:
        for sector in sorted(sectors):
            place = slice(sector * SECTOR, (sector + 1) * SECTOR)
            kept = self.seen[place]
            self.stored.extend(bytes(max(0, place.start + len(kept) - len(self.stored))))
            self.stored[place.start : place.start + len(kept)] = kept
        self._dirty = {}


class FrailDisk:
    """`ports.Disk` in memory, which may lose power, fail to sync, or be full."""

    where = "frail"

    def __init__(self, seed: int = 0, bytes_max: int = 1 << 40) -> None:
        self.random = Random(seed)
        self.syncs_until_failure = NEVER
        self.truncates_fail = False
        self.removes_fail = False
        self.bytes_max = bytes_max
        self.files: dict[str, FrailFile] = {}
        self._stored: dict[str, FrailFile] = {}
        self._moves: list[tuple[str | None, str | None, FrailFile]] = []

    @property
    def free(self) -> int:
        return self.bytes_max - sum(len(file.seen) for file in self.files.values())

    def names(self) -> list[str]:
        return sorted(self.files)

    def read(self, name: str, bytes_max: int = -1, offset: int = 0) -> bytes:
        seen = bytes(self.files[name].seen[offset:])
        return seen if bytes_max < 0 else seen[:bytes_max]

    def create(self, name: str) -> FrailFile:
        assert name not in self.files
        file = FrailFile(self)
        self._move(None, name, file)
        return file

    def open(self, name: str) -> FrailFile:
        return self.files[name]

    def rename(self, old: str, new: str) -> None:
        self._move(old, new, self.files[old])

    def remove(self, name: str) -> None:
        if self.removes_fail:
            raise StorageFailed(self.where, "Input/output error")
        self._move(name, None, self.files[name])

    def sync(self) -> None:
        if self.sync_fails():
            raise StorageFailed(self.where, "Input/output error")
        self._stored = dict(self.files)
        self._moves.clear()

    def sync_fails(self) -> bool:
        self.syncs_until_failure -= 1
        return self.syncs_until_failure == -1

    def lose_power(self) -> None:
        """Each unsynced change of the directory and each unsynced sector is there or not."""
        for move in self._moves:
            if self.random.random() < 0.5:
                _apply(self._stored, *move)
        self._moves.clear()
        self.files = dict(self._stored)
        for file in self.files.values():
            file.lose_power()
            file.seen = bytearray(file.stored)

    def _move(self, old: str | None, new: str | None, file: FrailFile) -> None:
        self._moves.append((old, new, file))
        _apply(self.files, old, new, file)


def _apply(names: dict[str, FrailFile], old: str | None, new: str | None, file: FrailFile) -> None:
    if old is not None:
        names.pop(old, None)
    if new is not None:
        names[new] = file


def opened(disk: FrailDisk) -> FileJournal:
    return FileJournal(disk, "c1", segment_bytes=2_000, ahead_bytes=1_024)


class JournalOnFrailDisk(RuleBasedStateMachine):
    """What was acknowledged is there, in order, whatever happens.

    At most one group stands behind it, a whole one whose append failed after the last that didn't.
    """

    @initialize(seed=st.integers(0, 1 << 32))
    def begin(self, seed: int) -> None:
        self.disk = FrailDisk(seed)
        self.entries: list[bytes] = []
        self.unknown: list[list[bytes]] = []
        self.states: dict[int, bytes] = {}
        self.journal = opened(self.disk)
        self.journal.recover()

    @rule(sizes=st.lists(st.integers(0, 1_500), min_size=1, max_size=4))
    def append(self, sizes: list[int]) -> None:
        self._append(sizes)

    @rule(
        sizes=st.lists(st.integers(0, 1_500), min_size=1, max_size=4),
        after=st.integers(0, 3),
        for_good=st.booleans(),
    )
    def append_with_a_failing_sync(self, sizes: list[int], after: int, for_good: bool) -> None:
        self.disk.syncs_until_failure = after
        self.disk.truncates_fail = for_good
        self._try_append(sizes, StorageFailed)
        self.disk.syncs_until_failure = NEVER
        self.disk.truncates_fail = False

    @rule(
        sizes=st.lists(st.integers(0, 1_500), min_size=1, max_size=4),
        free=st.integers(0, 3_000),
    )
    def append_to_a_full_disk(self, sizes: list[int], free: int) -> None:
        self.disk.bytes_max += free - self.disk.free
        self._try_append(sizes, StorageFull)
        self.disk.bytes_max = 1 << 40

    @precondition(lambda self: self.entries)
    @rule(back=st.integers(0, 10))
    def snapshot(self, back: int) -> None:
        index = max(1, len(self.entries) - back)
        self._snapshot(index)

    @precondition(lambda self: self.entries)
    @rule()
    def snapshot_with_a_failing_sync(self) -> None:
        self.disk.syncs_until_failure = 0
        with suppress(StorageFailed):
            self._snapshot(len(self.entries))
        self.disk.syncs_until_failure = NEVER

    @rule()
    def close(self) -> None:
        self.journal.close()
        self._recover()

    @rule()
    def kill(self) -> None:
        self._recover()

    @rule()
    def lose_power(self) -> None:
        self.disk.lose_power()
        self._recover()

    @rule(after=st.integers(0, 2), kill=st.booleans())
    def lose_power_while_recovering(self, after: int, kill: bool) -> None:
        if not kill:
            self.disk.lose_power()
        self.disk.syncs_until_failure = after
        with suppress(StorageFailed):
            opened(self.disk).recover()
        self.disk.syncs_until_failure = NEVER
        self.disk.lose_power()
        self._recover()

    def _append(self, sizes: list[int]) -> None:
        group = [bytes([1 + self.disk.random.randrange(255)]) * size for size in sizes]
        self.unknown.append(group)
        assert self.journal.append(group) == len(self.entries) + len(group)
        self.entries += group
        self.unknown = []

    def _try_append(self, sizes: list[int], refused: type[StorageFull | StorageFailed]) -> None:
        with suppress(refused):
            self._append(sizes)

    def _snapshot(self, index: int) -> None:
        state = b"".join(self.entries[:index])
        self.states[index] = state
        self.journal.save_snapshot(index, state)

    def _recover(self) -> None:
        self.journal = opened(self.disk)
        found = self.journal.recover()
        base = 0
        if found.snapshot is not None:
            base = found.snapshot.index
            assert found.snapshot == Snapshot(base, self.states[base])
        assert found.first == base + 1
        expected = self.entries[base:]
        assert found.entries[: len(expected)] == expected
        more = found.entries[len(expected) :]
        assert more == [] or more in self.unknown
        self.entries += more
        self.unknown = []


TestJournalOnFrailDisk = JournalOnFrailDisk.TestCase


@pytest.mark.parametrize("for_good", [False, True])
@pytest.mark.parametrize("kill", [False, True])
def test_a_failed_group_never_comes_back_once_another_has_taken_its_place(
    for_good: bool, kill: bool
) -> None:
    """Also if it can't be cut away, because after the sync everything else fails as well."""
    for seed in range(20):
        disk = FrailDisk(seed)
        journal = opened(disk)
        journal.recover()
        journal.append([b"first"])
        disk.truncates_fail = for_good
        for syncs in (0, 2):  # the group's own; that of the first group of a new segment
            disk.syncs_until_failure = syncs
            with pytest.raises(StorageFailed):
                journal.append([b"failed" * 200])
        disk.truncates_fail = False
        assert journal.append([b"second"]) == 2
        assert len(disk.files) == 3  # a segment in which something failed isn't written again
        for _ in range(3):
            if not kill:
                disk.lose_power()
            assert opened(disk).recover().entries == [b"first", b"second"]


@pytest.mark.parametrize("syncs", range(3))
def test_power_lost_while_a_segment_is_begun_costs_only_what_was_not_acknowledged(
    syncs: int,
) -> None:
    for seed in range(40):
        disk = FrailDisk(seed)
        journal = opened(disk)
        journal.recover()
        disk.syncs_until_failure = syncs
        disk.truncates_fail = disk.removes_fail = True
        with pytest.raises(StorageFailed):
            journal.append([b"x" * 3_000])
        disk.truncates_fail = disk.removes_fail = False
        disk.lose_power()
        assert opened(disk).recover().entries in ([], [b"x" * 3_000])


def test_a_group_found_only_in_the_cache_is_made_durable_before_it_is_believed() -> None:
    """After a failed sync the cache holds pages that were never written, and calls them clean."""
    for seed in range(40):
        disk = FrailDisk(seed)
        journal = opened(disk)
        journal.recover()
        journal.append([b"first"])
        disk.syncs_until_failure = 0
        disk.truncates_fail = True
        with pytest.raises(StorageFailed):
            journal.append([b"x" * 3_000])
        disk.truncates_fail = False
        believed = opened(disk).recover().entries
        disk.lose_power()
        assert opened(disk).recover().entries == believed


def test_power_lost_while_such_a_group_is_made_durable_costs_no_more_than_the_group() -> None:
    for seed in range(40):
        disk = FrailDisk(seed)
        journal = opened(disk)
        journal.recover()
        journal.append([b"first"])
        disk.syncs_until_failure = 0
        disk.truncates_fail = True
        with pytest.raises(StorageFailed):
            journal.append([b"x" * 3_000])
        disk.truncates_fail = False
        disk.syncs_until_failure = 0
        with pytest.raises(StorageFailed):
            opened(disk).recover()
        disk.lose_power()
        assert opened(disk).recover().entries in ([b"first"], [b"first", b"x" * 3_000])


@pytest.mark.parametrize("syncs", [1, 2])
def test_there_are_two_snapshots_at_any_time_once_there_were_two(syncs: int) -> None:
    for seed in range(20):
        disk = FrailDisk(seed)
        journal = opened(disk)
        journal.recover()
        for n in range(1, 3):
            journal.append([b"x" * 900])
            journal.save_snapshot(n, b"state")
        journal.append([b"x" * 900])
        disk.syncs_until_failure = syncs
        with pytest.raises(StorageFailed):
            journal.save_snapshot(3, b"state")
        disk.lose_power()
        assert sum(name.endswith(".snapshot") for name in disk.names()) >= 2


def test_appends_go_on_by_themselves_when_space_returns() -> None:
    disk = FrailDisk(bytes_max=20_000)
    journal = opened(disk)
    journal.recover()
    entries: list[bytes] = []
    with suppress(StorageFull):
        while True:
            journal.append([b"%d" % len(entries) * 100])
            entries.append(b"%d" % len(entries) * 100)
    assert len(entries) > 50
    for _ in range(10):
        with pytest.raises(StorageFull):
            journal.append([b"y" * 5_000])
    files = len(disk.files)
    disk.bytes_max = 40_000
    assert journal.append([b"y" * 5_000]) == len(entries) + 1
    assert len(disk.files) <= files + 1
    disk.lose_power()
    assert opened(disk).recover().entries == [*entries, b"y" * 5_000]


def test_a_full_disk_can_still_be_opened_and_read() -> None:
    disk = FrailDisk()
    journal = opened(disk)
    journal.recover()
    journal.append([b"a" * 900])
    journal.close()
    disk.bytes_max = 0
    journal = opened(disk)
    assert journal.recover().entries == [b"a" * 900]
    with pytest.raises(StorageFull):
        journal.append([b"b"])
    disk.bytes_max = 1 << 20
    assert journal.append([b"c"]) == 2


def test_a_snapshot_can_be_saved_again_after_an_attempt_that_left_its_part_behind() -> None:
    disk = FrailDisk()
    journal = opened(disk)
    journal.recover()
    journal.append([b"a"])
    disk.syncs_until_failure = 0
    disk.removes_fail = True
    with pytest.raises(StorageFailed):
        journal.save_snapshot(1, b"a longer state")
    assert any(name.endswith(".part") for name in disk.names())
    disk.removes_fail = False
    journal.save_snapshot(1, b"state")
    disk.lose_power()
    assert opened(disk).recover() == Recovered(Snapshot(1, b"state"), 2, [])


def test_a_snapshot_that_does_not_fit_leaves_the_journal_as_it_was() -> None:
    disk = FrailDisk()
    journal = opened(disk)
    journal.recover()
    journal.append([b"a"])
    before = disk.names()
    disk.bytes_max = 5_000
    with pytest.raises(StorageFull):
        journal.save_snapshot(1, b"state" * 1_000)
    assert disk.names() == before
    disk.bytes_max = 1 << 20
    journal.save_snapshot(1, b"state")
    assert opened(disk).recover().snapshot == Snapshot(1, b"state")
