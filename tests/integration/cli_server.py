"""A server in a process of its own, started by the command line, for the tests of the others."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event
from typing import Any
from unittest.mock import patch

from anabranch.cli.failure import run
from anabranch.cli.main import PROGRAM, cli

ANABRANCH = [sys.executable, "-m", "anabranch.cli.main"]
START_S = 60.0
LOOK_S = 0.02
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_OF_A_SHELL = frozenset("|&;<>()$`\\\n")
_TIME = re.compile(r"\d+(?:\.\d+)? (?:us|ms|s|m|h)\b(?: \d+ [smh]\b)?")


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    data: Path
    process: subprocess.Popen[bytes]
    http: str | None = None

    @property
    def environment(self) -> dict[str, str]:
        """For a process that talks to it."""
        return {**bare(), "ANABRANCH_URL": self.url}

    def terminal(self, directory: Path) -> dict[str, str]:
        """For a shell in which `anabranch` is this one, and knows the server."""
        path = f"{command_in(directory)}:{bare()['PATH']}"
        config = str(directory / "config")
        return {**self.environment, "PATH": path, "LOGNAME": "you", "XDG_CONFIG_HOME": config}

    @staticmethod
    @contextmanager
    def started(directory: Path, *options: str, http: bool = False) -> Iterator["Server"]:
        data = directory / "data"
        front = ("--http-port", "0") if http else ("--no-http",)
        process = subprocess.Popen(
            [*ANABRANCH, "up", "--data", str(data), "--port", "0", *front, *options],
            env=bare(),
            stderr=subprocess.DEVNULL,
        )
        try:
            found = _endpoint(process, data)
            yield Server(f"anabranch://{found['frames']}", data, process, found["http"])
        finally:
            process.terminate()
            process.wait()


def command_in(directory: Path) -> Path:
    """A directory for a shell's PATH, in which `anabranch` is this one."""
    command = directory / "anabranch"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m anabranch.cli.main "$@"\n')
    command.chmod(0o700)
    return directory


def bare() -> dict[str, str]:
    """This process's environment, without any server's or client's settings in it."""
    return {k: v for k, v in os.environ.items() if not k.startswith("ANABRANCH_")}


def check_page(page: str, environment: dict[str, str], *, here: bool = False) -> int:
    """Play a page's console blocks; what they print must be what is shown, but for times.

    `here`: commands that need no shell are run in this process, which spares each the tenth of a
    second in which a process starts. Says how many commands there were.
    """
    played = _steps(page)
    for command, expected in played:
        bare_words = here and not _OF_A_SHELL & set(command)
        said = (_said_here if bare_words else _said_by_shell)(command, environment)
        for line, shown in zip_longest(said.splitlines(), expected, fillvalue=""):
            assert _TIME.sub("TIME", line) == _TIME.sub("TIME", shown), command
    return len(played)


def _said_by_shell(command: str, environment: dict[str, str]) -> str:
    return subprocess.run(
        ["sh", "-c", command],
        env=environment,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ).stdout


def _said_here(command: str, environment: dict[str, str]) -> str:
    name, *arguments = shlex.split(command)
    assert name == PROGRAM, f"{command} is a command of others"
    with (
        TemporaryFile("w+") as said,
        patch.dict(os.environ, environment, clear=True),
        redirect_stdout(said),
        redirect_stderr(said),
    ):
        run(cli, PROGRAM, arguments)
        said.seek(0)
        return said.read()


def _steps(page: str) -> list[tuple[str, list[str]]]:
    """Commands, each with the lines that follow it."""
    found: list[tuple[str, list[str]]] = []
    for block in _BLOCK.findall(page):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            else:
                found[-1][1].append(line)
    return found


def _endpoint(process: subprocess.Popen[bytes], data: Path) -> dict[str, str]:
    """The server says where it listens in a file, once it does."""
    endpoint = data / "endpoint"
    pause = Event()
    for _ in range(int(START_S / LOOK_S)):
        # A server that starts takes away the file of the one before.
        with suppress(FileNotFoundError):
            found: dict[str, Any] = json.loads(endpoint.read_bytes())
            if found["pid"] == process.pid:
                return found
        assert process.poll() is None, "the server ended before it began"
        pause.wait(LOOK_S)
    raise AssertionError("the server did not start in time")
