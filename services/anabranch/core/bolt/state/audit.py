"""What must be true of a replica and of the objects its extents name: each breach found is a Fault
(spec 9).

Pure: whoever has the bytes passes them in, one object at a time. What must hold of the replica by
itself is in core/bolt/state/invariants.py; here are its objects (B11: no entry without its object,
and what an extent says of an object is so).
"""

from collections.abc import Iterator, Sequence

import msgspec

from anabranch.core.bolt.logs.forest import Log
from anabranch.core.bolt.logs.lineage import segments
from anabranch.core.bolt.state.invariants import RULES
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.errors import AnabranchError, CorruptBatch
from anabranch.core.machine import Buffer
from anabranch.core.records.batch import split, verify
from anabranch.core.records.objects import TRAILER_BYTES, Footer, footer_bytes, read_footer
from anabranch.core.records.set_sum import UNKNOWN, batch_value, combined
from anabranch.core.types import Kind, ObjectId, Position

Batch = tuple[int, int, int]
"""Length, records, and what it adds to a set sum."""
Batches = dict[int, Batch]
"""By offset in an object."""


class Fault(msgspec.Struct, frozen=True):
    """One thing that isn't as it must be."""

    code: str
    where: str
    """The log, object or file."""
    reason: str


class Holding(msgspec.Struct, frozen=True, gc=False):
    """One extent of one log, as the object that holds it sees it."""

    log: str
    first: Position
    count: int
    offset: int
    length: int
    cut: bool
    """A severed fork that lost its parent may use only a part of an extent it took over."""
    skip: int = 0
    """Records of the extent that it leaves out at the beginning."""
    sum: int = UNKNOWN
    """The set sum that the log keeps of it."""


class Inspection(msgspec.Struct, frozen=True):
    """What one object was found to hold."""

    batches: int
    records: int
    faults: list[Fault]


def replica_faults(replica: Replica) -> list[Fault]:
    """Every invariant that this state breaks, and every position that no extent holds."""
    faults: list[Fault] = []
    for rule, holds in RULES.items():
        try:
            # B3 also compares two ways of look-up, extent by extent in every fork: that tests
            # the program, not what is stored, and takes hours on a large state.
            breaches = holds(replica) if rule != "B3" else _gaps(replica)
            faults += (Fault("broken-rule", log, f"{rule}: {what}") for log, what in breaches)
        except AssertionError as error:
            faults.append(Fault("broken-rule", "", f"{rule}: {error}"))
    return faults


def holdings(replica: Replica) -> Iterator[tuple[ObjectId, list[Holding]]]:
    """Every object that an extent refers to, in order, with all the extents in it."""
    logs = list(replica.forest.logs.values())
    objects: list[int] = []
    bounds: list[int] = []
    for log in logs:
        objects.extend(log.index.object)
        bounds.append(len(objects))
    assert len(objects) == sum(len(log.index) for log in logs)
    order = sorted(range(len(objects)), key=objects.__getitem__)
    owners = _owners(bounds)
    held: list[Holding] = []
    for turn, at in enumerate(order):
        owner = owners[at]
        held.append(_holding(logs[owner], at - (bounds[owner - 1] if owner else 0)))
        if turn + 1 == len(order) or objects[order[turn + 1]] != objects[at]:
            yield ObjectId(objects[at]), held
            held = []


def inspect(name: str, cluster: str, content: Buffer, held: Sequence[Holding]) -> Inspection:
    """Read one whole object: its footer, the checksum of every batch, and what each extent says
    of it.
    """
    faults: list[Fault] = []
    footer = _footer(name, cluster, content, faults)
    regions = (
        [(row.offset, row.length) for row in footer.rows]
        if footer
        else sorted({(each.offset, each.length): None for each in held})
    )
    counts: Batches = {}
    for offset, length in regions:
        faults += _read_batches(name, content, offset, length, counts)
    for row in footer.rows if footer else ():
        records = _records(counts, row.offset, row.length)
        if records is not None and records != row.count:
            reason = f"its footer gives log {row.log} {row.count} records and it has {records}"
            faults.append(Fault("bad-count", name, reason))
    for each in held:
        reason = _extent_reason(counts, each)
        where = f"{each.log} {each.first}..{each.first + each.count - 1}"
        if reason:
            faults.append(
                Fault("lost-records", where, f"in object {name} {reason}; {_beyond(each)}")
            )
            continue
        total = combined(value for _, _, value in _within(counts, each.offset, each.length))
        if each.sum not in (UNKNOWN, total):
            reason = f"object {name} holds other batches there: their set sum is {total}"
            faults.append(Fault("wrong-sum", where, f"{reason}, and {each.sum} was committed"))
    records = sum(count for _, count, _ in counts.values())
    return Inspection(len(counts), records, faults)


