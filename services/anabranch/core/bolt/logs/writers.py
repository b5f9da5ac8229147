"""Writer marks: each part of each version of a writer is appended once (decision 76).

A log keeps its own writers' marks until they are released. A continuous fork has all records of the
logs above it, so it also answers from their marks; a severed one begins with none.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from anabranch.core.bolt.logs.forest import Forest, Log, replay
from anabranch.core.bolt.logs.marks import FORGOTTEN, Marks, PartRecord, WriterRecord
from anabranch.core.bolt.protocol.commands import Batch, Done, check_format
from anabranch.core.bolt.protocol.marks import (
    MARKS_FORMAT,
    NO_VERSION,
    AlreadyAppended,
    CompleteVersion,
    OpenVersion,
    ReadWriters,
    ReleaseWriter,
    WriterMark,
    Writers,
    WriterState,
    check_version,
    check_writer,
)
from anabranch.core.bolt.protocol.receipts import Receipt
from anabranch.core.errors import (
    AnabranchError,
    NoWriterMarks,
    PartDiffers,
    PartGap,
    ReceiptExpired,
    TooMany,
    WriterConflict,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.records.digest import matches
from anabranch.core.types import Kind, LogId, Milliseconds, Position

_WHAT = "a log with writer marks"


class Known(Protocol):
    """What a writer's marks need of the replicated state."""

    at: Milliseconds
    limits: Limits

    @property
    def forest(self) -> Forest: ...

    @property
    def format(self) -> int: ...

    def whereabouts(self, receipt: Receipt) -> Position | Receipt: ...


class Place(NamedTuple):
    """Where a batch went when it was committed."""

    position: Position
    generation: int
    digest: int


def append(
    replica: Known, log: Log, batch: Batch, position: Position
) -> AlreadyAppended | Refused | None:
    """None if the batch is appended now, at this position, which is noted; else what it was
    answered when it was appended, or why it can't be.
    """
    mark = batch.mark
    assert mark is not None, "only asked about marked batches"
    known = find(replica, log, mark, batch.digest)
    if known is not None:
        return known
    try:
        record = _next_of(replica, log, mark)
    except AnabranchError as error:
        return Refused.of(error)
    assert log.marks is not None, "the part is one of its marks"
    log.marks.batches += 1
    log.marks.writers[mark.writer].at = replica.at
    record.note(position, log.generation, batch.digest)
    return None


def find(
    replica: Known, log: Log, mark: WriterMark, digest: int
) -> AlreadyAppended | Refused | None:
    """The answer to a batch that this log has; a refusal if it can't be taken; None if it may be
    new.
    """
    known = [*_known_in(log, mark.writer)]
    top = max((writer.complete for _, writer in known), default=NO_VERSION)
    for holder, writer in known:
        held = writer.batches_of(mark.version).get(mark.part, 0)
        if mark.batch < held:
            return _repeated(replica, log, holder, mark, digest, top)
        if held and top < mark.version:
            # Here the part goes on with its next batch. In a fork it can't: who sends the rest to
            # either log would have it twice in the fork.
            return None if holder is log else _begun_above(log, holder, mark)
    if top > mark.version:
        return AlreadyAppended(None, None, top)
    if top < mark.version:
        return None
    reason = "the version is complete and has no such batch"
    return _differs(log, mark, reason)


def why_not(log: Log) -> NoWriterMarks | None:
    """Why a log can't take appends with marks, if that is so."""
    if log.engine:
        return NoWriterMarks(log.name, f"it is a log of the {log.engine} engine")
    if log.front is not None and not log.front.ended:
        return NoWriterMarks(log.name, "its appends go through a lazy front")
    return None


def complete(replica: Known, command: CompleteVersion) -> Done:
    """Close a version that the log has whole; asked again, it is closed already."""
    log, limits = _log(replica, command.log, "version to complete"), replica.limits
    name, version = command.writer, command.version
    check_version(name, version, limits.writer_chars_max)
    parts = {part: batches for part, batches in command.parts if batches}
    if len(parts) > limits.writer_parts_max:
        raise TooMany(f"parts of version {version}", limits.writer_parts_max, "writer_parts_max")
    known = [*_known_in(log, name)]
    top = max((writer.complete for _, writer in known), default=NO_VERSION)
    if version < top:
        return Done()
    lower = [
        each
        for holder, writer in known
        for each in writer.open
        if each < version and (holder is log or each > top)
    ]
    if lower:
        reason = f"version {min(lower)} is open: complete it first, or release the writer"
        raise WriterConflict(log.name, name, version, reason)
    held: dict[int, int] = {}
    for _, writer in reversed(known):
        held.update(writer.batches_of(version))
    if held != parts:
        raise WriterConflict(log.name, name, version, _difference(held, parts))
    if version > top:
        writer = _writer(replica, log, name)
        assert log.marks is not None
        log.marks.close(writer, version)
        writer.at = replica.at
    return Done()


def release(replica: Known, command: ReleaseWriter) -> Done:
    log = _log(replica, command.log, "writer to release")
    check_writer(command.writer, replica.limits.writer_chars_max)
    if log.marks is not None:
        log.marks.drop(command.writer)
        if not log.marks.writers:
            log.marks = None
    return Done()


