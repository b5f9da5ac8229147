"""Belfast logs that `anabranch up` runs beside its own: created, served, killed, deleted."""

import os
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.server_process import (
    Line,
    NodeLine,
    Process,
    batch,
    running,
    shard_values,
    status_of,
    values,
)

from anabranch.core.belfast.protocol import messages as belfast
from anabranch.core.bolt.protocol.commands import Description, EngineSettings
from anabranch.core.bolt.protocol.messages import (
    Append,
    CreateLog,
    DeleteLog,
    Describe,
    Read,
)
from anabranch.core.errors.refused import Refused
from anabranch.shell.journal.data_dir import DataDir

IN_FLIGHT = 8


def created(
    line: Line, name: str, shards: int = 2, replicas: int = 1, sequencers: int = 1
) -> Description:
    settings = EngineSettings(shards, replicas, sequencers)
    made = line.call(CreateLog(name, name.encode(), engine="belfast", settings=settings))
    assert isinstance(made, Description), made
    return made


def append_to_belfast(shard: NodeLine, first: int, count: int) -> None:
    for number in range(first, first + count):
        answer = shard.until(belfast.Append(batch(number, producer=9)), _is_admitted)
        assert isinstance(answer, belfast.Appended), answer


def _is_admitted(answer: object) -> bool:
    return not (isinstance(answer, Refused) and answer.code == "shard-away")


def test_an_earlier_version_does_not_open_what_this_one_has_served(tmp_path: Path) -> None:
    """It would take logs of other engines for Bolt's, and give their ids to new logs."""
    earlier = DataDir(str(tmp_path), "c1")
    earlier.close()
    with running(tmp_path):
        assert (tmp_path / "format").read_bytes().startswith(b"anabranch data, format 2, cluster")


def test_a_log_is_served_at_the_services_own_port_and_again_after_a_restart(
    tmp_path: Path,
) -> None:
    with running(tmp_path) as process:
        line = process.line()
        log = created(line, "ticks")
        assert log.settings is not None
        assert log.settings.addresses == (f"/{log.id}/sequencer-0",)
        shard = process.node(log, "shard-1-0")
        append_to_belfast(shard, 0, 20)
        assert shard_values(process, log, 1) == list(range(20))
        assert process.end(signal.SIGTERM) == 0
    with running(tmp_path) as process:
        again = process.line().call(Describe("ticks"))
        assert isinstance(again, Description)
        assert again.settings == log.settings, "its addresses don't change with the port"
        assert shard_values(process, log, 1) == list(range(20))
        assert shard_values(process, log, 0) == []
        append_to_belfast(process.node(log, "shard-1-0"), 20, 1)


def test_replicas_and_sequencers_are_as_many_as_were_asked_for(tmp_path: Path) -> None:
    with running(tmp_path) as process:
        log = created(process.line(), "ticks", shards=1, replicas=3, sequencers=3)
        append_to_belfast(process.node(log, "shard-0-0"), 0, 5)
        status = status_of(process, log)
        assert len(status.members) == 3
        assert [len(shard.replicas) for shard in status.shards] == [3]
    assert len(list((tmp_path / "belfast").glob("ticks.*/*"))) == 6


def test_a_deleted_logs_machines_and_folder_are_gone(tmp_path: Path) -> None:
    with running(tmp_path) as process:
        line = process.line()
        log, kept = created(line, "ticks"), created(line, "kept")
        shard = process.node(log, "shard-0-0")
        append_to_belfast(shard, 0, 3)
        line.call(DeleteLog(log.id, b"delete"))
        with pytest.raises(ConnectionError):
            shard.hear()
        described = line.call(Describe("ticks"))
        assert isinstance(described, Refused)
        assert described.code == "squashed"
        anew = created(line, "ticks-2")
        append_to_belfast(process.node(anew, "shard-0-0"), 0, 1)
        append_to_belfast(process.node(kept, "shard-0-0"), 0, 1)
        assert process.end(signal.SIGTERM) == 0
    with running(tmp_path) as process:
        assert shard_values(process, kept, 0) == [0]
    names = {path.name.partition(".")[0] for path in (tmp_path / "belfast").iterdir()}
    assert names == {"kept", "ticks-2"}


