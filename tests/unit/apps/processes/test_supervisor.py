"""The supervisor of a cluster's processes, in this process and without any of its own."""

import io
import json
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import pytest

from anabranch.apps.processes import supervisor
from anabranch.apps.processes.servers import ServerProcess
from anabranch.apps.processes.supervisor import Listener, Watch, run_until_told
from anabranch.core.errors import Unavailable
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.telemetry.log import Log, LogFormat

if TYPE_CHECKING:
    from _typeshed import TraceFunction

HANGS_S = 10.0
LINES = 40
"""More than are run between the moment when it serves and its first wait."""


class Nothing:
    """A cluster without processes."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.listeners: Sequence[Listener] = ()
        self.processes: Sequence[ServerProcess] = ()

    def start(self, told: Callable[[str], None]) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")

    def kill(self) -> None:
        self.calls.append("kill")

    def tend(self) -> None:
        """There is nothing to do."""


@pytest.fixture(autouse=True)
def _handlers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As they were before, and nothing hangs."""
    monkeypatch.setattr(supervisor, "LOOK_S", 0.001)
    found = {number: signal.getsignal(number) for number in supervisor.ending_signals()}

    def hangs(number: int, frame: FrameType | None) -> None:
        raise AssertionError("the supervisor hangs")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.setitimer(signal.ITIMER_REAL, HANGS_S)
    tethered = ServerProcess.tethered
    try:
        yield
    finally:
        ServerProcess.tethered = tethered
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        for number, handler in found.items():
            signal.signal(number, handler)


def signal_at(line: int) -> None:
    """Send a signal before this line of Python runs, counted from now on over all functions."""
    lines = 0

    def trace(frame: FrameType, event: str, arg: object) -> "TraceFunction":
        nonlocal lines
        lines += event == "line"
        if event == "line" and lines == line:
            signal.raise_signal(signal.SIGTERM)  # SIGHUP is ignored under nohup
        return trace

    sys.settrace(trace)


def _log() -> Log:
    return Log(Clock().now, stream=io.StringIO())


@pytest.mark.parametrize("line", range(1, LINES))
def test_a_signal_at_any_instant_stops_what_is_served(line: int) -> None:
    cluster, before = Nothing(), sys.gettrace()
    try:
        run_until_told(cluster, _log(), lambda: signal_at(line))
    finally:
        sys.settrace(before)
    assert cluster.calls == ["start", "stop", "kill"]


def test_a_signal_before_anything_is_served_ends_it_at_once() -> None:
    class Interrupted(Nothing):
        def start(self, told: Callable[[str], None]) -> None:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Unavailable, match="told to end at once"):
        run_until_told(Interrupted(), _log(), lambda: None)


@pytest.mark.parametrize(
    ("script", "how"), [("exit 3", "exit status 3"), ("kill -9 $$", "SIGKILL")]
)
def test_it_is_said_how_a_process_ended_and_where_its_output_is(
    tmp_path: Path, script: str, how: str
) -> None:
    said = io.StringIO()
    process = ServerProcess("one", ["sh", "-c", script], tmp_path, lambda: True)
    process.launch()
    process.wait_ended()
    Watch(Log(Clock().now, LogFormat.JSON, said)).look([process])
    process.wait_ended()
    ended = json.loads(said.getvalue().splitlines()[0])
    assert ended["event"] == "a process ended by itself"
    assert (ended["how"], ended["output"]) == (how, str(tmp_path / "one.log"))
