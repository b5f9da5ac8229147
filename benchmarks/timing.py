"""Times taken, and what is said of them."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import nan
from statistics import fmean
from typing import TypeVar

T = TypeVar("T")

now = time.perf_counter_ns
busy = time.thread_time_ns
"""Of the processor: what it gave to others meanwhile isn't counted."""


def percentile(ordered: Sequence[float], of: float) -> float:
    """Of values in order, none of them made up between two others."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * of / 100))]


def mean(values: Iterable[float]) -> float:
    """Not a number where there are none."""
    found = list(values)
    return fmean(found) if found else nan


def each(work: Iterable[Callable[[], object]]) -> list[int]:
    """What each took of the processor, in ns, in order; what yields them isn't timed."""
    took: list[int] = []
    for do in work:
        began = busy()
        do()
        took.append(busy() - began)
    took.sort()
    return took


def seconds(work: Callable[[], object]) -> float:
    began = now()
    work()
    return (now() - began) / 1e9


def busy_seconds(work: Callable[[], object]) -> float:
    """Of the processor."""
    began = busy()
    work()
    return (busy() - began) / 1e9


def interleaved(rounds: int, works: Mapping[str, Callable[[], T]]) -> dict[str, list[T]]:
    """Rounds of all, one after the other: what disturbs the machine disturbs them alike.

    Every other round goes backwards, so that none always follows the same one.
    """
    found: dict[str, list[T]] = {name: [] for name in works}
    order = list(works)
    for _ in range(rounds):
        for name in order:
            found[name].append(works[name]())
        order.reverse()
    return found
