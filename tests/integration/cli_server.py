"""A server in a process of its own, started by the command line, for the tests of the others."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

ANABRANCH = [sys.executable, "-m", "anabranch.cli.main"]
START_S = 60.0
LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    data: Path
    process: subprocess.Popen[bytes]

    @property
    def environment(self) -> dict[str, str]:
        """For a process that talks to it."""
        return {**bare(), "ANABRANCH_URL": self.url}

    @staticmethod
    @contextmanager
    def started(directory: Path, *options: str) -> Iterator["Server"]:
        data = directory / "data"
        process = subprocess.Popen(
            [*ANABRANCH, "up", "--data", str(data), "--port", "0", "--no-http", *options],
            env=bare(),
            stderr=subprocess.DEVNULL,
        )
        try:
            yield Server(f"anabranch://{_address(process, data)}", data, process)
        finally:
            process.terminate()
            process.wait()


def bare() -> dict[str, str]:
    """This process's environment, without any server's or client's settings in it."""
    return {k: v for k, v in os.environ.items() if not k.startswith("ANABRANCH_")}


def _address(process: subprocess.Popen[bytes], data: Path) -> str:
    """The server says where it listens in a file, once it does."""
    endpoint = data / "endpoint"
    pause = Event()
    for _ in range(int(START_S / LOOK_S)):
        if endpoint.exists():
            return str(json.loads(endpoint.read_bytes())["frames"])
        assert process.poll() is None, "the server ended before it began"
        pause.wait(LOOK_S)
    raise AssertionError("the server did not start in time")
