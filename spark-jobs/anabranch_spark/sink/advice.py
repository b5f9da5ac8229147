"""What a Spark user can do about a refused append, said where Spark shows the error."""

from collections.abc import Generator
from contextlib import contextmanager

import anabranch
from anabranch.errors import PartDiffers, RecordTooLarge, WriterConflict
from anabranch_spark.sink.identity import Version
from anabranch_spark.sink.rows import Rows

_DIFFERS = (
    "Spark computed this partition anew and got other records, or the same in another order. That "
    "is so if the frame has a shuffle without a sort (repartition, join, aggregate), reads a "
    "source that has changed, uses random numbers or the present time, or runs with another number "
    "of cores or other file and partition sizes than before. Make it deterministic, or write with "
    "mode=fork, in which only retries of single tasks have to agree"
)
_CONFLICT = (
    "The batch was begun with other partitions than now. Run the query with the settings that it "
    "had (cores, file and partition sizes), and in the same mode"
)


@contextmanager
def explained(rows: Rows | None = None) -> Generator[None]:
    """Give errors of the service a note on what they mean in Spark. `rows`: what is appended."""
    try:
        yield
    except RecordTooLarge as error:
        if rows is not None:
            error.add_note(f"The record is {rows.largest}")
        raise
    except PartDiffers as error:
        error.add_note(_DIFFERS)
        raise
    except WriterConflict as error:
        error.add_note(_CONFLICT)
        raise


def check_current(log: anabranch.Log, version: Version, complete: int) -> None:
    """Refuse a batch that lies below one that the log has complete.

    The log would answer as if it had these records. It has others, if the query's checkpoint was
    deleted or replaced by an older copy, or if another program uses the writer's name.
    """
    if complete > version.number:
        raise WriterConflict(
            log.name,
            version.writer,
            version.number,
            f"version {complete} is complete already. A batch write needs a version above it. A "
            "stream's checkpoint is older than what it has written, or another query uses the "
            "writer's name: go on from the checkpoint that belongs to the log, or give option "
            "writer another name",
        )
