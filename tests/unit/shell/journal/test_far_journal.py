"""Where a journal is that isn't in its data directory, as a note there says."""

from pathlib import Path

import pytest

from anabranch.core.errors import StorageFailed
from anabranch.shell.journal.far_journal import PLACE_BYTES_MAX, note_place, noted_place


def test_a_place_is_what_was_noted_last(tmp_path: Path) -> None:
    assert noted_place(str(tmp_path)) == ""
    for place in ("anabranch://a:7420/box", "kafka://b:9092/topic"):
        note_place(str(tmp_path), place)
        assert noted_place(str(tmp_path)) == place


def test_a_file_that_no_note_can_be_is_refused_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "black-box").write_bytes(b"x" * (PLACE_BYTES_MAX + 1))
    with pytest.raises(StorageFailed) as refused:
        noted_place(str(tmp_path))
    assert "is larger than" in refused.value.message
    assert len(refused.value.message) < 1_000
