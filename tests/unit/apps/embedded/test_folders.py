"""Where embedded logs keep their journals, and which of their folders may be deleted."""

import shutil
from pathlib import Path

import pytest

from anabranch.apps.embedded.folders import Folders, LogFolder, deleted, parse
from anabranch.apps.node_machine import node_journal
from anabranch.core.bolt.protocol.commands import (
    FORMAT,
    FRONT,
    CreateLog,
    DeleteLog,
    EngineSettings,
    Entry,
    RaiseFormat,
)
from anabranch.core.bolt.state.state import State
from anabranch.core.limits import Limits
from anabranch.core.types import LogId
from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.watermark import NotedRecordJournal, Watermark

TICKS = LogFolder(LogId(7), 1_700_000_000_000, "ticks.a.1", "belfast")


def test_a_folders_name_says_which_log_it_is() -> None:
    assert TICKS.name == "ticks.a.1.7.1700000000000"
    assert parse(TICKS.name, "belfast") == TICKS


@pytest.mark.parametrize("name", ["ticks", "ticks.7", ".7.1", ".deleted-x.7.1", "ticks.7.x"])
def test_whatever_else_lies_there_is_no_logs(name: str) -> None:
    assert parse(name, "belfast") is None


def test_a_deletion_leaves_nothing_and_can_be_repeated(tmp_path: Path) -> None:
    folders = Folders(str(tmp_path))
    assert folders.found() == []
    folders.make(TICKS)
    folders.make(TICKS)
    (Path(folders.path(TICKS, "node"))).mkdir()
    assert folders.found() == [TICKS]
    folders.delete(TICKS)
    folders.delete(TICKS)
    assert list(Path(folders.root("belfast")).iterdir()) == []


def test_a_deletion_that_was_cut_off_is_finished(tmp_path: Path) -> None:
    folders = Folders(str(tmp_path))
    folders.sweep()
    folders.make(TICKS)
    left = Path(folders.root("belfast")) / f".deleted-{TICKS.name}"
    (Path(folders.root("belfast")) / TICKS.name).rename(left)
    assert folders.found() == [], "nobody takes it for the log's"
    folders.sweep()
    assert not left.exists()


def _journal(folders: Folders, node: str, entries: int) -> None:
    disk = RealDisk(folders.path(TICKS, node))
    journal = NotedRecordJournal(node_journal(disk, "c"), folders.note(TICKS, node), lambda: 0.0)
    journal.recover()
    for _ in range(entries):
        journal.append([b"x"])
    journal.close()


def test_a_journal_is_gone_if_it_is_known_to_have_held_something(tmp_path: Path) -> None:
    folders = Folders(str(tmp_path))
    folders.make(TICKS)
    _journal(folders, "sequencer-0", 3)
    _journal(folders, "shard-0-0", 0)
    for node in ("sequencer-0", "shard-0-0"):
        assert not folders.is_gone(TICKS, node)
        shutil.rmtree(folders.path(TICKS, node))
    assert folders.reached(TICKS, "sequencer-0") == 3
    assert folders.nodes(TICKS) == ["sequencer-0", "shard-0-0"]
    assert folders.is_gone(TICKS, "sequencer-0")
    assert not folders.is_gone(TICKS, "shard-0-0"), "nothing can have been acknowledged"
    assert not folders.is_gone(TICKS, "shard-1-0"), "nobody has heard of it"
    folders.forget(TICKS, "sequencer-0")
    assert not folders.is_gone(TICKS, "sequencer-0")


def test_what_is_left_of_a_log_that_is_given_up_is_put_aside_each_time(tmp_path: Path) -> None:
    folders = Folders(str(tmp_path))
    for entries in (1, 2):
        folders.make(TICKS)
        _journal(folders, "shard-0-0", entries)
        aside = Path(folders.give_up(TICKS))
        assert list((aside / "shard-0-0").glob("*.segment"))
        assert folders.found() == folders.noted() == []
    assert len(list((tmp_path / "given-up").iterdir())) == 2


def test_a_deleted_log_leaves_no_notes(tmp_path: Path) -> None:
    folders = Folders(str(tmp_path))
    folders.make(TICKS)
    _journal(folders, "shard-0-0", 1)
    assert folders.noted() == [TICKS]
    folders.delete(TICKS)
    assert folders.noted() == []


def test_only_the_catalogue_proves_that_a_log_was_deleted() -> None:
    state = State("c", Limits())
    settings = EngineSettings(embedded=True)
    for at, command in enumerate(
        (RaiseFormat(FORMAT), CreateLog("ticks", engine="belfast", settings=settings)), 1
    ):
        state.apply(Entry(at, b"", command))
    (log,) = state.replica.forest.foreign.values()
    folder = LogFolder.of(log)
    assert (folder.id, folder.created_at, folder.log) == (log.id, 2, "ticks")
    assert not deleted(state.replica, folder)
    state.apply(Entry(3, b"", DeleteLog(log.id)))
    assert deleted(state.replica, folder)
    assert not deleted(state.replica, LogFolder(log.id, 2, "other", "belfast"))
    assert not deleted(state.replica, LogFolder(LogId(99), 2, "ticks", "belfast"))


def test_each_engine_has_folders_and_notes_of_its_own(tmp_path: Path) -> None:
    """Belfast's are where releases put them that knew no other engine."""
    folders = Folders(str(tmp_path))
    blue = LogFolder(LogId(8), 1, "blue", "erwin")
    for folder in (TICKS, blue):
        folders.make(folder)
        folders.note(folder, "sequencer-0").create(Watermark(9, lives=0))
    assert sorted(folders.found()) == sorted(folders.noted()) == [TICKS, blue]
    assert (tmp_path / "belfast" / TICKS.name).is_dir()
    assert (tmp_path / "reached" / TICKS.name / "sequencer-0").is_file()
    assert (tmp_path / "erwin" / blue.name).is_dir()
    assert (tmp_path / "reached" / "erwin" / blue.name / "sequencer-0").is_file()
    folders.delete(blue)
    assert folders.found() == folders.noted() == [TICKS]


@pytest.mark.parametrize(
    ("engine", "event"), [(FRONT, "removed a lazy front"), ("erwin", "deleted a log")]
)
def test_a_front_that_is_gone_is_not_called_a_deleted_log(engine: str, event: str) -> None:
    assert LogFolder(LogId(7), 1_700_000_000_000, "carts", engine).removal == event
