"""Compares two logs: the service says where they differ, and Spark reads what they hold there."""

from collections.abc import Callable

from anabranch import Log, Service
from anabranch_spark.diff.ranges import Difference, Extent, Reads, cut_alike, reads, total
from anabranch_spark.diff.report import (
    RANGES_REPORTED,
    By,
    DiffReport,
    Keys,
    Positions,
    by_key,
    by_position,
)

ReadKeys = Callable[[Reads], Keys]
"""Reads these ranges, and compares them by key."""


def compared(service: Service, names: tuple[str, str], by: By, read: ReadKeys) -> DiffReport:
    """The report of two logs, as far as they are settled now."""
    logs = [service.log(name, engine="bolt") for name in names]
    # The ends first: what comes later is in the comparison, and is cut off again.
    a, b = (_extent(log) for log in logs)
    found = logs[0].diff(logs[1])
    positions = positions_of(found)
    if by == "position":
        verdict, keys = by_position(positions), None
    else:
        a, b = cut_alike(found, a, b)
        keys = read(reads(found, a, b))
        verdict = by_key(keys)
    return DiffReport(
        a=names[0],
        b=names[1],
        by=by,
        verdict=verdict,
        end_a=a.end,
        end_b=b.end,
        positions=positions,
        keys=keys,
    )


def positions_of(found: Difference) -> Positions:
    return Positions(
        since=found.since,
        shared=found.shared,
        only_a=total(found.only_a),
        only_b=total(found.only_b),
        not_comparable_a=total(found.trimmed_a),
        not_comparable_b=total(found.trimmed_b),
        ranges_a=[*found.only_a[:RANGES_REPORTED]],
        ranges_b=[*found.only_b[:RANGES_REPORTED]],
        complete=found.complete,
    )


def _extent(log: Log) -> Extent:
    now = log.describe()
    return Extent(now.start, now.settled)
