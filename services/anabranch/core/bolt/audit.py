"""What must be true of a replica and of the objects its extents name: each breach found is a Fault
(spec 9).

Pure: whoever has the bytes passes them in, one object at a time. Holds B3 and B6 (every position
has one entry, tails add up), B11 (no entry without its object) and D6 (references are counted
right).
"""

from collections.abc import Iterator, Sequence

import msgspec

from anabranch.core.bolt.forest import Forest, Log
from anabranch.core.bolt.replica import Replica
from anabranch.core.bolt.retention import needed_from
from anabranch.core.errors import AnabranchError, CorruptBatch
from anabranch.core.machine import Buffer
from anabranch.core.records.batch import split, verify
from anabranch.core.records.objects import TRAILER_BYTES, Footer, footer_bytes, read_footer
from anabranch.core.types import Kind, ObjectId, Position


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
    """A severed fork that lost its parent may use only the beginning of an extent it took over."""


class Inspection(msgspec.Struct, frozen=True):
    """What one object was found to hold."""

    batches: int
    records: int
    faults: list[Fault]


def forest_faults(replica: Replica) -> Iterator[Fault]:
    """Every log by itself and beside its parent; no record is looked at."""
    forest = replica.forest
    for log in forest.logs.values():
        reasons = [*_index_reasons(log), *_tail_reasons(forest, log), *_fork_reasons(forest, log)]
        for reason in reasons:
            yield Fault("bad-index", log.name, reason)


def reference_faults(replica: Replica) -> Iterator[Fault]:
    """Are the extents of each object as many as were counted, and garbage without any?"""
    counted = replica.references.counts
    found: dict[int, int] = {}
    for log in replica.forest.logs.values():
        for object in log.index.object:
            found[object] = found.get(object, 0) + 1
    for object, extents in found.items():
        expected = counted.get(ObjectId(object), 1)
        if extents != expected:
            reason = f"{extents} extents refer to it and {expected} were counted"
            yield Fault("bad-count", f"object {object}", reason)
        if object in replica.references.garbage:
            reason = f"{extents} extents refer to it, and it is to be deleted as garbage"
            yield Fault("bad-count", f"object {object}", reason)
    for object in counted:
        if object not in found:
            reason = f"{counted[object]} extents were counted and none refers to it"
            yield Fault("bad-count", f"object {object}", reason)


def holdings(replica: Replica) -> Iterator[tuple[ObjectId, list[Holding]]]:
    """Every object that an extent refers to, in order, with all the extents in it."""
    logs = list(replica.forest.logs.values())
    objects: list[int] = []
    bounds: list[int] = []
    for log in logs:
        objects.extend(log.index.object)
        bounds.append(len(objects))
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
    counts: dict[int, tuple[int, int]] = {}
    for offset, length in regions:
        faults += _read_batches(name, content, offset, length, counts)
    for row in footer.rows if footer else ():
        records = _records(counts, row.offset, row.length)
        if records is not None and records != row.count:
            reason = f"its footer gives log {row.log} {row.count} records and it has {records}"
            faults.append(Fault("bad-count", name, reason))
    for each in held:
        reason = _extent_reason(counts, each)
        if reason:
            where = f"{each.log} {each.first}..{each.first + each.count - 1}"
            faults.append(Fault("lost-records", where, f"in object {name} {reason}"))
    records = sum(count for _, count in counts.values())
    return Inspection(len(counts), records, faults)


def loss(name: str, held: Sequence[Holding]) -> Iterator[Fault]:
    """What an object that isn't there takes with it."""
    for each in held:
        where = f"{each.log} {each.first}..{each.first + each.count - 1}"
        yield Fault("object-missing", where, f"object {name} is referred to and not in the store")


