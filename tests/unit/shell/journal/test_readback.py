"""Entries of a journal are read back by their numbers, while it is written and afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.core.errors import JournalCorrupt, StorageFailed
from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.file_journal import FileJournal
from anabranch.shell.journal.readback import SPACING_BYTES


def journal(root: Path, segment_bytes: int = 4_000) -> FileJournal:
    return FileJournal(RealDisk(str(root)), "c", segment_bytes=segment_bytes, ahead_bytes=4_096)


@contextmanager
def recovered(root: Path, segment_bytes: int = 4_000) -> Iterator[FileJournal]:
    made = journal(root, segment_bytes)
    made.recover()
    try:
        yield made
    finally:
        made.close()


groups = st.lists(
    st.lists(st.binary(min_size=1, max_size=900), min_size=1, max_size=6), min_size=1, max_size=12
)


@settings(max_examples=60, deadline=None)
@given(groups, st.data())
def test_any_stretch_is_what_was_appended_before_and_after_reopening(
    groups: list[list[bytes]], data: st.DataObject
) -> None:
    with TemporaryDirectory() as folder:
        root, entries = Path(folder), list[bytes]()
        with recovered(root) as made:
            for group in groups:
                made.append(group)
                entries += group
                first = data.draw(st.integers(1, len(entries)))
                upto = data.draw(st.integers(first, len(entries) + 1))
                assert made.read(first, upto) == entries[first - 1 : upto - 1]
        with recovered(root) as made:
            for first in range(1, len(entries) + 1, 3):
                assert made.read(first, len(entries) + 1) == entries[first - 1 :]


def test_groups_between_those_that_are_noted_are_found(tmp_path: Path) -> None:
    entries = [b"%d" % n + bytes(1_000) for n in range(4 * SPACING_BYTES // 1_000)]
    with recovered(tmp_path, 1 << 30) as made:
        for entry in entries:
            made.append([entry])
        for n in (0, 1, 63, 64, 65, 130, len(entries) - 1):
            assert made.read(n + 1, n + 2) == [entries[n]]
        assert made.read(60, 200) == entries[59:199]


def test_what_a_snapshot_made_needless_is_said_not_to_be_kept(tmp_path: Path) -> None:
    with recovered(tmp_path, 200) as made:
        for n in range(20):
            made.append([b"%d" % n + bytes(150)])
        for index in (10, 15):
            made.save_snapshot(index, b"state")
        assert made.read(16, 21)[0].startswith(b"15")
        with pytest.raises(StorageFailed, match="entry 1 isn't kept"):
            made.read(1, 3)


def test_an_empty_stretch_reads_nothing_from_the_disk(tmp_path: Path) -> None:
    with recovered(tmp_path) as made:
        made.append([b"a", b"b"])
        for path in tmp_path.glob("*"):
            path.rename(path.with_suffix(".away"))
        assert made.read(2, 2) == []


@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_is_refused_with_file_and_offset(tmp_path: Path, bit: int) -> None:
    with recovered(tmp_path) as made:
        made.append([b"first"])
        made.append([b"the entry that is damaged"])
        made.append([b"last"])
        (path,) = tmp_path.glob("*")
        content = bytearray(path.read_bytes())
        content[content.index(b"damaged")] ^= 1 << bit
        path.write_bytes(content)
        with pytest.raises(JournalCorrupt, match=path.name):
            made.read(2, 3)
        assert made.read(1, 2) == [b"first"], "what lies before it can be read"


def test_a_segment_that_was_cut_meanwhile_is_refused(tmp_path: Path) -> None:
    with recovered(tmp_path) as made:
        made.append([b"first"])
        made.append([bytes(500)])
        (path,) = tmp_path.glob("*")
        path.write_bytes(path.read_bytes()[:300])
        with pytest.raises((JournalCorrupt, StorageFailed)):
            made.read(2, 3)
