"""Failpoints: nothing happens that wasn't asked for, and every place is where it says."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from anabranch.core.errors import BadRequest, Unavailable
from anabranch.shell.runtime import failpoints
from anabranch.shell.runtime.failpoints import FAILPOINTS, arm, reached


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    arm("")


def test_nothing_happens_where_nothing_is_armed() -> None:
    assert not any(map(reached, FAILPOINTS))
    arm("peers.send=drop")
    assert [name for name in FAILPOINTS if reached(name)] == ["peers.send"]
    arm("")
    assert not any(map(reached, FAILPOINTS))


def test_an_action_happens_every_time_or_the_nth() -> None:
    arm("peers.send=drop@2;peers.receive=drop")
    assert [reached("peers.send") for _ in range(4)] == [False, True, False, False]
    assert [reached("peers.receive") for _ in range(3)] == [True] * 3
    arm("journal.append.before=fail@1")
    with pytest.raises(Unavailable):
        reached("journal.append.before")
    assert not reached("journal.append.before")


def test_a_note_is_said_once(capfd: pytest.CaptureFixture[str]) -> None:
    arm("peers.send=note")
    for _ in range(3):
        assert not reached("peers.send")
    assert capfd.readouterr().err == "failpoint peers.send\n"


def test_an_exit_is_the_end_at_once() -> None:
    program = (
        "from anabranch.shell.runtime.failpoints import arm, reached\n"
        "arm('peers.send=exit@2')\n"
        "print(reached('peers.send'), flush=True)\n"
        "reached('peers.send')\n"
        "print('still here', flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, b"False\n")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("peers.sent=drop", "there is no such failpoint"),
        ("peers.send", "is not ACTION or ACTION@N"),
        ("peers.send=explode", "is not ACTION or ACTION@N"),
        ("peers.send=drop@x", "is not ACTION or ACTION@N"),
        ("journal.append.after=fail", "the actions there are exit, note, pause"),
        ("peers.send=drop;", "there is no such failpoint"),
    ],
)
def test_what_cannot_be_armed_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(BadRequest) as refused:
        arm(text)
    assert complaint in refused.value.message


def test_every_place_stands_in_the_source(root: Path) -> None:
    """That each is reached is shown by the processes (tests/integration/pods)."""
    shell = Path(failpoints.__file__).parents[1]
    source = "".join(path.read_text() for path in sorted(shell.rglob("*.py")))
    assert set(re.findall(r'\breached\("([\w.]+)"\)', source)) == set(FAILPOINTS)
    assert shell.is_relative_to(root)