def read(replica: Known, query: ReadWriters) -> Writers:
    log = replica.forest.find_own(query.log, "writer mark")
    known = log.marks.writers if log.marks is not None else {}
    names = sorted(known) if not query.writer else [query.writer] if query.writer in known else []
    return Writers([_state_of(name, known[name]) for name in names])


def check_promotion(replica: Known, parent: Log, fork: Log) -> None:
    """What both logs know of a writer must make one history, and the parent have room for it."""
    coming = fork.marks
    if coming is None:
        return
    own, limits = parent.marks or Marks(), replica.limits
    for name, theirs in coming.writers.items():
        ours = own.writers.get(name)
        version = None if ours is None else _clash(ours, theirs)
        if version is not None:
            reason = (
                f"{parent.name} and {fork.name} both have parts of it or of a later one, and after "
                f"a promotion one log would have to answer for both: complete the version, or "
                f"release the writer in one of the two"
            )
            raise WriterConflict(fork.name, name, version, reason)
    writers = len(own.writers.keys() | coming.writers.keys())
    if writers > limits.writers_per_log_max:
        what = f"writers of {parent.name}"
        raise TooMany(what, limits.writers_per_log_max, "writers_per_log_max")
    if own.parts + coming.parts > limits.writer_parts_max:
        what = f"parts of writers' versions in {parent.name}"
        raise TooMany(what, limits.writer_parts_max, "writer_parts_max")
    if own.batches + coming.batches > limits.writer_batches_max:
        what = f"batches of versions that aren't complete in {parent.name}"
        raise TooMany(what, limits.writer_batches_max, "writer_batches_max")


def promote(replica: Known, parent: Log, fork: Log) -> None:
    """The parent answers for the fork's records from here on. Its generation is the one after the
    promotion, in which its positions are the fork's.
    """
    coming, fork.marks = fork.marks, None
    if coming is None:
        return
    own = parent.marks = parent.marks or Marks()
    for name, theirs in coming.writers.items():
        ours = own.writers.get(name)
        if ours is None:
            ours = own.writers[name] = WriterRecord(replica.at)
        ours.at = replica.at
        for version, parts in theirs.open.items():
            for part, record in parts.items():
                ours.open.setdefault(version, {})[part] = _moved_part(fork, parent, record)
                own.parts += 1
                own.batches += record.batches
        if theirs.complete > ours.complete:
            # What the parent has of this version was counted when it was completed in the fork.
            own.close(ours, theirs.complete)
            for part, done in theirs.done.items():
                position = _moved(fork, done.position, done.generation)
                ours.done[part] = replace(done, position=position, generation=parent.generation)
            own.parts += len(theirs.done)


def unsound(replica: Known) -> Iterator[tuple[str, str]]:
    """The invariant: counts are right, and no open version lies at or below a complete one."""
    for log in replica.forest.logs.values():
        marks = log.marks
        if marks is None:
            continue
        if log.engine or not marks.writers:
            yield log.name, "it keeps marks of no writer, or for another engine"
        parts = batches = 0
        for name, writer in marks.writers.items():
            parts += len(writer.done) + sum(map(len, writer.open.values()))
            if any(version <= writer.complete for version in writer.open):
                yield log.name, f"writer {name} has a complete version open"
            for records in writer.open.values():
                batches += sum(record.batches for record in records.values())
                yield from _unsound_parts(log, name, records, replica.forest.tail(log))
        if (parts, batches) != (marks.parts, marks.batches):
            counted = f"{marks.parts} parts and {marks.batches} batches"
            yield log.name, f"its marks count {counted}, and there are {parts} and {batches}"


def _unsound_parts(
    log: Log, name: str, records: dict[int, PartRecord], tail: Position
) -> Iterator[tuple[str, str]]:
    for part, record in records.items():
        columns = {len(record.positions), len(record.generations), len(record.digests)}
        if columns != {record.batches} or not record.batches:
            yield (
                log.name,
                f"part {part} of writer {name} has no batch, or columns of two lengths",
            )
        # Positions only ever grow, so what was noted lies below the tail in any numbering.
        if not all(FORGOTTEN <= position < tail for position in record.positions):
            yield log.name, f"part {part} of writer {name} lies beyond the log"
        if any(generation > log.generation for generation in record.generations):
            yield log.name, f"part {part} of writer {name} is of a generation to come"


def _log(replica: Known, id: LogId, what: str) -> Log:
    check_format(replica.format, MARKS_FORMAT, _WHAT)
    return replica.forest.find_own(id, what)


def _known_in(log: Log, name: str) -> Iterator[tuple[Log, WriterRecord]]:
    """The log, and those whose records it has, also future ones: each that knows the writer."""
    holder: Log | None = log
    while holder is not None:
        writer = holder.marks.writers.get(name) if holder.marks is not None else None
        if writer is not None:
            yield holder, writer
        holder = holder.parent if holder.kind is Kind.CONTINUOUS else None


