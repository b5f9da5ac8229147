"""A command keeps trying for as long as it is told to, and says why it does."""

import json
import socket
import subprocess
from pathlib import Path

from tests.commands import Command
from tests.integration.cli_server import ANABRANCH, Server, bare

from anabranch.cli.failure import Exit

A_MOMENT_S = 60


def test_a_command_waits_for_a_server_that_is_started_later(tmp_path: Path) -> None:
    """Until then the port belongs to nobody who listens, so that connections are refused."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    arguments = ["log", "list", "--timeout", "60s", "--url", f"anabranch://127.0.0.1:{port}"]
    with subprocess.Popen(
        [*ANABRANCH, *arguments], env=bare(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as waiting:
        assert waiting.stderr is not None
        said = waiting.stderr.readline().decode()
        assert said.startswith("retrying: ")
        assert said.endswith("can't be reached: Connection refused\n")
        with Server.started(tmp_path, "--port", str(port)):
            out, _ = waiting.communicate(timeout=A_MOMENT_S)
    assert (waiting.returncode, out) == (Exit.OK, b"there are no logs\n")


def test_the_cause_of_a_timeout_comes_first(anabranch: Command, log: str) -> None:
    """Which an append that was sent and never answered has; here it is a quota that is used up."""
    anabranch("log", "create", log)
    anabranch("log", "quota", log, "--append-bytes", "1/s")
    anabranch("append", log, "the broker learns of it")
    anabranch("append", log, stdin=bytes(100_000))
    late = ("append", log, "late", "--timeout", "2s")
    said = anabranch(*late, code=Exit.BLOCKED).err.splitlines()
    assert said[0].startswith("retrying: ")
    assert f"`anabranch log quota {log}`" in said[0]
    assert said[1].startswith(f"error: {log} may take 1 ")
    error = anabranch(*late, "-o", "json", code=Exit.BLOCKED).err
    assert json.loads(error)["error"]["code"] == "quota-exceeded"


def test_an_append_that_an_undecided_fork_holds_up_says_which(anabranch: Command, log: str) -> None:
    anabranch("log", "create", log)
    anabranch("fork", log, "bystander")
    anabranch("fork", log, "candidate", "--promotable")
    held = ("append", f"{log}--bystander", "held", "--timeout", "3s")
    for words in (held, (*held, "--request-id", "once")):
        said = anabranch(*words, code=Exit.BLOCKED).err.splitlines()
        assert said[0] == f"waiting: promotable fork {log}--candidate is undecided"
        assert said[-1].startswith(f"error: {log}--bystander takes no appends while promotable")
