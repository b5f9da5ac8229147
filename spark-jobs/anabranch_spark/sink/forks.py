"""mode=fork: tasks append into a promotable fork, and the driver's commit promotes it.

Each execution of a batch has a fork of its own. What an execution that died has left is never
continued: the next one's promotion squashes it, or its time to live does. So no two executions have
to agree on order or partitions, and whether a batch is in the log is said by the log alone, by its
writer marks, which a promotion brings there in the same step as the records.
"""

from collections.abc import Iterable
from contextlib import suppress
from itertools import chain

import anabranch
from anabranch.errors import Promoted, Squashed, UnknownLog
from anabranch_spark.sink.advice import check_current, explained
from anabranch_spark.sink.identity import Version, fork_name, fork_owner
from anabranch_spark.sink.messages import PartWritten, VersionWritten, forks_of
from anabranch_spark.sink.rows import Rows

_GONE = (Promoted, Squashed, UnknownLog)
"""What a fork's name leads to when the fork is decided; UnknownLog when that is long ago. No other
fork ever has the name.
"""


def append(
    log: anabranch.Log,
    rows: Rows,
    *,
    version: Version,
    part: int,
    execution: str,
    ttl_s: int,
) -> PartWritten:
    """Append one partition to the fork of this execution, unless the log has the version. Run by a
    task.

    The first task that has a record creates the fork. The service gives an owner its fork however
    often it is asked to create it, so tasks that come at once get the same.
    """
    if is_published(log, version):
        return PartWritten(version=version, part=part, published=True)
    records = iter(rows)
    first = next(records, None)
    if first is None:
        return PartWritten(version=version, part=part)
    fork = log.cfork(
        fork_name(version, execution),
        promotable=True,
        ttl=ttl_s,
        owner=fork_owner(version, execution),
        why=f"version {version.number}, until it is committed",
    )
    with explained(rows):
        writer = fork.writer(version.writer)
        done = writer.append(chain([first], records), version=version.number, part=part)
    check_current(log, version, done.complete)
    return PartWritten(
        version=version,
        part=part,
        batches=done.batches,
        records=done.records,
        fork=fork.name,
        published=done.complete == version.number,
    )


def commit(service: anabranch.Service, log: anabranch.Log, written: VersionWritten) -> None:
    """Promote the batch's fork with exactly what the tasks reported, unless the log has the batch.

    The version is completed in the fork first, so that the promotion brings it to the log complete:
    there is no moment at which the log has the records and doesn't know that it does.
    """
    version = written.version
    if written.published:
        _squash(service, written.fork)
        return
    if written.fork is None:
        with explained():
            log.writer(version.writer).complete(version.number, {})
        return
    try:
        fork = service.log(written.fork, engine="bolt")
        with explained():
            fork.writer(version.writer).complete(version.number, written.parts)
            fork.promote(expect_own=written.records)
    except _GONE:
        # Promoted by this commit's first call, or squashed by the promotion of another execution.
        if not is_published(log, version):
            raise


def abort(service: anabranch.Service, reported: Iterable[PartWritten | None]) -> None:
    """Squash the fork of an execution that has failed. A fork that a commit has published, even one
    whose answer was lost, is refused to be squashed: the service decides both in one order.
    """
    for fork in forks_of(reported):
        _squash(service, fork)


def is_published(log: anabranch.Log, version: Version) -> bool:
    """Whether the log has this version. Refuses one that lies below the latest complete one."""
    state = log.writer(version.writer).state()
    complete = -1 if state is None else state.complete
    check_current(log, version, complete)
    return complete == version.number


def _squash(service: anabranch.Service, fork: str | None) -> None:
    if fork is None:
        return
    with suppress(*_GONE):
        service.log(fork, engine="bolt").squash()
