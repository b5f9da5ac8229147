"""Which logs `anabranch up --processes` starts again."""

import io
import shutil
from pathlib import Path

import pytest

from anabranch.apps.embedded.folders import LogFolder
from anabranch.apps.processes import catalogue_logs
from anabranch.apps.processes.catalogue_logs import SERVED, CatalogueLogs
from anabranch.apps.processes.local_log import FILES, LogShape, Node, Promise, settle
from anabranch.core.bolt.protocol.commands import EngineSettings
from anabranch.core.quota import Quota
from anabranch.shell.journal.watermark import Watermark, WatermarkFile
from anabranch.shell.telemetry.log import Log

FILE = FILES["belfast"]
NODES = [*(f"ticks-sequencer-{n}" for n in range(3)), *(f"ticks-shard-0-{n}" for n in range(2))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a log that was served."""
    folder = tmp_path / "belfast" / "ticks.7.1700000000000"
    settle(folder, LogShape(sequencers=3, shards=1, copies=2))
    for node in NODES:
        journal = folder / node / "data" / "journal"
        journal.mkdir(parents=True)
        (journal / "0000000001.segment").touch()
    (folder / SERVED).touch()
    return folder


def logs_in(folder: Path, said: io.StringIO, *, accept_loss: bool = False) -> CatalogueLogs:
    log = Log(lambda: 0, stream=said)
    url, cluster = "anabranch://127.0.0.1:1", folder.parent.parent
    return CatalogueLogs(cluster, url, log, accept_loss=accept_loss)


def note(folder: Path, *nodes: str) -> None:
    """That their journals reached some entry; without nodes, of all."""
    notes = str(folder.parent.parent / "reached" / folder.name)
    for name in nodes or [each.removeprefix("ticks-") for each in NODES]:
        WatermarkFile(notes, name).create(Watermark(9, lives=0))


def started(folder: Path) -> tuple[list[str], str]:
    """The processes that would be started, and what is logged."""
    said = io.StringIO()
    logs = logs_in(folder, said)
    return sorted(node.name for node in logs.processes), said.getvalue()


@pytest.mark.parametrize("gone", [[], NODES[:1], NODES[2:4]])
def test_nodes_that_the_others_fill_are_started(folder: Path, gone: list[str]) -> None:
    for node in gone:
        shutil.rmtree(folder / node)
    assert started(folder)[0] == sorted(NODES)


@pytest.mark.parametrize("gone", [NODES[:2], NODES[3:], NODES])
def test_a_log_that_would_begin_again_empty_is_not_started(folder: Path, gone: list[str]) -> None:
    for node in gone:
        shutil.rmtree(folder / node / "data")
    names, said = started(folder)
    assert names == []
    assert all(str(folder / node) in said for node in gone)
    assert "back-up" in said


def test_a_log_that_never_was_served_may_have_no_journals_yet(folder: Path) -> None:
    (folder / SERVED).unlink()
    for node in NODES:
        shutil.rmtree(folder / node)
    assert started(folder)[0] == sorted(NODES)


def test_a_log_of_which_nothing_but_notes_is_left_is_not_taken_for_none(folder: Path) -> None:
    note(folder)
    shutil.rmtree(folder)
    names, said = started(folder)
    assert names == []
    assert str(folder / FILE) in said
    assert "--accept-loss" in said


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b"[1]"])
def test_a_log_whose_file_is_damaged_keeps_no_other_from_being_started(
    folder: Path, content: bytes
) -> None:
    other = folder.parent / "tocks.8.1700000000000"
    settle(other, LogShape(sequencers=1, shards=1, copies=1))
    (folder / FILE).write_bytes(content)
    names, said = started(folder)
    assert names == ["tocks-sequencer-0", "tocks-shard-0-0"]
    assert f"{folder / FILE}: it can't be read" in said
    assert "back-up" in said


def test_a_note_alone_says_that_a_journal_held_something(folder: Path) -> None:
    """Of a log that a client never found, because not all of its nodes were ready."""
    (folder / SERVED).unlink()
    note(folder, "shard-0-0")
    shutil.rmtree(folder / "ticks-shard-0-0")
    shutil.rmtree(folder / "ticks-shard-0-1")
    assert started(folder)[0] == sorted(NODES), "the other may fill it: it never held anything"
    note(folder, "shard-0-0", "shard-0-1")
    assert started(folder)[0] == []


def test_a_node_that_others_fill_is_new_and_each_is_told_where_to_note(folder: Path) -> None:
    note(folder)
    notes = folder.parent.parent / "reached" / folder.name
    shutil.rmtree(folder / NODES[0])
    logs = logs_in(folder, io.StringIO())
    kept = [name.removeprefix("ticks-") for name in NODES[1:]]
    assert sorted(each.name for each in notes.iterdir()) == sorted(kept)
    for node in logs.processes:
        flag = str(notes / node.name.removeprefix("ticks-"))
        assert node._command[node._command.index("--reached-file") + 1] == flag


class FakeCatalogue:
    """Says what a test wants."""

    def __init__(self) -> None:
        self.wanted: dict[LogFolder, EngineSettings] = {}
        self.quotas: dict[LogFolder, Quota | None] = {}
        self.deleted = frozenset[LogFolder]()
        self.asked = frozenset[LogFolder]()

    def ask_about(self, folders: frozenset[LogFolder]) -> None:
        self.asked = folders


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of processes that would run."""
    names: list[str] = []
    monkeypatch.setattr(Node, "launch", lambda self: names.append(self.name))
    return names


def test_who_accepts_the_loss_has_what_is_left_put_aside_once_the_log_is_asked_for(
    folder: Path, launched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    note(folder)
    for node in NODES[3:]:
        shutil.rmtree(folder / node)
    catalogue, said = FakeCatalogue(), io.StringIO()
    monkeypatch.setattr(catalogue_logs, "Catalogue", lambda *_: catalogue)
    logs = logs_in(folder, said, accept_loss=True)
    logs.tend()
    assert logs.processes == []
    assert "will begin anew" in said.getvalue()
    assert (folder / FILE).exists(), "nothing is put aside before the catalogue is known"
    (ticks,) = catalogue.asked
    before = (folder / FILE).read_bytes()
    catalogue.wanted[ticks] = EngineSettings(1, 1, 1, ("127.0.0.1:1",), "local-before")
    logs.tend()
    assert sorted(launched) == ["ticks-sequencer-0", "ticks-shard-0-0"]
    aside = folder.parent.parent / "given-up" / folder.name
    assert str(aside) in said.getvalue()
    assert (aside / FILE).read_bytes() == before
    assert (folder / FILE).read_bytes() != before, "it has another name and other addresses"
    assert not (folder / SERVED).exists()
    assert not list((folder.parent.parent / "reached").iterdir())


def test_accepting_a_loss_changes_nothing_for_a_log_that_is_whole(
    folder: Path, launched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    note(folder)
    monkeypatch.setattr(catalogue_logs, "Catalogue", lambda *_: FakeCatalogue())
    logs = logs_in(folder, io.StringIO(), accept_loss=True)
    logs.tend()
    assert [node.name for node in logs.processes] == NODES
    assert not (folder.parent.parent / "given-up").exists()


def test_a_log_gets_the_shards_that_the_catalogue_says_it_has(
    folder: Path, launched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    note(folder)
    catalogue = FakeCatalogue()
    monkeypatch.setattr(catalogue_logs, "Catalogue", lambda *_: catalogue)
    logs = logs_in(folder, io.StringIO())
    logs.tend()
    (ticks,) = catalogue.asked
    catalogue.wanted[ticks] = EngineSettings(2, 2, 3, ("127.0.0.1:1",), "local")
    logs.tend()
    assert launched == ["ticks-shard-1-0", "ticks-shard-1-1"]
    assert [node.name for node in logs.processes] == [*NODES, *launched]
    assert not (folder / SERVED).exists(), "the new replicas have no journals yet"
    logs.tend()
    assert len(launched) == 2
    assert [node for node in started(folder)[0] if "shard-1" in node] == launched


def test_shards_whose_journals_are_in_black_boxes_miss_none_and_each_is_told_its_own(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "erwin" / "audit.7.1700000000000"
    promise = Promise(black_box="kafka://h:9092/audit")
    settle(folder, LogShape(1, 2, 1), engine="erwin", promise=promise)
    journal = folder / "audit-sequencer-0" / "data" / "journal"
    journal.mkdir(parents=True)
    (journal / "0000000001.segment").touch()
    (folder / SERVED).touch()
    WatermarkFile(str(tmp_path / "reached" / "erwin" / folder.name), "shard-0-0").create(
        Watermark(9, lives=0)
    )
    log = Log(lambda: 0, stream=io.StringIO())
    logs = CatalogueLogs(tmp_path, "anabranch://127.0.0.1:1", log, kafka_file="/k.toml")
    shards = [node for node in logs.processes if "shard" in node.name]
    assert len(logs.processes) == 3
    for number, node in enumerate(shards):
        flags = node._command[node._command.index("--black-box") :][:4]
        assert flags == ["--black-box", f"kafka://h:9092/audit-{number}", "--kafka-file", "/k.toml"]
    shutil.rmtree(journal)
    assert not CatalogueLogs(tmp_path, "anabranch://127.0.0.1:1", log).processes
