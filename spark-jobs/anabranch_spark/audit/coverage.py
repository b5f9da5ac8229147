"""Whether the slices of a plan cover its range exactly once."""

from collections.abc import Iterable
from typing import Protocol

from anabranch_spark.audit.report import Damage


class Covering(Protocol):
    """A slice, as far as its place in the log goes."""

    @property
    def first(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def object(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def length(self) -> int: ...


def coverage_faults(
    start: int, end: int, slices: Iterable[Covering], name: str = ""
) -> list[Damage]:
    """Each gap, overlap or slice out of range, in the order of `slices`: a reader takes them in
    that order, so slices that are out of order are faults, too.

    `name` is the log's, for the messages.
    """
    found: list[Damage] = []

    def fault(position: int, reason: str, each: Covering | None = None) -> None:
        object = f"{each.object:016x}" if each else ""
        place = (each.offset, each.length) if each else (0, 0)
        found.append(Damage("coverage", position, object, *place, f"{name} {reason}".lstrip()))

    at = start
    for each in slices:
        upto = each.first + each.count
        if each.count <= 0:
            fault(each.first, f"has a slice of {each.count} records at {each.first}", each)
            continue
        if each.first > at:
            fault(at, f"has no slice for positions {at} to {each.first - 1}")
        elif each.first < at:
            fault(each.first, f"has positions {each.first} to {min(at, upto) - 1} twice", each)
        if upto > end:
            fault(max(end, each.first), f"has a slice up to {upto}, past its end at {end}", each)
        at = max(at, upto)
    if at < end:
        fault(at, f"has no slice for positions {at} to {end - 1}")
    return found
