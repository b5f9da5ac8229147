"""Plan a scan: the driver asks the service once for each log, and cuts what it names into parts."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime

import anabranch
from anabranch import PlannedSlice, ScanPlan
from anabranch.errors import BadRequest
from anabranch_spark.options import Bound, ReadOptions
from anabranch_spark.source.parts import Part, parts_of
from anabranch_spark.source.predicates import ALL, Within


def planned(service: anabranch.Service, options: ReadOptions, within: Within = ALL) -> list[Part]:
    """The parts of all logs, in their order. Their plans live until a task ends them, or until
    nobody renews them.
    """
    parts: list[Part] = []
    with ExitStack() as failing:
        for name in options.logs:
            log = service.log(name, engine="bolt")
            start, end = _range(log, options, within)
            if start > end:
                continue
            plan = log.plan_scan(start, end, speculative=options.speculative, lease=options.lease)
            failing.callback(plan.end)
            slices = [*slices_of(plan)]
            if not slices:
                plan.end()
            parts += parts_of(name, plan.description, slices, options, ends=True)
        failing.pop_all()
    return parts


def slices_of(plan: ScanPlan) -> Iterator[PlannedSlice]:
    """All slices of the plan, page by page."""
    for page in plan.pages():
        yield from page


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
    """One line on standard error, which Spark keeps for the driver and each executor."""
    sys.stderr.write(f"anabranch_spark: {line}\n")
    sys.stderr.flush()


def report_loss(log: str, start: int, first: int) -> None:
    """Say which records a reader leaves out because they were trimmed."""
    report(f"lost: records {start} to {first - 1} of {log} were trimmed, and are left out")


def _range(log: anabranch.Log, options: ReadOptions, within: Within) -> tuple[int, int]:
    """The positions to scan. The start lies after the end if filters leave none."""
    now = log.describe()
    last = now.tail if options.speculative else now.settled
    start = resolve(log, options.start, earliest=now.start, latest=last)
    end = resolve(log, options.end or "latest", earliest=now.start, latest=last)
    if start > last:
        reason = f"{log.name} has no settled records from {last} on; try a position up to that"
        raise BadRequest(f"from={start}", reason)
    if start < now.start and options.ignore_loss:
        report_loss(log.name, start, now.start)
        start, end = now.start, max(now.start, end)
    if within == ALL:
        return start, end
    low, high = max(start, within.low), min(end, within.high)
    return (low, high) if low < high else (1, 0)
