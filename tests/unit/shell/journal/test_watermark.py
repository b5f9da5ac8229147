"""The note of how far a journal went: what is read of it, whatever a crash left."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from anabranch.core.errors import (
    JournalBehind,
    JournalCorrupt,
    NoteDamaged,
    StorageFailed,
    StorageFull,
)
from anabranch.ports import Disk, Recovered
from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.file_journal import FileJournal
from anabranch.shell.journal.unsynced_disk import UnsyncedDisk
from anabranch.shell.journal.watermark import (
    FILE,
    SYNC_S,
    NotedJournal,
    NotedRecordJournal,
    Watermark,
    WatermarkFile,
)

SLOT = 512


class Journal:
    """Counts entries; fails when told to."""

    def __init__(self) -> None:
        self.last = 0
        self.full = False

    def recover(self) -> Recovered:
        return Recovered(None, 1, [])

    def append(self, entries: Sequence[bytes]) -> int:
        if self.full:
            raise StorageFull("the journal")
        self.last += len(entries)
        return self.last

    def save_snapshot(self, index: int, content: bytes) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def file(tmp_path: Path) -> WatermarkFile:
    return WatermarkFile(str(tmp_path))


@pytest.fixture
def noted(file: WatermarkFile) -> NotedJournal:
    journal = NotedJournal(Journal(), file, lambda: 0.0)
    journal.begin(Watermark(0, 3))
    return journal


def test_nothing_is_known_of_a_folder_without_it(file: WatermarkFile) -> None:
    assert file.read() is None


def test_every_append_is_noted_when_it_is_durable(file: WatermarkFile, noted: NotedJournal) -> None:
    for turn in range(1, 5):
        noted.append([b"x"])
        assert file.read() == Watermark(turn, 3, turn)


def test_an_append_that_failed_is_not_noted(file: WatermarkFile) -> None:
    inner = Journal()
    journal = NotedJournal(inner, file, lambda: 0.0)
    journal.begin(Watermark(0, 1))
    journal.append([b"x"])
    inner.full = True
    with pytest.raises(StorageFull):
        journal.append([b"x"])
    assert file.read() == Watermark(1, 1, 1)


@pytest.mark.parametrize("slot", [0, 1])
def test_a_torn_note_leaves_the_one_before_it(
    file: WatermarkFile, noted: NotedJournal, tmp_path: Path, slot: int
) -> None:
    noted.append([b"x"])
    noted.append([b"x"])
    content = bytearray((tmp_path / FILE).read_bytes())
    content[slot * SLOT + 60] ^= 1
    (tmp_path / FILE).write_bytes(content)
    found = file.read()
    assert found is not None
    assert found.entry == (1 if slot == 0 else 2)


def test_a_journal_that_lost_what_is_noted_is_not_replayed_as_if_it_had_ended_there(
    tmp_path: Path,
) -> None:
    def opened(folder: str) -> NotedRecordJournal:
        note = WatermarkFile(str(tmp_path / "notes"), "node")
        mark = note.read()
        disk = RealDisk(str(tmp_path / folder))
        files = FileJournal(disk, "c", noted=mark.entry if mark else 0)
        return NotedRecordJournal(files, note, lambda: 0.0)

    journal = opened("whole")
    assert journal.recover_into(lambda _: None, lambda *_: None).last == 0
    journal.append([b"1"])
    shutil.copytree(tmp_path / "whole", tmp_path / "older")
    journal.append([b"2", b"3"])
    journal.close()
    assert opened("whole").recover().last == 3
    with pytest.raises(JournalCorrupt):
        opened("older").recover()
    with pytest.raises(JournalBehind):
        opened("empty").recover_into(lambda _: None, lambda *_: None)


def test_a_note_without_an_intact_line_is_not_taken_for_none(
    file: WatermarkFile, noted: NotedJournal, tmp_path: Path
) -> None:
    noted.close()
    (tmp_path / FILE).write_bytes(b"")
    with pytest.raises(NoteDamaged) as refused:
        file.read()
    assert "Put it back from a back-up" in refused.value.message
    assert "device" not in refused.value.message


def test_it_is_as_prompt_as_its_journal_until_the_note_is_to_be_synced(
    file: WatermarkFile, tmp_path: Path
) -> None:
    def opened(disk: Disk) -> NotedRecordJournal:
        journal = NotedRecordJournal(FileJournal(disk, "c"), file, lambda: seconds)
        journal.recover()
        return journal

    seconds = 0.0
    assert not opened(RealDisk(str(tmp_path / "synced"))).prompt
    journal = opened(UnsyncedDisk(RealDisk(str(tmp_path / "unsynced"))))
    assert journal.prompt
    seconds = SYNC_S
    assert not journal.prompt
    journal.append([b"x"])
    assert journal.prompt


def test_a_pipe_in_the_place_of_a_note_keeps_nobody_waiting(
    file: WatermarkFile, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / FILE)
    with pytest.raises(StorageFailed, match="isn't a regular file"):
        file.read()
