"""A journal's directory, read without changing a byte."""

import hashlib
from functools import partial
from pathlib import Path

import pytest

from anabranch.core.errors import JournalCorrupt, JournalTooNew, WrongCluster
from anabranch.core.storage import journal
from anabranch.core.storage.journal import FIRST_VERSION, VERSION, segment_header
from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.file_journal import FileJournal
from anabranch.shell.journal.replay import PART, Replay, groups, look, replay

ENTRIES = [b"entry %d " % n + bytes(100) for n in range(24)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Of several segments, of a process that was killed."""
    disk = RealDisk(str(tmp_path / "journal"))
    written = FileJournal(disk, "c", segment_bytes=700, ahead_bytes=512)
    written.recover()
    for at in range(0, len(ENTRIES), 2):
        written.append(ENTRIES[at : at + 2])
    return tmp_path / "journal"


def read(root: Path) -> Replay:
    return replay(RealDisk(str(root)), "c")


def state(root: Path) -> dict[str, str]:
    return {
        each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in sorted(root.iterdir())
    }


def test_a_journal_of_version_1_is_read_and_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = RealDisk(str(tmp_path / "old"))
    with monkeypatch.context() as before:
        header = partial(segment_header, version=FIRST_VERSION)
        before.setattr(journal, "segment_header", header)
        old = FileJournal(disk, "c", segment_bytes=700, ahead_bytes=512)
        old.recover()
        old.append(ENTRIES[:6])
        old.append(ENTRIES[6:12])
    for at in range(12, len(ENTRIES), 4):
        following = FileJournal(disk, "c", segment_bytes=700, ahead_bytes=512)
        assert following.recover().entries == ENTRIES[:at]
        following.append(ENTRIES[at : at + 4])
    found = read(tmp_path / "old")
    assert found.entries == ENTRIES
    assert {each.header.version for each in found.segments} == {FIRST_VERSION, VERSION}


def test_all_entries_are_found_and_not_a_byte_is_changed(root: Path) -> None:
    before = state(root)
    found = read(root)
    assert found.entries == ENTRIES
    assert (found.first, found.snapshot, found.unfinished) == (1, None, [])
    assert len(found.segments) > 2
    assert state(root) == before


def test_groups_come_one_by_one_in_order_and_tell_the_end_at_last(root: Path) -> None:
    disk = RealDisk(str(root))
    found = look(disk, "c")
    firsts = [group.first for _, group in groups(disk, found)]
    assert firsts == list(range(1, len(ENTRIES), 2))
    assert found.tail is not None
    assert not found.tail.torn


def test_a_last_segment_cut_at_any_byte_gives_whole_groups_or_is_refused(root: Path) -> None:
    last = max(root.iterdir())
    whole = last.read_bytes()
    earlier = read_without(root, last)
    for size in range(len(whole.rstrip(b"\0")) + 1):
        last.write_bytes(whole[:size])
        try:
            entries = read(root).entries
        except JournalCorrupt:
            continue
        assert len(entries) % 2 == 0, "no group is given in part"
        assert entries == ENTRIES[: len(entries)]
        assert len(entries) >= earlier


def read_without(root: Path, last: Path) -> int:
    content = last.read_bytes()
    last.unlink()
    count = len(read(root).entries)
    last.write_bytes(content)
    return count


def test_any_flipped_bit_before_the_last_segment_is_refused(root: Path) -> None:
    first = min(root.iterdir())
    whole = first.read_bytes()
    for at in range(0, len(whole), 7):
        first.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        try:
            entries = read(root).entries
        except (JournalCorrupt, JournalTooNew, WrongCluster):
            continue
        # What lies behind the last group of a segment that was left is no part of it.
        assert entries == ENTRIES, at
    first.write_bytes(whole)


def test_behind_which_segment_one_is_missing_is_said(root: Path) -> None:
    first, second, *_ = sorted(root.iterdir())
    second.unlink()
    with pytest.raises(JournalCorrupt, match=first.name):
        read(root)


def test_a_segment_under_anothers_name_is_refused(root: Path) -> None:
    first, second, *_ = sorted(root.iterdir())
    second.write_bytes(first.read_bytes())
    with pytest.raises(JournalCorrupt, match="this is segment 1 by its header"):
        read(root)


def test_unfinished_files_are_named_and_left(root: Path) -> None:
    (root / f"{'0' * 15}9.snapshot{PART}").write_bytes(b"half")
    assert len(read(root).unfinished) == 1
    assert (root / f"{'0' * 15}9.snapshot{PART}").exists()


def test_the_journal_of_another_cluster_is_refused(root: Path) -> None:
    with pytest.raises(WrongCluster):
        replay(RealDisk(str(root)), "another")


def test_nothing_at_all_is_an_empty_journal(tmp_path: Path) -> None:
    found = replay(RealDisk(str(tmp_path)), "c")
    assert (found.entries, found.first, found.tail, found.mark) == ([], 1, None, 0)
