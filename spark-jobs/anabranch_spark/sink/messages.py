"""What tasks report to the driver, and what the driver makes of it."""

from collections.abc import Iterable

import msgspec

from anabranch.errors import BadRequest
from anabranch_spark.sink.identity import Version


class PartWritten(msgspec.Struct, frozen=True, kw_only=True):
    """One partition, as its task leaves it."""

    version: Version
    part: int
    batches: int = 0
    records: int = 0
    fork: str | None = None
    """The name of the fork that has the records; None if there are none, or they are in the log."""
    published: bool = False
    """The log had the version before; a task of a fork appended nothing then."""


class VersionWritten(msgspec.Struct, frozen=True):
    """All partitions of a batch."""

    version: Version
    parts: dict[int, int]
    """Each part that has records, with how many batches."""
    records: int
    fork: str | None
    published: bool
    """At least one task found the version in the log, so all of it is there."""


def merged(reported: Iterable[PartWritten | None], expected: int | None = None) -> VersionWritten:
    """Of all tasks of a batch. `expected`: the batch's number as Spark's driver says it.

    Refuses reports of which one is missing, or that are of different batches or forks: what they
    add up to isn't known then.
    """
    all_parts = list(reported)
    found = [each for each in all_parts if each is not None]
    if len(found) < len(all_parts) or not found:
        missing = len(all_parts) - len(found)
        raise _confused(f"{missing} of {len(all_parts)} tasks reported nothing")
    version = found[0].version
    if any(each.version != version for each in found):
        raise _confused("tasks report different writers or batches")
    if expected is not None and version.number != expected:
        raise _confused(f"tasks report batch {version.number}, and Spark commits {expected}")
    if len({each.part for each in found}) < len(found):
        raise _confused("two tasks report the same partition")
    forks = forks_of(found)
    if len(forks) > 1:
        raise _confused(f"tasks wrote into several forks ({', '.join(forks)})")
    return VersionWritten(
        version,
        {each.part: each.batches for each in found if each.batches},
        sum(each.records for each in found),
        forks[0] if forks else None,
        any(each.published for each in found),
    )


def forks_of(reported: Iterable[PartWritten | None]) -> list[str]:
    """The names of the forks that these tasks wrote into, in order; reports may be missing."""
    found = {each.fork for each in reported if each is not None and each.fork is not None}
    return sorted(found)


def _confused(reason: str) -> BadRequest:
    return BadRequest("commit a batch to a log", f"{reason}; nothing was committed")
