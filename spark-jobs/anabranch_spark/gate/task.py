"""Which fork a gate judges: from its arguments, and from what the operator puts into a Job's
environment.
"""

from collections.abc import Mapping

from msgspec import Struct

from anabranch.errors import BadRequest

LOG, FORK, PARENT = "ANABRANCH_LOG", "ANABRANCH_FORK", "ANABRANCH_PARENT"
FORK_POINT, OWN_RECORDS = "ANABRANCH_FORK_POINT", "ANABRANCH_OWN_RECORDS"


class Task(Struct, frozen=True, kw_only=True):
    """What is to be judged, and what whoever asked for it knew of it."""

    log: str
    """The fork's name in the log service."""
    shown: str
    """What people call it: the Fork resource's name, if there is one."""
    parent: str | None = None
    fork_point: int | None = None
    own_records: int | None = None
    """How many it had when the gate was asked for. It never gets fewer."""


class Found(Struct, frozen=True, kw_only=True):
    """The fork as the service describes it, at one moment."""

    id: int
    parent: str | None
    fork_point: int
    start: int
    tail: int
    settled: int
    own_records: int


def task(given: Mapping[str, str | None], environment: Mapping[str, str]) -> Task:
    """An argument comes before its variable; an empty variable is none."""

    def word(name: str) -> str | None:
        return given.get(name) or environment.get(name) or None

    log = word(LOG)
    if log is None:
        raise BadRequest("judge a fork", f"neither --log names it nor {LOG}")
    return Task(
        log=log,
        shown=word(FORK) or log,
        parent=word(PARENT),
        fork_point=_count(FORK_POINT, word(FORK_POINT)),
        own_records=_count(OWN_RECORDS, word(OWN_RECORDS)),
    )


def _count(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise BadRequest("judge a fork", f"{name} is {text[:40]!r}, and must be a count")
    return int(text)


def objection(task: Task, found: Found) -> str | None:
    """Why this isn't the fork that was meant; None if it may be."""
    if found.parent is None:
        return f"{task.log} is no fork: it has no parent"
    if task.fork_point is not None and task.fork_point != found.fork_point:
        return (
            f"{task.log} was forked at {found.fork_point}, not at {task.fork_point}: another fork "
            "has this name now"
        )
    if task.own_records is not None and task.own_records > found.own_records:
        return (
            f"{task.log} has {found.own_records} records of its own, and had {task.own_records}: "
            "another fork has this name now"
        )
    return None
