"""A data directory belongs to one cluster, one format, and one process at a time."""

import subprocess
import sys
from pathlib import Path

import pytest

from anabranch.core.errors import BadRequest, DataDirLocked, JournalCorrupt, JournalTooNew
from anabranch.shell.journal import data_dir
from anabranch.shell.journal.data_dir import DataDir

HOLD = """
import sys
from anabranch.shell.journal.data_dir import DataDir
held = DataDir(sys.argv[1], "c1")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_new_directory_takes_the_new_cluster_and_keeps_it(tmp_path: Path) -> None:
    root = str(tmp_path / "deep" / "data")
    for proposed in ("c1", "c2", "c3"):
        opened = DataDir(root, proposed)
        assert opened.cluster == "c1"
        opened.close()


def test_a_directory_in_use_is_refused_with_the_process_that_has_it(tmp_path: Path) -> None:
    root = str(tmp_path)
    first = DataDir(root, "c1")
    with pytest.raises(DataDirLocked):
        DataDir(root, "c1")
    first.close()
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, root], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(DataDirLocked, match=f"in use by process {other.pid}"):
            DataDir(root, "c1")
        other.kill()
    DataDir(root, "c1").close()


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    DataDir(str(tmp_path), "c1").close()
    (tmp_path / "format").unlink()
    (tmp_path / "letters").mkdir()
    with pytest.raises(BadRequest, match="holds letters"):
        DataDir(str(tmp_path), "c1")
    assert not (tmp_path / "format").exists()


def test_a_newer_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = data_dir.FORMAT + 1
    monkeypatch.setattr(data_dir, "FORMAT", newer)
    opened = DataDir(str(tmp_path), "c1")
    opened.raise_format()
    opened.close()
    monkeypatch.undo()
    with pytest.raises(JournalTooNew, match=f"format {newer}"):
        DataDir(str(tmp_path), "c1")


def test_a_raised_format_stays_and_keeps_its_cluster(tmp_path: Path) -> None:
    opened = DataDir(str(tmp_path), "c1")
    assert (tmp_path / "format").read_bytes().startswith(b"anabranch data, format 1, cluster c1,")
    opened.raise_format()
    raised = (tmp_path / "format").read_bytes()
    assert raised.startswith(b"anabranch data, format 2, cluster c1,")
    opened.raise_format()
    opened.close()
    reopened = DataDir(str(tmp_path), "c2")
    assert reopened.cluster == "c1"
    reopened.close()
    assert (tmp_path / "format").read_bytes() == raised


def test_a_damaged_identity_is_refused_and_kept_as_it_is(tmp_path: Path) -> None:
    DataDir(str(tmp_path), "c1").close()
    identity = tmp_path / "format"
    intact = identity.read_bytes()
    for place in range(len(intact)):
        damaged = bytearray(intact)
        damaged[place] ^= 1 << place % 8
        identity.write_bytes(damaged)
        with pytest.raises(JournalCorrupt) as refused:
            DataDir(str(tmp_path), "c1")
        assert refused.value.facts["path"] == str(identity)
        assert identity.read_bytes() == damaged
    identity.write_bytes(intact)
    DataDir(str(tmp_path), "c1").close()


def test_an_identity_cut_short_before_it_had_its_name_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / "format.part").write_bytes(b"anabranch da")
    opened = DataDir(str(tmp_path), "c1")
    assert opened.cluster == "c1"
    assert opened.journal == f"{tmp_path}/journal"
    assert opened.objects == f"{tmp_path}/objects"
    opened.close()
