"""`anabranch up` and `anabranch fsck` as processes, life after life on one data directory."""

import itertools
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from tests.integration.cli_server import ANABRANCH, bare

PORT = 7420
PATIENCE_S = 60.0
"""Whoever waits longer than this waits for nothing."""

_hosts = itertools.count(1)


class Pipes:
    """What several processes say, heard as it comes: the one place where a test waits."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def add(self, pipe: IO[bytes], heard: Callable[[bytes], None]) -> None:
        self._selector.register(pipe, selectors.EVENT_READ, heard)

    def until(
        self, done: Callable[[], bool], within_s: float = PATIENCE_S, look_s: float | None = None
    ) -> bool:
        """Listen until it is done; `look_s`: look so often, where nobody says when it is."""
        end = time.monotonic() + within_s
        while not done():
            left = end - time.monotonic()
            if left <= 0:
                return False
            for key, _ in self._selector.select(min(left, look_s or left)):
                self._hear(key)
        return True

    def _hear(self, key: selectors.SelectorKey) -> None:
        content = os.read(key.fd, 1 << 16)
        key.data(content)
        if not content:
            self._selector.unregister(key.fileobj)

    def close(self) -> None:
        self._selector.close()


class Server:
    """One data directory and the process that serves it, if one does."""

    def __init__(self, data: Path, pipes: Pipes, **settings: int) -> None:
        self.data = data
        # An address of its own: no other process takes the port while nobody listens.
        self.host = f"127.{80 + os.getpid() % 100}.{os.getpid() // 100 % 250}.{next(_hosts)}"
        self.url = f"anabranch://{self.host}:{PORT}"
        self.said = ""
        """In its present or last life."""
        self.endings: list[int] = []
        """How every life ended, as exit codes."""
        self.pipes = pipes
        self._settings = {f"ANABRANCH_{name.upper()}": str(settings[name]) for name in settings}
        self.process: subprocess.Popen[bytes] | None = None
        self._silent = True

    @property
    def serving(self) -> bool:
        return " serving " in self.said

    @property
    def over(self) -> bool:
        """It has said its last word."""
        return self._silent

    def launch(self) -> None:
        """Begin a life, and don't wait until it serves."""
        assert self.process is None
        self.said, self._silent = "", False
        where = ["--host", self.host, "--port", str(PORT), "--no-http"]
        self.process = subprocess.Popen(
            [*ANABRANCH, "up", "--data", str(self.data), *where],
            env={**bare(), **self._settings},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert self.process.stderr is not None
        self.pipes.add(self.process.stderr, self._heard)

    def start(self) -> None:
        self.launch()
        self.pipes.until(lambda: self.serving or self.over)
        assert self.serving, f"it doesn't serve: {self.said}"

    def tell(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def end(self, how: signal.Signals = signal.SIGKILL) -> int:
        """Its exit code; it ends by itself if it was signalled already."""
        self.tell(how)
        return self.ended()

    def ended(self) -> int:
        """Wait for the end, and hear its last words."""
        process = self.process
        assert process is not None
        code = process.wait(PATIENCE_S)
        self.pipes.until(lambda: self.over)
        assert process.stderr is not None
        process.stderr.close()
        self.process = None
        self.endings.append(code)
        assert "Traceback" not in self.said, self.said
        return code

    def close(self) -> None:
        if self.process is not None:
            self.end()

    def fsck(self, *flags: str) -> dict[str, Any]:
        """What `anabranch fsck` finds; it says so by its exit code too."""
        command = [*ANABRANCH, "fsck", "--data", str(self.data), "--output", "json", *flags]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode in {0, 5}, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        assert found["sound"] == (done.returncode == 0)
        return found

    def _heard(self, content: bytes) -> None:
        self.said += content.decode()
        self._silent = not content
