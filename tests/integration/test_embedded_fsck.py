"""fsck and recover on a data directory with a Belfast log whose journals are damaged or gone."""

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.server_process import running, shard_values
from tests.integration.test_cli_fsck import flip
from tests.integration.test_embedded import append_to_belfast, created

from anabranch.cli.failure import Exit, run
from anabranch.cli.main import PROGRAM, cli
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.errors import JournalBehind

RECORDS = 200
OTHER = 3
Fsck = Callable[..., dict[str, Any]]


@pytest.fixture
def fsck(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Fsck:
    """Its report, with its exit code."""

    def command(*options: str) -> dict[str, Any]:
        code = run(cli, PROGRAM, ["fsck", "--data", str(tmp_path), "-o", "json", *options])
        said = capsys.readouterr()
        return {"code": code, "said": said.err, **(json.loads(said.out) if said.out else {})}

    return command


def made(data: Path, replicas: int = 1, sequencers: int = 1) -> tuple[Description, Path]:
    """A log with records, and its folder."""
    with running(data) as process:
        log = created(process.line(), "ticks", 1, replicas, sequencers)
        append_to_belfast(process.node(log, "shard-0-0"), 0, RECORDS)
        assert process.end(signal.SIGTERM) == 0
    (folder,) = (data / "belfast").iterdir()
    return log, folder


def damage(folder: Path, node: str) -> None:
    path = max((folder / node).glob("*.segment"), key=lambda each: each.stat().st_size)
    flip(path, path.stat().st_size // 2)


def test_folders_that_are_gone_are_faults(tmp_path: Path, fsck: Fsck) -> None:
    made(tmp_path)
    assert fsck()["code"] == Exit.OK
    shutil.rmtree(tmp_path / "belfast")
    found = fsck()
    assert found["code"] == Exit.DAMAGE
    assert {(each["where"], each["code"]) for each in found["faults"]} == {
        ("ticks/sequencer-0", "node-journal-missing"),
        ("ticks/shard-0-0", "node-journal-missing"),
    }
    assert all("--accept-loss" in each["reason"] for each in found["faults"])
    assert not (tmp_path / "belfast").exists(), "it only looks"


def test_a_damaged_shard_without_other_replicas_is_cut_at_the_cost_that_was_told(
    tmp_path: Path, fsck: Fsck
) -> None:
    log, folder = made(tmp_path)
    damage(folder, "shard-0-0")
    found = fsck()
    (fault,) = found["faults"]
    assert (fault["where"], fault["code"]) == ("ticks/shard-0-0", "node-journal-corrupt")
    assert "anabranch fsck" not in fault["reason"]
    (cut,) = found["node_cuts"]
    assert 0 < cut["records"] < RECORDS
    assert cut["lost"] > 0
    assert fsck("--cut-journal")["code"] == Exit.USAGE
    done = fsck("--cut-journal", "--yes")
    assert done["code"] == Exit.OK, done
    with running(tmp_path) as process:
        kept = shard_values(process, log, 0)
        assert kept == list(range(len(kept)))
        assert RECORDS - cut["records"] - 1 <= len(kept) < RECORDS, "one may be under the damage"
        append_to_belfast(process.node(log, "shard-0-0"), len(kept), 1)
        assert shard_values(process, log, 0) == list(range(len(kept) + 1))


def test_a_damaged_order_without_other_sequencers_is_not_cut(tmp_path: Path, fsck: Fsck) -> None:
    """Shards would know more of it than their sequencers."""
    _, folder = made(tmp_path)
    damage(folder, "sequencer-0")
    found = fsck("--cut-journal", "--yes")
    assert found["code"] == Exit.DAMAGE
    assert found["node_cuts"] == found["done"] == []
    (fault,) = found["faults"]
    assert fault["code"] == "node-journal-corrupt"
    assert "--accept-loss" in fault["reason"]


def test_a_damaged_replica_is_to_be_removed_and_filled_by_the_others(
    tmp_path: Path, fsck: Fsck
) -> None:
    log, folder = made(tmp_path, replicas=2, sequencers=3)
    for node in ("sequencer-2", "shard-0-1"):
        damage(folder, node)
    found = fsck("--cut-journal", "--yes")
    assert found["node_cuts"] == found["done"] == []
    for fault in found["faults"]:
        node = fault["where"].partition("/")[2]
        assert f"remove {folder / node}: the next start fills it from the others" in fault["reason"]
        shutil.rmtree(folder / node)
    assert {each["code"] for each in fsck()["faults"]} == {"node-journal-missing"}
    with running(tmp_path) as process:
        assert shard_values(process, log, 0) == list(range(RECORDS))
        assert process.end(signal.SIGTERM) == 0
    assert fsck()["code"] == Exit.OK


def test_recover_takes_belfast_logs_along_and_serves_none_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, new = tmp_path / "data", tmp_path / "new"
    log, folder = made(data)
    with running(data) as process:
        gone = created(process.line(), "gone", 1)
        append_to_belfast(process.node(gone, "shard-0-0"), 0, OTHER)
        assert process.end(signal.SIGTERM) == 0
    for lost in data.glob("*/gone.*"):
        shutil.rmtree(lost)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    code = run(cli, PROGRAM, ["recover", "--data", str(data), "--into", str(new), "-o", "json"])
    report = json.loads(capsys.readouterr().out)
    assert code == Exit.DAMAGE
    assert (report["belfast"], report["belfast_missing"]) == (["ticks"], ["gone"])
    with running(new) as process:
        assert shard_values(process, log, 0) == list(range(RECORDS))
        append_to_belfast(process.node(log, "shard-0-0"), RECORDS, 1)
        with pytest.raises(JournalBehind):
            process.node(gone, "shard-0-0")
    assert {path: path.read_bytes() for path in before} == before, "the old one stays as it is"