def loss(name: str, held: Sequence[Holding], in_quarantine: bool = False) -> Iterator[Fault]:
    """What an object that isn't there takes with it."""
    lies = (
        "in quarantine, from where the next start of whoever leads brings it back"
        if in_quarantine
        else "not in the store"
    )
    for each in held:
        where = f"{each.log} {each.first}..{each.first + each.count - 1}"
        reason = f"object {name} is referred to and is {lies}; {_beyond(each)}"
        yield Fault("object-missing", where, reason)


def _beyond(held: Holding) -> str:
    return f"reading goes on at {held.first + held.count}"


def _gaps(replica: Replica) -> Iterator[tuple[str, str]]:
    for log in replica.forest.logs.values():
        tail = replica.forest.tail(log)
        try:
            segments(log, log.start, tail)
        except AssertionError as error:
            yield log.name, f"of positions {log.start}..{tail - 1} some are in no extent: {error}"


def _owners(bounds: Sequence[int]) -> list[int]:
    """For each extent, counted through all logs, which log it is of."""
    owners: list[int] = []
    for owner, bound in enumerate(bounds):
        owners.extend([owner] * (bound - len(owners)))
    assert len(owners) == (bounds[-1] if bounds else 0), "each extent is some log's"
    return owners


def _holding(log: Log, extent: int) -> Holding:
    assert 0 <= extent < len(log.index), "no such extent"
    index = log.index
    first, end = index.first[extent], index.end(extent)
    cut = log.kind is Kind.SEVERED and first < log.fork_point
    place = index.offset[extent], index.length[extent]
    skip, total = index.skip(extent), index.sum[extent]
    return Holding(log.name, first, end - first, *place, cut, skip, total)


def _footer(name: str, cluster: str, content: Buffer, faults: list[Fault]) -> Footer | None:
    size = len(content)
    view = memoryview(content)
    try:
        length = footer_bytes(view[-min(size, TRAILER_BYTES) :], size, name)
        footer = read_footer(view[size - length :], size, name)
    except AnabranchError as error:
        faults.append(Fault(error.code, name, error.message))
        return None
    if footer.cluster != cluster:
        faults.append(Fault("wrong-cluster", name, f"it was written for {footer.cluster}"))
    return footer


def _read_batches(
    name: str, content: Buffer, offset: int, length: int, counts: Batches
) -> Iterator[Fault]:
    """Note every batch in the region whose checksum is right."""
    region = memoryview(content)[offset : offset + length]
    if len(region) < length:
        yield Fault("corrupt-object", name, f"it ends before byte {offset + length}")
    try:
        for start, size, header in split(region):
            at = offset + start
            try:
                verify(region[start : start + size], f"at byte {at}")
            except AnabranchError as error:
                yield Fault("corrupt-batch", f"{name} byte {at}", _why(error))
                continue
            counts[at] = (size, header.count, batch_value(header.crc))
    except CorruptBatch as error:
        yield Fault("corrupt-batch", f"{name} byte {offset} on", _why(error))


def _why(error: AnabranchError) -> str:
    return str(error.facts.get("reason") or error.message)


def _records(counts: Batches, offset: int, length: int) -> int | None:
    """Records of the whole batches that fill this range; None if it isn't filled by any."""
    assert offset >= 0
    assert length >= 0
    batches = [*_within(counts, offset, length)]
    if sum(size for size, _, _ in batches) != length:
        return None
    return sum(count for _, count, _ in batches)


def _within(counts: Batches, offset: int, length: int) -> Iterator[Batch]:
    """The batches from here on, one behind the other, up to one that begins past the range."""
    at = offset
    while at < offset + length and at in counts:
        yield counts[at]
        at += counts[at][0]


def _extent_reason(counts: Batches, held: Holding) -> str:
    records = _records(counts, held.offset, held.length)
    if records is None:
        return f"bytes {held.offset}..{held.offset + held.length} can't be read as its batches"
    named = held.skip + held.count
    if records != named and not (held.cut and records > named):
        return f"its bytes hold {records} records instead of {held.count}"
    return ""
