"""mode=direct: every partition is appended to the log itself, under the writer mark.

A task that is tried again goes on where the one before it stopped, so its records must come again
as they came first. Nothing is ever taken back: an aborted batch is finished when it is run again.
"""

import anabranch
from anabranch_spark.sink.advice import check_current, explained
from anabranch_spark.sink.identity import Version
from anabranch_spark.sink.messages import PartWritten, VersionWritten
from anabranch_spark.sink.rows import Rows


def append(log: anabranch.Log, rows: Rows, *, version: Version, part: int) -> PartWritten:
    """Append one partition, or what of it the log doesn't have. Run by a task."""
    with explained(rows):
        writer = log.writer(version.writer)
        done = writer.append(rows, version=version.number, part=part)
    check_current(log, version, done.complete)
    return PartWritten(
        version=version,
        part=part,
        batches=done.batches,
        records=done.records,
        published=done.complete == version.number,
    )


def commit(log: anabranch.Log, written: VersionWritten) -> None:
    """Close the version, so that it takes nothing more; again, that changes nothing."""
    with explained():
        log.writer(written.version.writer).complete(written.version.number, written.parts)
