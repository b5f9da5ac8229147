"""Which processor a process may use, and how much of it: as the limits of pods would say."""

import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

CPU = Path("/sys/fs/cgroup/cpu")
"""The controller as it is mounted by version 1 of cgroups."""

FIRST = "BENCH_FIRST"
_FIRST_NICE = "-10"
_PERIOD_US = 10_000
_SHARES = 128
"""An eighth of what a process outside has where both want the core."""


def pin(pid: int, *cores: int) -> None:
    """Every thread of it; those to come inherit it."""
    there = os.sched_getaffinity(0)
    wanted = {core for core in cores if core in there} or there
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(ProcessLookupError):
            os.sched_setaffinity(int(task.name), wanted)


def prefer(*pids: int) -> None:
    """Before whatever else the machine does, if `BENCH_FIRST` is set; each must lead a session.

    Nice values don't count between sessions where the kernel groups processes by them.
    """
    if not os.environ.get(FIRST):
        return
    for pid in pids:
        Path(f"/proc/{pid}/autogroup").write_text(_FIRST_NICE)


@contextmanager
def limited(name: str, share: float, pids: Iterable[int]) -> Generator[bool]:
    """Together these get at most this share of one core, and of a contended one an eighth of what
    others get; False where that can't be had.
    """
    group = CPU / f"anabranch-{name}-{os.getpid()}"
    listed = list(pids)
    try:
        group.mkdir()
        (group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(round(share * _PERIOD_US)))
        (group / "cpu.shares").write_text(str(_SHARES))
        for pid in listed:
            (group / "cgroup.procs").write_text(str(pid))
    except OSError:
        _leave(group, listed)
        yield False
        return
    try:
        yield True
    finally:
        _leave(group, listed)


def _leave(group: Path, pids: Iterable[int]) -> None:
    for pid in pids:
        # It may have ended by itself.
        with suppress(OSError):
            (CPU / "cgroup.procs").write_text(str(pid))
    with suppress(OSError):
        group.rmdir()
