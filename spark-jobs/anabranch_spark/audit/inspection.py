"""What the bytes of a portion prove: their checksums, their counts, their set sum."""

from collections.abc import Sequence

import msgspec

from anabranch import PlannedSlice
from anabranch.core.machine import Buffer
from anabranch.core.records.batch import split, verify
from anabranch.core.records.objects import TRAILER_BYTES, Footer, footer_bytes, read_footer
from anabranch.core.records.set_sum import set_sum
from anabranch.errors import AnabranchError
from anabranch_spark.audit.portions import Portion, covers
from anabranch_spark.audit.report import Damage


class Inspected(msgspec.Struct, frozen=True):
    """A portion's part of the totals, and what is wrong with it."""

    batches: int
    sum: int
    """Of the batches that begin in the audited range and that the service has a sum of, too."""
    summed: int
    """Records of these batches."""
    damage: list[Damage]


def inspect(portion: Portion, content: Buffer, name: str) -> Inspected:
    """Verify the bytes of a portion; `name` is its object's.

    A batch counts where its first record is meant. So it counts once if slices share it, and not at
    all if the range cuts it there, which is as the service sums.
    """
    place, view = portion.place, memoryview(content)
    where = f"of object {name}"
    damage: list[Damage] = []
    summed: list[memoryview] = []
    batches = records = passed = 0

    def fault(kind: str, offset: int, length: int, reason: str) -> None:
        at = place.offset + offset
        damage.append(Damage(kind, position_of(portion.slices, passed), name, at, length, reason))

    reached = 0
    try:
        for offset, length, header in split(view, where):
            batch = view[offset : offset + length]
            try:
                verify(batch, where)
            except AnabranchError as error:
                fault("corrupt-batch", offset, length, _reason(error))
            meant = _meant(portion.slices, passed)
            if meant is not None and not covers(portion.unsummed, meant):
                summed.append(batch)
                records += header.count
            batches += 1
            passed += max(0, header.count)
            reached = offset + length
    except AnabranchError as error:
        # Its header doesn't say where the next batch begins.
        fault("corrupt-batch", reached, len(view) - reached, _reason(error))
    named = max(each.skip + each.count for each in portion.slices)
    if not damage and passed < named:
        reason = f"{named} records were named and {passed} are there"
        fault("lost-records", 0, len(view), reason)
    return Inspected(batches, set_sum(summed), records, damage)


def missing(portion: Portion, name: str, reason: str, *, short: bool = False) -> Damage:
    """The damage where nothing is to be had of a portion; `short` if its object is there."""
    kind, place = "object-short" if short else "object-missing", portion.place
    return Damage(kind, portion.position, name, place.offset, place.length, reason)


def footer_damage(
    tail: Buffer, size: int, cluster: str, portions: Sequence[Portion], name: str
) -> list[Damage]:
    """What is wrong with the footer of an object of this size, whose end this is: as much of it as
    `footer_length` says. `portions` are what is read of the object.
    """
    first = portions[0]
    whole = (first.position, name, 0, size)
    try:
        footer = read_footer(tail, size, name)
    except AnabranchError as error:
        return [Damage("footer", *whole, _reason(error))]
    if footer.cluster != cluster:
        reason = f"it was written for the cluster {footer.cluster!r}, and this one is {cluster!r}"
        return [Damage("footer", *whole, reason)]
    return [
        Damage("footer", each.position, name, each.place.offset, each.place.length, reason)
        for each in portions
        if (reason := _outside(footer, each))
    ]


def footer_length(trailer: Buffer, size: int, name: str) -> int:
    """How much of an object's end is footer, by its last bytes; 0 if they say nothing sensible,
    which `footer_damage` then reports.
    """
    try:
        return footer_bytes(trailer, size, name)
    except AnabranchError:
        return min(size, TRAILER_BYTES)


def position_of(slices: Sequence[PlannedSlice], ordinal: int) -> int:
    """Of the record that so many others precede in the bytes, or of the one that is meant closest
    after it, or of the last one.
    """
    later = [each for each in slices if each.skip + each.count > ordinal]
    if not later:
        return max(each.first + each.count - 1 for each in slices)
    nearest = min(later, key=lambda each: each.skip)
    return nearest.first + max(0, ordinal - nearest.skip)


def _meant(slices: Sequence[PlannedSlice], ordinal: int) -> int | None:
    """The position of the record that so many others precede in the bytes, if it is meant."""
    for each in slices:
        if each.skip <= ordinal < each.skip + each.count:
            return each.first + ordinal - each.skip
    return None


def _outside(footer: Footer, portion: Portion) -> str:
    """Why the footer contradicts the plan: the bytes must lie in one row of it."""
    first = portion.place.offset
    end = first + portion.place.length
    for row in footer.rows:
        if row.offset <= first and end <= row.offset + row.length:
            named = max(each.skip + each.count for each in portion.slices)
            if named > row.count:
                return f"its footer has {row.count} records where the plan names {named}"
            return ""
    return f"no row of its footer holds the bytes {first} to {end - 1}"


def _reason(error: AnabranchError) -> str:
    """What is wrong, without what the error says of appends, which nobody has asked for here."""
    return str(error.facts.get("reason", error.message))
