"""Belfast logs of `anabranch up` whose journals are gone: nothing is lost in silence."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

import httpx
import pytest
from tests.integration.cli_server import ANABRANCH, Server
from tests.integration.server_process import running, shard_values, status_of
from tests.integration.test_embedded import append_to_belfast, created

from anabranch.cli.failure import Exit
from anabranch.core.belfast.protocol.messages import Status
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.errors import JournalBehind, JournalCorrupt

RECORDS = 20


def _whole(folder: Path) -> None:
    shutil.rmtree(folder.parent)


def _log(folder: Path) -> None:
    shutil.rmtree(folder)


def _sequencer(folder: Path) -> None:
    shutil.rmtree(folder / "sequencer-0")


def _shard(folder: Path) -> None:
    for path in (folder / "shard-0-0").iterdir():
        path.unlink()


def _end_of_a_shard(folder: Path) -> None:
    (path,) = (folder / "shard-0-0").glob("*.segment")
    os.truncate(path, path.stat().st_size // 2)


def _end_of_the_order(folder: Path) -> None:
    (path,) = (folder / "sequencer-0").glob("*.segment")
    os.truncate(path, path.stat().st_size // 2)


Damage = Callable[[Path], None]


def _made(data: Path, replicas: int = 1, sequencers: int = 1) -> Description:
    with running(data) as process:
        log = created(process.line(), "ticks", 1, replicas, sequencers)
        append_to_belfast(process.node(log, "shard-0-0"), 0, RECORDS)
        assert process.end(signal.SIGTERM) == 0
    return log


def _folder(data: Path) -> Path:
    (folder,) = (data / "belfast").glob("ticks.*")
    return folder


@pytest.mark.parametrize("damage", [_whole, _log, _sequencer, _shard])
def test_a_log_whose_journals_are_gone_is_not_served_as_an_empty_one(
    tmp_path: Path, damage: Damage
) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    log = _made(data)
    shutil.copytree(data / "belfast", copy)
    damage(_folder(data))
    with running(data) as process:
        other = created(process.line(), "other", shards=1)
        append_to_belfast(process.node(other, "shard-0-0"), 0, 1)
        with pytest.raises(JournalBehind, match=r"back-up.*--accept-loss"):
            process.node(log, "shard-0-0")
    shutil.copytree(copy, data / "belfast", dirs_exist_ok=True)
    with running(data) as process:
        assert shard_values(process, log, 0) == list(range(RECORDS))


@pytest.mark.parametrize("damage", [_end_of_a_shard, _end_of_the_order])
def test_a_log_with_a_journal_that_ends_too_early_is_not_served(
    tmp_path: Path, damage: Damage
) -> None:
    log = _made(tmp_path)
    damage(_folder(tmp_path))
    with (
        running(tmp_path) as process,
        pytest.raises(JournalCorrupt, match=_folder(tmp_path).name),
    ):
        process.node(log, "shard-0-0")


def test_an_accepted_loss_begins_the_log_anew_and_puts_the_rest_aside(tmp_path: Path) -> None:
    log = _made(tmp_path)
    _sequencer(_folder(tmp_path))
    with running(tmp_path, "--accept-loss") as process:
        append_to_belfast(process.node(log, "shard-0-0"), 0, 1)
        assert shard_values(process, log, 0) == [0]
        assert process.end(signal.SIGTERM) == 0
    (aside,) = (tmp_path / "given-up").iterdir()
    assert list((aside / "shard-0-0").glob("*.segment"))
    with running(tmp_path) as process:
        assert shard_values(process, log, 0) == [0]


def _is_filled(status: Status) -> bool:
    (shard,) = status.shards
    return shard.primary.endswith("shard-0-1") and len(shard.replicas) == 2


def test_journals_that_others_can_fill_are_filled_again(tmp_path: Path) -> None:
    log = _made(tmp_path, replicas=2, sequencers=3)
    folder = _folder(tmp_path)
    for node in ("sequencer-0", "shard-0-0"):
        shutil.rmtree(folder / node)
    with running(tmp_path) as process:
        status_of(process, log, _is_filled)
        assert shard_values(process, log, 0, replica=1) == list(range(RECORDS))
        append_to_belfast(process.node(log, "shard-0-1"), RECORDS, 1)


_APPEND = ["append", "ticks", "2", "--timeout", "2s"]


def test_readiness_says_which_log_is_not_served_and_why(tmp_path: Path) -> None:
    with Server.started(tmp_path) as server:
        for told in (["log", "create", "ticks", "--engine", "belfast"], ["append", "ticks", "1"]):
            subprocess.run([*ANABRANCH, *told], env=server.environment, check=True)
    shutil.rmtree(tmp_path / "data" / "belfast")
    with Server.started(tmp_path, http=True) as server:
        for told in (["read", "ticks"], ["status", "ticks"], _APPEND):
            refused = subprocess.run(
                [*ANABRANCH, *told],
                env=server.environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert refused.returncode == Exit.BEHIND, refused
            assert "sequencer-0 ends at entry 0" in refused.stderr
            assert "try again" not in refused.stderr
        answer = httpx.get(f"http://{server.http}/readyz")
        assert answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE
        problem = answer.json()
        assert problem["code"] == "not-ready"
        assert problem["detail"].startswith("not ready: log ticks: the journal ")
