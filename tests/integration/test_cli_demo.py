"""The demo as `make demo` plays it: to its end, or interrupted, it leaves nothing behind."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.integration.cli_server import ANABRANCH, bare

from anabranch.cli.failure import Exit

LONG_S = 120


def demo(directory: Path) -> subprocess.Popen[bytes]:
    """Its temporary files go below this directory."""
    return subprocess.Popen(
        [*ANABRANCH, "demo", "--fast"],
        env={**bare(), "TMPDIR": str(directory)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def servers_below(directory: Path) -> list[str]:
    """Processes that were given a path below it."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if os.fsencode(directory) in command:
                found.append(entry.name)
    return found


def test_the_demo_plays_to_its_end(tmp_path: Path) -> None:
    playing = demo(tmp_path)
    told, complaints = playing.communicate(timeout=LONG_S)
    assert playing.returncode == Exit.OK, complaints.decode()
    assert complaints == b""
    text = told.decode()
    for claim in (
        "200000 orders appended",
        "orders--agent:",
        "both are the same up to 150000",
        "orders--plan-b ships 100 of 100 in stock: right.",
        "orders--plan-a is squashed",
        "speculative  200009",
        "-- the promotion --",
        "orders--discount  severed at 150000",
        "its directory removed",
    ):
        assert claim in text
    assert list(tmp_path.iterdir()) == []
    assert servers_below(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
def test_an_interrupted_demo_cleans_up(tmp_path: Path, number: signal.Signals, code: int) -> None:
    with demo(tmp_path) as playing:
        assert playing.stdout is not None
        assert playing.stderr is not None
        for line in playing.stdout:
            if b"It serves" in line:
                break
        assert servers_below(tmp_path) != []
        playing.send_signal(number)
        playing.stdout.read()
        assert playing.stderr.read().strip() == b""
        assert playing.wait(LONG_S) == code
    assert list(tmp_path.iterdir()) == []
    assert servers_below(tmp_path) == []
