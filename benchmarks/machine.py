"""What the figures were taken on: no figure means anything without it."""

import os
import platform
import re
import subprocess
import tempfile
import time
from pathlib import Path

import msgspec

from benchmarks.timing import percentile

_SYNCS = 200


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    cpu: str
    cores: int
    memory_gib: float
    kernel: str
    python: str
    file_system: str
    fdatasync_us_p50: float
    """Of an append of 4 KiB to a file that is preallocated, as the journal's are."""
    fdatasync_us_p99: float
    loop_ns: float
    """One turn of an empty loop in Python, the best of some: how fast this processor is just now,
    which on a machine of somebody else's is not always the same."""
    load: float
    """Runnable processes, the mean of the minute before: those of others, when a run begins."""


def describe(scratch: Path) -> Machine:
    syncs = sorted(_syncs(scratch))
    return Machine(
        cpu=_of("/proc/cpuinfo", r"model name\s*: (.*)") or platform.processor(),
        cores=os.cpu_count() or 1,
        memory_gib=round(int(_of("/proc/meminfo", r"MemTotal:\s*(\d+)") or 0) / (1 << 20), 1),
        kernel=platform.release(),
        python=platform.python_version(),
        file_system=_file_system(scratch),
        fdatasync_us_p50=round(percentile(syncs, 50) / 1e3, 1),
        fdatasync_us_p99=round(percentile(syncs, 99) / 1e3, 1),
        loop_ns=round(min(_turn_ns() for _ in range(9)), 1),
        load=round(os.getloadavg()[0], 2),
    )


def commit() -> str:
    """What was measured; `+` if it wasn't exactly that."""
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", "services")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if changed else "")


def _turn_ns() -> float:
    turns = 300_000
    began = time.perf_counter_ns()
    for _ in range(turns):
        pass
    return (time.perf_counter_ns() - began) / turns


def _git(*words: str) -> str:
    found = subprocess.run(
        ("git", *words), cwd=Path(__file__).parent, capture_output=True, check=True, text=True
    )
    return found.stdout.strip()


def _of(path: str, pattern: str) -> str:
    try:
        found = re.search(pattern, Path(path).read_text(encoding="utf-8"))
    except OSError:
        return ""
    return found[1].strip() if found else ""


def _file_system(directory: Path) -> str:
    """Of the mount that holds this directory: the longest that it begins with."""
    where = str(directory.resolve())
    best, kind = "", ""
    for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        _, mount, found, *_ = line.split()
        inside = where == mount or where.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, found
    return kind


def _syncs(scratch: Path) -> list[int]:
    page = bytes(4_096)
    took: list[int] = []
    with tempfile.TemporaryFile(dir=scratch) as file:
        number = file.fileno()
        os.pwrite(number, bytes(_SYNCS * len(page)), 0)
        os.fsync(number)
        for turn in range(_SYNCS):
            began = time.perf_counter_ns()
            os.pwrite(number, page, turn * len(page))
            os.fdatasync(number)
            took.append(time.perf_counter_ns() - began)
    return took
