"""A Belfast log of real processes for one benchmark: started on fresh folders, asked, ended."""

import os
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from anabranch.apps.processes.local_log import LocalLog, LogShape, settle
from anabranch.core.errors import Unavailable
from benchmarks.belfast.delayed_process import COMMAND, VARIABLE
from benchmarks.cluster.cores import prefer
from benchmarks.cluster.local import scratch

_ATTEMPTS = 3

SILENT_INTERVALS, FAIL_INTERVALS = 20, 50
"""Of T_ord: the paper's detection of 50 T_ord, whatever the defaults of a deployment are."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that both sides of a comparison have in common, and what may differ."""

    sequencers: int = 3
    shards: int = 2
    copies: int = 2
    t_ord_ms: int = 20
    delay_us: int = 1_000
    """One way, of every message, in the benchmark's transport: loopback has none, and no netem."""
    durability: str = "fsync"
    free_will: bool = False
    rules: Mapping[str, int | bool] = msgspec.field(default_factory=dict[str, int | bool])

    @property
    def environment(self) -> dict[str, str]:
        chosen = {
            "t_ord_us": self.t_ord_ms * 1_000,
            "free_will": self.free_will,
            "adaptive": False,
            "silent_intervals": SILENT_INTERVALS,
            "fail_intervals": FAIL_INTERVALS,
            "shards_min": self.shards,
            **self.rules,
        }
        told = {f"ANABRANCH_RULES_{name.upper()}": str(value) for name, value in chosen.items()}
        return {
            **{name: value.lower() for name, value in told.items()},
            VARIABLE: str(self.delay_us),
            # Each process has a working directory of its own.
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "ANABRANCH_DURABILITY": self.durability,
        }

    def named(self) -> str:
        return "Scalog (free will)" if self.free_will else "Belfast"


@contextmanager
def running(setting: Setting) -> Generator[LocalLog]:
    """All of its processes, ready, and gone afterwards."""
    with ExitStack() as stack:
        yield _started(stack, setting, _ATTEMPTS)


def _started(stack: ExitStack, setting: Setting, attempts: int) -> LocalLog:
    folder = stack.enter_context(scratch())
    shape = LogShape(setting.sequencers, setting.shards, setting.copies)
    local = LocalLog(
        folder,
        settle(folder, shape),
        settings=setting.environment,
        command=COMMAND,
    )
    stack.callback(local.kill)
    try:
        local.start(lambda _: None)
    except Unavailable:
        # Somebody may have taken a port between our look and the process's.
        if attempts == 1 or not any(node.lost_its_port for node in local.processes):
            raise
        return _started(stack, setting, attempts - 1)
    prefer(os.getsid(0), *(node.pid for node in local.processes))
    return local
