"""The supervisor of a local log: nothing outlives it, and it starts beside nobody else's work."""

import json
import os
import select
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.integration.belfast.deployment import PATIENCE_S, served
from tests.integration.cli_server import ANABRANCH, bare

from anabranch.apps.processes.local_log import LogShape, settle

SMALL = LogShape(sequencers=1, shards=1, copies=1)


def words(folder: Path) -> list[str]:
    return [*ANABRANCH, "up", "--engine", "belfast", "--data", str(folder), "--log-format", "json"]


@contextmanager
def supervisor(folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    settle(folder, SMALL)
    output = folder.with_suffix(".log")
    # By a name that holds only here: each process runs in a directory of its own.
    config = folder.with_suffix(".toml")
    config.write_text("[rules]\nfail_intervals = 100000\n", encoding="utf-8")
    told = [*words(folder), "--config", config.name]
    with output.open("wb") as file:
        process = subprocess.Popen(
            told,
            env=bare(),
            cwd=folder.parent,
            stdout=file,
            stderr=file,
            preexec_fn=_hear_hangups,  # noqa: PLW1509  # it starts no thread and takes no lock
        )
    try:
        served(process, output)
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def _hear_hangups() -> None:
    """Even if the tests run under `nohup`, which a supervisor respects."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def refused(folder: Path, *more: str, code: int = 1) -> str:
    """The message that a start is refused with."""
    said = subprocess.run(
        [*words(folder), *more],
        env=bare(),
        capture_output=True,
        check=False,
        text=True,
        timeout=PATIENCE_S,
    )
    assert said.returncode == code, said
    return said.stderr


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [int(child) for child in found]


@contextmanager
def watched(pids: Sequence[int]) -> Iterator[select.poll]:
    """Each of these processes is ready to be read once it has ended."""
    poll, files = select.poll(), [os.pidfd_open(pid) for pid in pids]
    try:
        for file in files:
            poll.register(file, select.POLLIN)
        yield poll
    finally:
        for file in files:
            os.close(file)


@pytest.mark.parametrize("how", [signal.SIGHUP, signal.SIGKILL])
def test_no_process_outlives_its_supervisor(tmp_path: Path, how: signal.Signals) -> None:
    with supervisor(tmp_path / "log") as process:
        pids = children(process.pid)
        assert len(pids) == 2, "a sequencer and a shard"
        with watched(pids) as ends:
            process.send_signal(how)
            ended: set[int] = set()
            while len(ended) < len(pids):
                found = {file for file, _ in ends.poll(PATIENCE_S * 1_000)}
                assert found, f"still there: {pids}"
                for file in found - ended:
                    ends.unregister(file)
                ended |= found
        assert process.wait(PATIENCE_S) == (0 if how is signal.SIGHUP else -how)


def test_a_second_supervisor_and_other_numbers_of_replicas_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    with supervisor(folder) as process:
        assert f"is in use by process {process.pid}" in refused(folder)
    assert "its shards have 1 replicas each: leave out --copies" in refused(folder, "--copies", "2")


def test_a_port_that_somebody_else_has_is_named_with_its_owner(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    layout = settle(folder, SMALL)
    with socket.create_server(("127.0.0.1", layout.shards[0].replicas[0].probes)):
        said = refused(folder, code=4)
    assert "shard-0-0 listens there" in said
    assert f"(process {os.getpid()}) has the port" in said
    assert "sequencer" not in json.dumps(os.listdir(folder)), "nothing was started"
