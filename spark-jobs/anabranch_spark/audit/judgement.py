"""What follows for a log from its plan, from what tasks found, and from what the service keeps."""

from collections.abc import Sequence

import msgspec

from anabranch_spark.audit.location import KeptSum
from anabranch_spark.audit.portions import Portion, Range
from anabranch_spark.audit.report import (
    DAMAGE_REPORTED,
    RANGES_REPORTED,
    Damage,
    LogReport,
    SumReport,
    log_verdict,
)
from anabranch_spark.audit.tally import Tally


class Expected(msgspec.Struct, frozen=True):
    """One log, as the service says that it is."""

    log: str
    start: int
    end: int
    kept_sum: int
    kept_records: int
    unsummed: list[Range]
    portions: list[Portion]
    coverage: list[Damage]
    """Where the plan's slices don't cover the range exactly once."""


def contradiction(kept: KeptSum, start: int, end: int) -> list[Damage]:
    """The service sums each record of the range, or names it as not summed."""
    unsummed = sum(after - first for first, after in kept.unsummed)
    if kept.summed + unsummed == end - start:
        return []
    reason = (
        f"the service sums {kept.summed} records and names {unsummed} as not summed, of "
        f"{end - start}"
    )
    return [Damage("answer", start, "", 0, 0, reason)]


def sums(expected: Expected, tally: Tally) -> SumReport:
    return SumReport(
        computed=tally.sum,
        computed_records=tally.summed,
        kept=expected.kept_sum,
        kept_records=expected.kept_records,
        unsummed_records=sum(after - first for first, after in expected.unsummed),
        unsummed=expected.unsummed[:RANGES_REPORTED],
    )


def unread(expected: Expected, tally: Tally) -> list[str]:
    """Why the sums can't be compared: a task that answered nothing would else go unnoticed."""
    missed = len(expected.portions) - tally.portions
    if missed and not tally.damages and not tally.obstacles:
        return [f"{missed} of {len(expected.portions)} extents weren't read"]
    return []


def comparable(expected: Expected, tally: Tally) -> bool:
    """Everything was read and is sound, so that sums must be equal."""
    return tally.portions == len(expected.portions) and not tally.damages and not tally.obstacles


def judged(expected: Expected, tally: Tally, wrong_sums: Sequence[Damage]) -> LogReport:
    """The report of a log; `wrong_sums` are the places where the sums differ."""
    obstacles = [*tally.obstacles, *unread(expected, tally)]
    damages = tally.damages + len(expected.coverage) + len(wrong_sums)
    damage = sorted([*expected.coverage, *wrong_sums, *tally.damage], key=_position)
    return LogReport(
        log=expected.log,
        verdict=log_verdict(damages, obstacles),
        start=expected.start,
        end=expected.end,
        records=tally.records,
        bytes=tally.bytes,
        batches=tally.batches,
        extents=tally.portions,
        objects=len({each.place.object for each in expected.portions}),
        footers=tally.footers,
        read_again=tally.read_again,
        covered=not expected.coverage,
        sum=sums(expected, tally),
        damages=damages,
        damage=damage[:DAMAGE_REPORTED],
        obstacles=obstacles,
    )


def _position(damage: Damage) -> int:
    return damage.position