def test_a_deletion_that_a_kill_cut_off_is_finished_at_the_start(tmp_path: Path) -> None:
    aside = tmp_path / "aside"
    data = tmp_path / "data"
    with running(data) as process:
        line = process.line()
        log = created(line, "ticks")
        append_to_belfast(process.node(log, "shard-0-0"), 0, 3)
        (folder,) = (data / "belfast").iterdir()
        shutil.copytree(folder, aside)
        line.call(DeleteLog(log.id, b"delete"))
        line.call(Describe("ticks"))
        process.end(signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(aside, folder)
    shutil.copytree(aside, folder.with_name(f".deleted-{folder.name}x"))
    stranger = folder.with_name("other.77.1")
    shutil.copytree(aside, stranger)
    with running(data) as process:
        log = created(process.line(), "other")
        append_to_belfast(process.node(log, "shard-0-0"), 0, 1)
        left = {path.name for path in (data / "belfast").iterdir()}
    assert folder.name not in left
    assert not any(name.startswith(".deleted-") for name in left)
    assert stranger.name in left, "what no catalogue ever named isn't deleted"


def test_bolts_verbs_are_refused_on_such_a_log(tmp_path: Path) -> None:
    with running(tmp_path) as process:
        line = process.line()
        log = created(line, "ticks")
        for message in (Read(log.id, 0, 1, 1_000), Append(log.id, batch(0, producer=1))):
            answer = line.call(message)
            assert isinstance(answer, Refused)
            assert answer.code == "wrong-engine"


class Load:
    """Appends until the process is killed; `acknowledged` counts what was."""

    def __init__(self, line: Line | NodeLine, message: Callable[[int], object], first: int) -> None:
        self.acknowledged = first
        self._line = line
        self._message = message
        self.enough = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        sent, first = self.acknowledged, self.acknowledged
        try:
            while True:
                while sent < self.acknowledged + IN_FLIGHT:
                    self._line.say(self._message(sent))  # pyright: ignore[reportArgumentType]
                    sent += 1
                _, answer = self._line.hear()
                if isinstance(answer, Refused):
                    return
                self.acknowledged += 1
                if self.acknowledged >= first + 30:
                    self.enough.set()
        except (ConnectionError, TimeoutError):
            self.enough.set()


def _killed(process: Process, log: Description, bolt: Description, told: list[int]) -> list[int]:
    nodes = [process.node(log, f"shard-{shard}-0") for shard in range(2)]
    for node, first in zip(nodes, told[1:], strict=True):
        append_to_belfast(node, first, 1)
    loads = [
        Load(process.line(), lambda n: Append(bolt.id, batch(n, producer=7)), told[0]),
        *(
            Load(node, lambda n: belfast.Append(batch(n, producer=9)), first + 1)
            for node, first in zip(nodes, told[1:], strict=True)
        ),
    ]
    for load in loads:
        assert load.enough.wait(60)
    os.kill(process.process.pid, signal.SIGKILL)
    for load in loads:
        load.thread.join()
    return [load.acknowledged for load in loads]


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.nightly)])
def test_nothing_acknowledged_is_lost_by_kills_of_a_process_with_logs_of_both_engines(
    tmp_path: Path, kills: int
) -> None:
    with running(tmp_path) as process:
        line = process.line()
        orders = line.call(CreateLog("orders", b"orders"))
        assert isinstance(orders, Description)
        ticks = created(line, "ticks")
    told = [0, 0, 0]
    for _ in range(kills):
        with running(tmp_path) as process:
            acknowledged = _killed(process, ticks, orders, told)
            process.end(signal.SIGKILL)
        with running(tmp_path) as process:
            found = [
                values(process.line(), orders.id),
                *(shard_values(process, ticks, shard) for shard in range(2)),
            ]
        for each, least in zip(found, acknowledged, strict=True):
            assert each == list(range(len(each))), "in order, each once"
            assert len(each) >= least, "what was acknowledged is there"
        told = [len(each) for each in found]
