"""What was done to the cluster, how long it took, and how long whoever appended had to wait."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import msgspec
from benchmarks.machine import Machine

RESULTS = Path(__file__).with_name("results.json")


class Step(msgspec.Struct, kw_only=True, omit_defaults=True):
    what: str
    took_s: float = 0
    longest_pause_ms: int | None = None
    """Between two acknowledgements of the client that appended all the time."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    machine: Machine
    commit: str
    kubernetes: str
    pods: dict[str, int]
    """Of the release, by what they are."""
    appended: int
    """Records that were acknowledged during all this; each was read back, once and in order."""
    steps: list[Step]


class Account:
    """Of one run."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._spans: list[tuple[int, int]] = []

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        began, clock = _now_ms(), time.monotonic()
        yield
        self.steps.append(Step(what=what, took_s=round(time.monotonic() - clock, 1)))
        self._spans.append((began, _now_ms()))

    def heed(self, acknowledged: Sequence[int]) -> None:
        """When an appending client was answered, in milliseconds. Of several the first that tells
        counts: each has its own log.
        """
        for step, (began, ended) in zip(self.steps, self._spans, strict=True):
            if step.longest_pause_ms is None:
                step.longest_pause_ms = longest_pause(acknowledged, began, ended)


def longest_pause(acknowledged: Sequence[int], began: int, ended: int) -> int | None:
    """Of those that end in the span; None if nobody appended then."""
    pauses = [after - before for before, after in pairwise(acknowledged) if began < after <= ended]
    return max(pauses, default=None)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
