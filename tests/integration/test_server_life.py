"""The server as a process: ended in order, ended at once, and what is there afterwards."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.server_process import Line, Process, batch, running, values

from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.messages import (
    Append,
    Appended,
    CreateLog,
)
from anabranch.core.producers import REMEMBERED
from anabranch.core.types import LogId

IN_FLIGHT = REMEMBERED - 1
"""With the last that was acknowledged, as many as a log remembers of one producer."""


def append_until_it_dies(line: Line, log: LogId, process: Process, kill_after: int) -> int:
    """How many were acknowledged; the numbers 0, 1, ... are sent in order by one producer."""
    acknowledged = sent = 0
    try:
        while True:
            while sent < acknowledged + IN_FLIGHT:
                line.say(Append(log, batch(sent, producer=7)))
                sent += 1
            _, reply = line.hear()
            assert isinstance(reply, Appended)
            acknowledged += 1
            if acknowledged == kill_after:
                os.kill(process.process.pid, signal.SIGKILL)
    except ConnectionError:
        return acknowledged


@pytest.mark.parametrize("kill_after", [1, 40, 311])
def test_what_was_acknowledged_survives_a_kill_once_and_in_order(
    tmp_path: Path, kill_after: int
) -> None:
    with running(tmp_path) as process:
        line = Line(process.port)
        created = line.call(CreateLog("orders", bytes(16)))
        assert isinstance(created, Description)
        acknowledged = append_until_it_dies(line, created.id, process, kill_after)
        line.close()
        assert process.end(signal.SIGKILL) == -signal.SIGKILL
    assert acknowledged >= kill_after
    with running(tmp_path) as process:
        line = Line(process.port)
        found = values(line, created.id)
        assert found == list(range(len(found)))
        assert acknowledged <= len(found) <= acknowledged + IN_FLIGHT
        repeated = line.call(Append(created.id, batch(acknowledged - 1, producer=7)))
        assert repeated == Appended(acknowledged - 1), "a retry after the crash finds its place"
        following = line.call(Append(created.id, batch(len(found), producer=7)))
        assert following == Appended(len(found))
        line.close()
        assert process.end(signal.SIGTERM) == 0


def test_a_signal_ends_it_in_order_and_says_nobody_is_at_home(tmp_path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        with running(tmp_path) as process:
            assert process.end(number) == 0
            assert not (tmp_path / "endpoint").exists()


def test_where_a_killed_server_was_is_forgotten_when_the_next_one_starts(tmp_path: Path) -> None:
    with running(tmp_path) as process:
        process.end(signal.SIGKILL)
    assert (tmp_path / "endpoint").exists()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        started = subprocess.run(
            [sys.executable, "-m", "anabranch.apps.up"],
            env={
                **os.environ,
                "ANABRANCH_DATA": str(tmp_path),
                "ANABRANCH_PORT": str(taken.getsockname()[1]),
            },
            capture_output=True,
            check=False,
        )
    assert started.returncode != 0, "it starts, and comes as far as its port"
    assert not (tmp_path / "endpoint").exists()


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with running(tmp_path) as process:
        # While it is stopped both signals gather, so that the second can't come too late.
        os.kill(process.process.pid, signal.SIGSTOP)
        os.kill(process.process.pid, signal.SIGTERM)
        os.kill(process.process.pid, signal.SIGINT)
        assert process.end(signal.SIGCONT) in {128 + signal.SIGTERM, 128 + signal.SIGINT}
        assert (tmp_path / "endpoint").exists()
