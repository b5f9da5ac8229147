"""Load from a process of its own: it is given a plan, says when it is ready, and begins when told,
once or over and over.

The clock of both sides is the machine's monotonic one: moments of one mean something to the other.
"""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
import uvloop

from benchmarks.cluster.cores import prefer

P = TypeVar("P")
D = TypeVar("D")
Turn = Callable[[], Awaitable[bool]]
"""Waits until it is time to begin; False if there is nothing more to do."""
Tell = Callable[[object], None]

READY = b"ready\n"


class Worker(Generic[D]):
    """The side of whoever measures."""

    def __init__(self, module: str, plan: object, kind: type[D]) -> None:
        self._kind = kind
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            start_new_session=True,
        )
        prefer(self._process.pid)
        self._tell(msgspec.json.encode(plan) + b"\n")

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self) -> None:
        said = self._line()
        assert said == READY, f"a worker ended before it was ready: {said!r}"

    def begin(self) -> None:
        self._tell(b"begin\n")

    def heard(self) -> D:
        """What it found this time."""
        return msgspec.json.decode(self._line(), type=self._kind)

    def once(self) -> D:
        self.begin()
        return self.heard()

    def kill(self) -> None:
        """Whatever it is at."""
        self._process.kill()
        self._process.communicate()

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def _tell(self, line: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line)
        self._process.stdin.flush()


@contextmanager
def at_work(module: str, plan: object, kind: type[D]) -> Generator[Worker[D]]:
    """One that is ready, and that doesn't outlive this."""
    worker = Worker(module, plan, kind)
    try:
        worker.wait_ready()
        yield worker
    finally:
        worker.kill()


def serve(kind: type[P], work: Callable[[P, Turn, Tell], Awaitable[None]]) -> None:
    """The worker's side: its whole life."""
    plan = msgspec.json.decode(sys.stdin.buffer.readline(), type=kind)
    ready = False

    async def turn() -> bool:
        nonlocal ready
        if not ready:
            ready = True
            _say(READY)
        return bool(await asyncio.to_thread(sys.stdin.buffer.readline))

    async def live() -> None:
        await work(plan, turn, lambda found: _say(msgspec.json.encode(found) + b"\n"))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(live())


def _say(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
