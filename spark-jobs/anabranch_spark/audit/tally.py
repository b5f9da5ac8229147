"""The totals of a part of a log: any two of them make one, in any order."""

from collections.abc import Iterable, Sequence
from heapq import nsmallest

import msgspec

from anabranch.core.records.set_sum import combined
from anabranch_spark.audit.inspection import Inspected
from anabranch_spark.audit.portions import Portion
from anabranch_spark.audit.report import DAMAGE_REPORTED, Damage

OBSTACLES_KEPT = 10
MISSING = ("object-missing", "object-short")
"""Kinds of damage where the store doesn't have the bytes."""


class Tally(msgspec.Struct, frozen=True):
    """What the tasks found in some portions of a log."""

    portions: int = 0
    """Those whose bytes were there."""
    records: int = 0
    """Of the range, in portions without damage."""
    bytes: int = 0
    batches: int = 0
    sum: int = 0
    summed: int = 0
    """Records of the batches that the sum is of."""
    footers: int = 0
    read_again: int = 0
    damages: int = 0
    missing: int = 0
    """Those of them where bytes aren't there: no damage if nobody keeps them any more."""
    damage: list[Damage] = []
    """The first of them, in order of position."""
    obstacles: list[str] = []
    """Why something couldn't be judged: some reasons of all."""

    def __add__(self, other: "Tally") -> "Tally":
        return merged([self, other])


def of_portion(portion: Portion, found: Inspected, *, read_again: int = 0) -> Tally:
    """The totals of one portion that was read."""
    return Tally(
        portions=1,
        records=0 if found.damage else sum(each.count for each in portion.slices),
        bytes=portion.place.length,
        batches=found.batches,
        sum=found.sum,
        summed=found.summed,
        read_again=read_again,
        damages=len(found.damage),
        damage=_first(found.damage),
    )


def of_damage(damage: Sequence[Damage]) -> Tally:
    missing = sum(each.kind in MISSING for each in damage)
    return Tally(damages=len(damage), missing=missing, damage=_first(damage))


def of_obstacle(reason: str) -> Tally:
    return Tally(obstacles=[reason])


def kept_no_more(tally: Tally, reason: str) -> Tally:
    """The same, if nobody kept the bytes for as long as they were read: that some are missing says
    nothing then.
    """
    rest = [each for each in tally.damage if each.kind not in MISSING]
    damages = tally.damages - tally.missing
    return msgspec.structs.replace(
        tally, damages=damages, missing=0, damage=rest, obstacles=[*tally.obstacles, reason]
    )


def merged(parts: Iterable[Tally]) -> Tally:
    """The totals of all together: the same in whatever order they come, and however divided."""
    all_parts = [*parts]
    return Tally(
        portions=sum(each.portions for each in all_parts),
        records=sum(each.records for each in all_parts),
        bytes=sum(each.bytes for each in all_parts),
        batches=sum(each.batches for each in all_parts),
        sum=combined(each.sum for each in all_parts),
        summed=sum(each.summed for each in all_parts),
        footers=sum(each.footers for each in all_parts),
        read_again=sum(each.read_again for each in all_parts),
        damages=sum(each.damages for each in all_parts),
        missing=sum(each.missing for each in all_parts),
        damage=_first([damage for each in all_parts for damage in each.damage]),
        obstacles=sorted({reason for each in all_parts for reason in each.obstacles})[
            :OBSTACLES_KEPT
        ],
    )


def _first(damage: Iterable[Damage]) -> list[Damage]:
    return nsmallest(DAMAGE_REPORTED, damage, key=_in_order)


def _in_order(damage: Damage) -> tuple[int, str, str, int, int, str]:
    return (
        damage.position,
        damage.kind,
        damage.object,
        damage.offset,
        damage.length,
        damage.reason,
    )
