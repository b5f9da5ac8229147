"""What a promotion makes of writer marks: the parent answers for the fork's (decision 76)."""

from msgspec.structs import replace

from anabranch.core.bolt.logs.forest import Log
from anabranch.core.bolt.logs.marks import FORGOTTEN, Marks, PartRecord, WriterRecord
from anabranch.core.bolt.protocol.marks import NO_VERSION
from anabranch.core.bolt.state.replica import Replica, replay
from anabranch.core.errors import ReceiptExpired, TooMany, WriterConflict
from anabranch.core.types import Position


def check(replica: Replica, parent: Log, fork: Log) -> None:
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


def merge(replica: Replica, parent: Log, fork: Log) -> None:
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
