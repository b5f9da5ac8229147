"""Spark's processes: the JVM, its Python workers, and what they take."""

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")
_LOOK_S = 0.1
_WORKERS = (b"pyspark.daemon", b"pyspark.worker", b"pyspark/daemon.py", b"pyspark/worker.py")


def cpu_s(root: int) -> float:
    """Processor time of all descendants, those included that have ended and were reaped."""
    return sum(each.with_reaped for each in _descendants(root).values()) / _TICKS


class _Ticks(NamedTuple):
    own: int
    with_reaped: int
    """Those of its children included that have ended."""


class Peaks:
    """The most memory that each Python worker had, and what all descendants took of the processor,
    by process id. Nobody waits for the JVM of a job, so that the system forgets what it took.
    """

    def __init__(self) -> None:
        self._of: dict[int, int] = {}
        self._ticks: dict[int, int] = {}

    @property
    def cpu_s(self) -> float:
        """Of descendants, as far as they were seen."""
        return sum(self._ticks.values()) / _TICKS

    @property
    def largest_mb(self) -> float:
        return max(self._of.values(), default=0) / 1024

    @property
    def workers(self) -> int:
        return len(self._of)

    def look(self, root: int) -> None:
        """At those among the descendants of a process that are there now."""
        for pid, ticks in _descendants(root).items():
            self._ticks[pid] = ticks.own
            peak = _peak_kb(pid)
            if peak is not None:
                self._of[pid] = peak


@contextmanager
def watched(root: int) -> Generator[Peaks]:
    """Look again and again until the block ends: workers come and go."""
    peaks, over = Peaks(), threading.Event()

    def look() -> None:
        while not over.wait(_LOOK_S):
            peaks.look(root)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield peaks
    finally:
        over.set()
        thread.join()


def _descendants(root: int) -> dict[int, _Ticks]:
    """Every process below this one."""
    children: dict[int, list[int]] = {}
    ticks: dict[int, _Ticks] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text(encoding="ascii", errors="replace")
        except OSError:
            continue  # it ended just now
        fields = text.rpartition(")")[2].split()
        pid = int(path.parent.name)
        children.setdefault(int(fields[1]), []).append(pid)
        user, system, *reaped = map(int, fields[11:15])
        ticks[pid] = _Ticks(user + system, user + system + sum(reaped))
    found: dict[int, _Ticks] = {}
    waiting = [*children.get(root, ())]
    while waiting:
        pid = waiting.pop()
        found[pid] = ticks[pid]
        waiting += children.get(pid, ())
    return found


def _peak_kb(pid: int) -> int | None:
    """None if it is no Python worker of Spark, or isn't there any more."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        if not any(each in command for each in _WORKERS):
            return None
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    return None