def _index_reasons(log: Log) -> Iterator[str]:
    index = log.index
    for extent in range(len(index)):
        if index.end(extent) <= index.first[extent]:
            yield f"the extent at {index.first[extent]} holds no record"
    for extent in range(1, len(index)):
        gap = index.inherited_before(extent) - index.inherited_before(extent - 1)
        if gap < 0:
            yield f"the extents at {index.first[extent - 1]} and {index.first[extent]} overlap"
        elif gap and log.kind is not Kind.CONTINUOUS:
            yield f"positions {index.end(extent - 1)}..{index.first[extent] - 1} are in no extent"


def _tail_reasons(forest: Forest, log: Log) -> Iterator[str]:
    """The last position has an entry, and so has every one down to the first that is needed."""
    index, tail = log.index, forest.tail(log)
    end = index.end(len(index) - 1) if len(index) else 0
    if end > tail:
        yield f"its extents end at {end} and its tail is {tail}"
    if log.kind is Kind.CONTINUOUS:
        assert log.parent is not None
        inherited = tail - index.records
        if inherited != forest.tail(log.parent):
            yield (
                f"it has {inherited} inherited records below its tail, and "
                f"{log.parent.name} holds {forest.tail(log.parent)}"
            )
        return
    low = max(log.own_from, needed_from(log))
    if len(index) and index.first[0] > low:
        yield f"positions {low}..{index.first[0] - 1} are in no extent"
    if low < tail and end != tail:
        yield f"positions {max(low, end)}..{tail - 1} are in no extent"


def _fork_reasons(forest: Forest, log: Log) -> Iterator[str]:
    parent = log.parent
    promotable = [child.id for child in log.children.values() if child.promotable]
    if sorted(promotable) != sorted(id for _, id in log.promotable_forks):
        yield "its undecided promotable forks aren't the ones it is noted to have"
    if parent is None:
        return
    if log.own_from > forest.tail(parent):
        yield f"it begins at {log.own_from}, behind {parent.name}'s tail {forest.tail(parent)}"
    if log.kind is Kind.CONTINUOUS:
        held = bool(parent.promotable_forks) and not log.promotable
        expected = forest.tails.block(parent.place) + held
        if forest.tails.block(log.place) != expected:
            yield f"{forest.tails.block(log.place)} forks block it, {expected} should"


def _owners(bounds: Sequence[int]) -> list[int]:
    """For each extent, counted through all logs, which log it is of."""
    owners: list[int] = []
    for owner, bound in enumerate(bounds):
        owners.extend([owner] * (bound - len(owners)))
    return owners


def _holding(log: Log, extent: int) -> Holding:
    index = log.index
    first, end = index.first[extent], index.end(extent)
    cut = log.kind is Kind.SEVERED and first < log.fork_point
    return Holding(log.name, first, end - first, index.offset[extent], index.length[extent], cut)


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
    name: str, content: Buffer, offset: int, length: int, counts: dict[int, tuple[int, int]]
) -> Iterator[Fault]:
    """Note length and count of every batch in the region whose checksum is right."""
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
            counts[at] = (size, header.count)
    except CorruptBatch as error:
        yield Fault("corrupt-batch", f"{name} byte {offset} on", _why(error))


def _why(error: AnabranchError) -> str:
    return str(error.facts.get("reason") or error.message)


def _records(counts: dict[int, tuple[int, int]], offset: int, length: int) -> int | None:
    """Records of the whole batches that fill this range; None if it isn't filled by any."""
    at, records = offset, 0
    while at < offset + length:
        size, count = counts.get(at, (0, 0))
        if not size:
            return None
        at += size
        records += count
    return records if at == offset + length else None


def _extent_reason(counts: dict[int, tuple[int, int]], held: Holding) -> str:
    records = _records(counts, held.offset, held.length)
    if records is None:
        return f"bytes {held.offset}..{held.offset + held.length} can't be read as its batches"
    if records != held.count and not (held.cut and records > held.count):
        return f"its bytes hold {records} records instead of {held.count}"
    return ""
