"""Writers of batch writes that nobody can try again, because they have no name that anybody knows.

A log remembers a writer until it is released, and takes only so many. The writer of such a write is
of use for as long as a task of it may still run somewhere, perhaps on an executor that Spark has
given up for lost. So a write that is done releases those before it, and not itself (decision 93).
"""

from collections.abc import Sequence

import anabranch
from anabranch import WriterState
from anabranch_spark.sink.identity import Version
from anabranch_spark.sink.options import UNNAMED

TASK_MS = 3_600_000
"""No task of a write that was completed so long ago is still running."""
BEGUN_MS = 24 * 3_600_000
"""No write that has appended nothing for so long goes on: its driver has died."""
KEPT_MAX = 20
PARTS_MAX = 5_000
"""Of writes that are completed a log keeps no more, however young they are: it has room for a
thousand writers and 20,000 of their parts, named ones among them.
"""


def is_unnamed(version: Version) -> bool:
    return version.writer.startswith(UNNAMED)


def to_release(known: Sequence[WriterState], own: str) -> list[str]:
    """Names of writers that are of no use any more, by the times that the service has noted."""
    others = [each for each in known if each.writer.startswith(UNNAMED) and each.writer != own]
    now = max((each.at for each in known), default=0)
    found = [each.writer for each in others if each.complete < 0 and now - each.at >= BEGUN_MS]
    done = sorted((each for each in others if each.complete >= 0), key=lambda each: -each.at)
    parts = 0
    for nth, each in enumerate(done):
        parts += len(each.parts)
        if nth >= KEPT_MAX or parts > PARTS_MAX or now - each.at >= TASK_MS:
            found.append(each.writer)
    return found


def release_others(log: anabranch.Log, version: Version) -> None:
    """After a write that is done. Who may only append may not list others."""
    for name in to_release(log.writers(), version.writer):
        log.writer(name).release()


def release_failed(log: anabranch.Log, version: Version) -> None:
    """After a write that has failed, unless it only seemed so. No task goes on where it stopped: a
    later one of the same write is told of a gap, or appends what nobody promised to append once.
    """
    writer = log.writer(version.writer)
    state = writer.state()
    if state is not None and state.complete < 0:
        writer.release()
