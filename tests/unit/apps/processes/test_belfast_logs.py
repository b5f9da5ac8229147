"""Which logs `anabranch up --processes` starts again."""

import io
import shutil
from pathlib import Path

import pytest

from anabranch.apps.processes.belfast import BelfastShape, settle
from anabranch.apps.processes.belfast_logs import SERVED, BelfastLogs
from anabranch.shell.telemetry.log import Log

NODES = [*(f"ticks-sequencer-{n}" for n in range(3)), *(f"ticks-shard-0-{n}" for n in range(2))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a log that was served."""
    folder = tmp_path / "belfast" / "ticks.7.1700000000000"
    settle(folder, BelfastShape(sequencers=3, shards=1, copies=2))
    for node in NODES:
        journal = folder / node / "data" / "journal"
        journal.mkdir(parents=True)
        (journal / "0000000001.segment").touch()
    (folder / SERVED).touch()
    return folder


def started(folder: Path) -> tuple[list[str], str]:
    """The processes that would be started, and what is logged."""
    said = io.StringIO()
    logs = BelfastLogs(folder.parent.parent, "anabranch://127.0.0.1:1", Log(lambda: 0, stream=said))
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
