"""Where the demo is played: a service of its own, commands as a user types them, and a narrator."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import click

from anabranch.errors import Unavailable

START_S = 120.0
STOP_S = 20.0
COMMAND_S = 600.0
_UP = (sys.executable, "-m", "anabranch.cli.main", "up")
_LOOK_S = 0.05
_READING_CHARS_PER_S = 32
_PAUSE_S_MAX = 7.0


class Narrator:
    """Tells, shows, and lets people read."""

    def __init__(self, *, pauses: bool) -> None:
        self._pauses, self._unread = pauses, 0

    def title(self, text: str) -> None:
        self._pause()
        click.secho(f"\n{text}", fg="cyan", bold=True)
        self._unread += len(text)

    def command(self, text: str) -> None:
        click.secho(f"  $ {text}", dim=True)

    def tell(self, text: str) -> None:
        click.echo(text)
        self._unread += len(text)

    def show(self, lines: Sequence[str]) -> None:
        for line in lines:
            click.secho(f"    {line}", fg="green")
            self._unread += 20

    def _pause(self) -> None:
        """As long as it takes to read what was said since the last."""
        seconds, self._unread = self._unread / _READING_CHARS_PER_S, 0
        if self._pauses:
            Event().wait(min(_PAUSE_S_MAX, seconds))


class Stage:
    """The folder of the demo, and its service."""

    def __init__(self, folder: Path, url: str, narrator: Narrator) -> None:
        self.folder, self.url, self.narrator = folder, url, narrator

    def job(self, name: str, *words: str, codes: Sequence[int] = (0,)) -> Any:
        """Run `python -m anabranch_spark.NAME` and return its report.

        Unavailable with the end of its output if it ends with another code.
        """
        report = self.folder / f"{name}-report.json"
        report.unlink(missing_ok=True)
        shown = [each.replace(f"{self.folder}/", "") for each in words]
        self.narrator.command(f"python -m anabranch_spark.{name} {shlex.join(shown)}")
        done = subprocess.run(
            [sys.executable, "-m", f"anabranch_spark.{name}", *words, "--report", str(report)],
            check=False,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            cwd=self.folder,
            env=environment(self.url),
        )
        if done.returncode not in codes:
            last = "\n".join(done.stderr.strip().splitlines()[-15:])
            raise Unavailable(f"the job {name}", f"it ended with {done.returncode}:\n{last}")
        return json.loads(report.read_bytes())


@contextmanager
def service(folder: Path) -> Generator[str]:
    """`anabranch up` in a process of its own; stopped whatever happens here."""
    with open(folder / "server.log", "wb") as log:
        process = subprocess.Popen(
            [*_UP, "--data", str(folder / "data"), "--port", "0", "--no-http"],
            env=environment(None),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # Ctrl-C in the terminal is for the demo, which stops the server last.
            start_new_session=True,
        )
    try:
        yield f"anabranch://{_address(process, folder)}"
    finally:
        _stop(process)


def environment(url: str | None) -> dict[str, str]:
    """Without settings of the user's own for other services."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANABRANCH_")}
    maven = os.environ.get("ANABRANCH_MAVEN_URL")
    kept |= {"ANABRANCH_MAVEN_URL": maven} if maven else {}
    return kept | ({"ANABRANCH_URL": url, "SPARK_LOCAL_IP": "127.0.0.1"} if url else {})


def _address(process: subprocess.Popen[bytes], folder: Path) -> str:
    """The server writes where it listens beside its data, once it does."""
    endpoint = folder / "data" / "endpoint"
    until = monotonic() + START_S
    while not endpoint.exists():
        if process.poll() is not None or monotonic() > until:
            said = (folder / "server.log").read_text(errors="replace").strip()
            raise Unavailable("the demo's server", said or "it did not start in time")
        Event().wait(_LOOK_S)
    return str(json.loads(endpoint.read_bytes())["frames"])


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