def _repeated(
    replica: Known, log: Log, holder: Log, mark: WriterMark, digest: int, top: int
) -> AlreadyAppended | Refused:
    """The holder has this batch. Its digest is known but for later batches of complete versions."""
    assert holder.marks is not None
    place = _place(holder.marks.writers[mark.writer], mark)
    if place is not None and not matches(place.digest, digest):
        return _differs(log, mark, "its records differ")
    where = None
    if place is not None and holder is log and place.position != FORGOTTEN:
        with suppress(ReceiptExpired):
            where = replica.whereabouts(Receipt(log.id, place.generation, place.position))
    if isinstance(where, Receipt):
        return AlreadyAppended(None, where, top)
    return AlreadyAppended(where, None, top)


def _place(writer: WriterRecord, mark: WriterMark) -> Place | None:
    record = writer.open.get(mark.version, {}).get(mark.part)
    if record is not None:
        number = mark.batch
        return Place(record.positions[number], record.generations[number], record.digests[number])
    done = writer.done[mark.part]
    return None if mark.batch else Place(done.position, done.generation, done.digest)


def _next_of(replica: Known, log: Log, mark: WriterMark) -> PartRecord:
    """The part that takes this batch as its next. Raises if it doesn't, or there is no room."""
    limits, marks = replica.limits, log.marks
    writer = marks.writers.get(mark.writer) if marks is not None else None
    record = writer.open.get(mark.version, {}).get(mark.part) if writer is not None else None
    expected = record.batches if record is not None else 0
    if mark.batch != expected:
        raise PartGap(log.name, mark.writer, mark.version, mark.part, expected, mark.batch)
    if marks is not None and marks.batches >= limits.writer_batches_max:
        what = f"batches of versions that aren't complete in {log.name}"
        raise TooMany(what, limits.writer_batches_max, "writer_batches_max")
    if record is not None:
        return record
    if marks is not None and marks.parts >= limits.writer_parts_max:
        what = f"parts of writers' versions in {log.name}"
        raise TooMany(what, limits.writer_parts_max, "writer_parts_max")
    parts = _writer(replica, log, mark.writer).open.setdefault(mark.version, {})
    assert log.marks is not None, "it has this writer"
    log.marks.parts += 1
    record = parts[mark.part] = PartRecord()
    return record


def _writer(replica: Known, log: Log, name: str) -> WriterRecord:
    """Of this log itself; a new one if there is room."""
    marks = log.marks or Marks()
    writer = marks.writers.get(name)
    if writer is None:
        limit = replica.limits.writers_per_log_max
        if len(marks.writers) >= limit:
            what = f"writers of {log.name}, which are remembered until they are released"
            raise TooMany(what, limit, "writers_per_log_max")
        writer = marks.writers[name] = WriterRecord(replica.at)
        log.marks = marks
    return writer


def _differs(log: Log, mark: WriterMark, reason: str) -> Refused:
    return Refused.of(
        PartDiffers(log.name, mark.writer, mark.version, mark.part, mark.batch, reason)
    )


def _begun_above(log: Log, holder: Log, mark: WriterMark) -> Refused:
    reason = (
        f"part {mark.part} was begun in {holder.name}, which {log.name} inherits from: write the "
        f"rest of the part there"
    )
    return Refused.of(WriterConflict(log.name, mark.writer, mark.version, reason))


def _state_of(name: str, writer: WriterRecord) -> WriterState:
    return WriterState(
        name,
        writer.complete,
        sorted(writer.batches_of(writer.complete).items()),
        [
            OpenVersion(version, sorted(writer.batches_of(version).items()))
            for version in sorted(writer.open)
        ],
        writer.at,
    )


def _difference(held: dict[int, int], parts: dict[int, int]) -> str:
    part = min(part for part in held.keys() | parts.keys() if held.get(part) != parts.get(part))
    return (
        f"part {part} has {held.get(part, 0)} batches in the log, and {parts.get(part, 0)} were "
        f"named: append all parts before the version is completed, and name them all"
    )


def _clash(ours: WriterRecord, theirs: WriterRecord) -> int | None:
    """A version of a writer for which a parent and its fork can't both answer."""
    for version, parts in theirs.open.items():
        if version <= ours.complete or parts.keys() & ours.open.get(version, {}).keys():
            return version
    if NO_VERSION < theirs.complete <= ours.complete:
        return theirs.complete
    below = [version for version in ours.open if version < theirs.complete]
    twice = theirs.done.keys() & ours.open.get(theirs.complete, {}).keys()
    return min(below) if below else theirs.complete if twice else None


def _moved_part(fork: Log, parent: Log, record: PartRecord) -> PartRecord:
    moved = PartRecord()
    columns = zip(record.positions, record.generations, record.digests, strict=True)
    for position, generation, digest in columns:
        moved.note(_moved(fork, position, generation), parent.generation, digest)
    return moved


def _moved(fork: Log, position: Position, generation: int) -> Position:
    """Where a record of a fork is as of its promotion, in the parent as in the fork."""
    if position == FORGOTTEN:
        return FORGOTTEN
    try:
        return replay(fork.shifts, generation, fork.generation, fork.name, position)
    except ReceiptExpired:
        return FORGOTTEN
