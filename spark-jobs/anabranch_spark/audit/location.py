"""Which extents make the set sum of a log another one: found by halves, with a bounded number of
questions.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import msgspec

from anabranch.core.records.set_sum import combined
from anabranch_spark.audit.portions import Range, covers

QUESTIONS_MAX = 1_000
"""Sums that are asked of the service to find what differs."""


class KeptSum(Protocol):
    """What the service answers of a range."""

    @property
    def sum(self) -> int: ...
    @property
    def summed(self) -> int: ...
    @property
    def unsummed(self) -> Sequence[Range]: ...


class Weighed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A portion that was read whole, and what its batches sum up to."""

    position: int
    sum: int
    summed: int


def differing(
    portions: Sequence[Weighed], end: int, asked: Callable[[int, int], KeptSum]
) -> Iterator[Range]:
    """Ranges of positions whose batches aren't those that the service has the sum of.

    `portions` are all that were read, in order of position; the last one's range ends at `end`. A
    range is of one portion if the service can tell it from its neighbours: it can't where they were
    joined since.
    """
    questions = 0

    def differs(low: int, high: int) -> bool:
        nonlocal questions
        questions += 1
        kept = asked(portions[low].position, _end(portions, high, end))
        mine = [each for each in portions[low:high] if not covers(kept.unsummed, each.position)]
        computed = combined(each.sum for each in mine), sum(each.summed for each in mine)
        return computed != (kept.sum, kept.summed)

    waiting = [(0, len(portions))] if portions else []
    while waiting and questions < QUESTIONS_MAX:
        low, high = waiting.pop()
        middle = (low + high) // 2
        halves = [(low, middle), (middle, high)] if high - low > 1 else []
        found = [half for half in halves if differs(*half)]
        if found:
            waiting += reversed(found)
        else:
            yield portions[low].position, _end(portions, high, end)
    for low, high in reversed(waiting):
        yield portions[low].position, _end(portions, high, end)


def _end(portions: Sequence[Weighed], high: int, end: int) -> int:
    return portions[high].position if high < len(portions) else end
