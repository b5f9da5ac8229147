"""A disk that waits for nothing keeps what is written, and asks for no sync."""

import os
from pathlib import Path

import pytest

from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.file_journal import FileJournal
from anabranch.shell.journal.unsynced_disk import UnsyncedDisk


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UnsyncedDisk:
    made = UnsyncedDisk(RealDisk(str(tmp_path / "journal")))

    def never(_: int) -> None:
        raise AssertionError("something was synced")

    monkeypatch.setattr(os, "fsync", never)
    monkeypatch.setattr(os, "fdatasync", never)
    return made


def test_its_files_are_those_of_the_disk_behind_it(disk: UnsyncedDisk) -> None:
    file = disk.create("x")
    file.write(b"content", 0)
    file.truncate(4)
    file.sync()
    file.close()
    disk.sync()
    assert (disk.names(), disk.read("x"), disk.read("x", 2, 1)) == (["x"], b"cont", b"on")
    disk.rename("x", "y")
    again = disk.open("y")
    again.write(b"C", 0)
    again.sync()
    again.close()
    assert disk.read("y") == b"Cont"
    disk.remove("y")
    assert disk.names() == []
    assert disk.where.endswith("/journal")


def test_a_journal_on_it_is_whole_after_its_process_ended(disk: UnsyncedDisk) -> None:
    journal = FileJournal(disk, "c", segment_bytes=1_000, ahead_bytes=512)
    journal.recover()
    entries = [b"%d" % n + bytes(200) for n in range(30)]
    for entry in entries:
        journal.append([entry])
    journal.save_snapshot(10, b"state")
    # It is never closed, as by a process that was killed.
    found = FileJournal(disk, "c").recover()
    assert found.snapshot is not None
    assert (found.snapshot.index, found.entries) == (10, entries[10:])


def test_only_a_journal_on_it_is_prompt(disk: UnsyncedDisk, tmp_path: Path) -> None:
    assert FileJournal(disk, "c").prompt
    assert not FileJournal(RealDisk(str(tmp_path)), "c").prompt
