"""A data directory says whose it is, in which format, and belongs to one process at a time."""

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from anabranch.core.errors import BadRequest, DataDirLocked, JournalCorrupt, JournalTooNew
from anabranch.shell.journal import data_dir
from anabranch.shell.journal.data_dir import FORMAT, DataDir, exclusive, holds_something


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def made(root: Path) -> Path:
    with closing(DataDir(str(root), "home")) as opened:
        assert opened.cluster == "home"
    return root


def test_a_directory_belongs_to_the_cluster_that_it_was_made_for(made: Path) -> None:
    with closing(DataDir(str(made), "another")) as opened:
        assert opened.cluster == "home"
        assert opened.journal == f"{made}/journal"
        assert opened.objects == f"{made}/objects"


OPEN = """
import sys
from anabranch.core.errors import DataDirLocked
from anabranch.shell.journal.data_dir import DataDir
try:
    DataDir(sys.argv[1], "home")
except DataDirLocked as refused:
    print(refused.message)
"""


def test_one_process_has_it_and_another_is_told_which(made: Path) -> None:
    with closing(DataDir(str(made), "home")):
        command = [sys.executable, "-c", OPEN, str(made)]
        said = subprocess.run(command, check=True, capture_output=True, text=True)
        assert str(os.getpid()) in said.stdout
    DataDir(str(made), "home").close()


def test_who_only_reads_needs_no_lock(made: Path) -> None:
    with (
        closing(DataDir(str(made), "home")),
        closing(DataDir(str(made), "home", shared=True)) as beside,
    ):
        assert beside.cluster == "home"


def test_a_refused_directory_isnt_kept_locked(root: Path) -> None:
    root.mkdir()
    (root / "stranger").touch()
    for _ in range(2):
        with pytest.raises(BadRequest, match="it holds stranger"):
            DataDir(str(root), "home")
    (root / "stranger").unlink()
    DataDir(str(root), "home").close()


@pytest.mark.parametrize("name", ["lock", "lost+found", "format.part"])
def test_what_may_lie_in_an_empty_directory_is_no_stranger(root: Path, name: str) -> None:
    root.mkdir()
    (root / name).write_bytes(b"left by a process that was killed")
    assert not holds_something(str(root))
    DataDir(str(root), "home").close()
    assert holds_something(str(root))


def test_an_identity_that_is_cut_at_any_byte_is_refused_by_name(made: Path) -> None:
    file = made / "format"
    whole = file.read_bytes()
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        with pytest.raises(JournalCorrupt, match="format"):
            DataDir(str(made), "home")
    file.write_bytes(whole)
    DataDir(str(made), "home").close()


def test_a_flipped_bit_in_the_identity_is_never_another_cluster(made: Path) -> None:
    file = made / "format"
    whole = file.read_bytes()
    for at in range(len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises((JournalCorrupt, JournalTooNew)):
            DataDir(str(made), "home")


def test_a_directory_of_a_later_version_is_refused_and_left_as_it_is(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(DataDir(str(made), "home")) as opened:
        opened.raise_format()
    before = (made / "format").read_bytes()
    monkeypatch.setattr(data_dir, "FORMAT", FORMAT - 1)
    with pytest.raises(JournalTooNew):
        DataDir(str(made), "home")
    assert (made / "format").read_bytes() == before


def test_a_format_is_raised_once_and_keeps_the_cluster(made: Path) -> None:
    for _ in range(2):
        with closing(DataDir(str(made), "home")) as opened:
            opened.raise_format()
            assert opened.cluster == "home"
    with closing(DataDir(str(made), "another")) as opened:
        assert opened.cluster == "home"


def test_a_format_that_was_half_written_is_as_before(made: Path) -> None:
    (made / "format.part").write_bytes(b"anabranch data, form")
    with closing(DataDir(str(made), "another")) as opened:
        assert opened.cluster == "home"
        opened.raise_format()
    with closing(DataDir(str(made), "another")) as opened:
        assert opened.cluster == "home"


def test_any_folder_can_be_kept_to_one_process(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with exclusive(folder):
        (folder / "x").touch()
        with pytest.raises(DataDirLocked), exclusive(folder):
            pass
    with exclusive(folder):
        assert (folder / "x").exists()
    assert not holds_something(str(tmp_path / "nowhere"))


def test_a_directory_of_one_belfast_log_is_told_from_one_of_somebody_else(root: Path) -> None:
    root.mkdir()
    (root / "belfast.json").write_text("{}")
    with pytest.raises(BadRequest, match="`anabranch up --engine belfast`"):
        DataDir(str(root), "home")
