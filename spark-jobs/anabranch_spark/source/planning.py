"""Plan a scan: the driver asks the service once, and cuts what it names into parts."""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import NamedTuple

import anabranch
from anabranch_spark.options import Bound, ReadOptions
from anabranch_spark.source.parts import Part, parts_of

POSITION_MAX = (1 << 62) - 1


class Within(NamedTuple):
    """Positions that filters of the query leave: from `low`, up to below `high`."""

    low: int = 0
    high: int = POSITION_MAX


ALL = Within()


def planned(service: anabranch.Service, options: ReadOptions, within: Within = ALL) -> list[Part]:
    """The parts of all logs. Plans that keep nothing are ended; the others live until they are
    ended, or nobody renews them.
    """
    parts: list[Part] = []
    with ExitStack() as failing:
        for name in options.logs:
            log = service.log(name, engine="bolt")
            wanted = _range(log, options, within)
            if wanted is None:
                continue
            start, end = wanted
            plan = log.plan_scan(start, end, speculative=options.speculative, lease=options.lease)
            failing.callback(plan.end)
            slices = [each for page in plan.pages() for each in page]
            if not slices:
                plan.end()
            parts += parts_of(
                name,
                plan.description,
                slices,
                lease=options.lease,
                bytes_max=options.partition_bytes,
                parts_min=options.min_partitions,
            )
        failing.pop_all()
    return parts


def _range(log: anabranch.Log, options: ReadOptions, within: Within) -> tuple[int, int] | None:
    """The positions to scan; None for none."""
    now = log.describe()
    last = now.tail if options.speculative else now.settled
    start = resolve(log, options.start, earliest=now.start, latest=last)
    end = resolve(log, options.end, earliest=now.start, latest=last)
    if start < now.start and options.ignore_loss:
        report(f"records {start} to {now.start - 1} of {log.name} were trimmed, and are left out")
        start, end = now.start, max(now.start, end)
    if (low := max(start, within.low)) >= (high := min(end, within.high)):
        # Whatever can't be scanned is refused also if no record of it were wanted.
        return None if within != ALL else (start, end)
    return low, high


def resolve(log: anabranch.Log, bound: Bound, *, earliest: int, latest: int) -> int:
    """The position that an end of a range means now."""
    if bound == "earliest":
        return earliest
    if bound == "latest":
        return latest
    if isinstance(bound, datetime):
        return log.position_at(bound)
    assert isinstance(bound, int)
    return bound


def report(line: str) -> None:
    """One line on standard error, where Spark's logs of drivers and executors have it."""
    sys.stderr.write(f"anabranch_spark: {line}\n")
    sys.stderr.flush()


def end(service: anabranch.Service, parts: Sequence[Part]) -> None:
    """End the plans of these parts."""
    for plan in {part.plan.id: part.plan for part in parts}.values():
        service.scan_plan(plan).end()
