"""What an Iceberg table says of earlier exports: summaries of snapshots, branch by branch."""

from collections.abc import Iterator, Sequence

import msgspec

from anabranch.errors import BadRequest

PREFIX = "anabranch."
"""Of the properties that an export adds to a snapshot's summary."""
MAIN = "main"
STAGE = "anabranch-staging-"
"""Branches of this prefix are those of exports that are under way, or were killed."""

_CONTINUE = "continue an export"


class Snapshot(msgspec.Struct, frozen=True):
    """A snapshot of a table."""

    id: int
    parent: int | None
    summary: dict[str, str]


class Commit(msgspec.Struct, frozen=True):
    """What an export wrote of one range, as the summary of its snapshot says."""

    log: str
    log_id: int
    generation: int
    start: int
    end: int
    snapshot: int = 0

    def properties(self) -> dict[str, str]:
        """For the snapshot's summary."""
        fields = msgspec.structs.asdict(self)
        del fields["snapshot"]
        return {PREFIX + name.replace("_", "-"): str(value) for name, value in fields.items()}


class View(msgspec.Struct, frozen=True):
    """The log that is exported, and which logs its older records are of."""

    log: str
    log_id: int
    generation: int
    inherits: dict[int, int]
    """By id of an ancestor: the position below which the log has the ancestor's records."""


class Branches(msgspec.Struct, frozen=True):
    """A table's branches and snapshots."""

    heads: dict[str, int]
    snapshots: dict[int, Snapshot]

    def ancestry(self, branch: str) -> Iterator[Snapshot]:
        """Newest first, as far as snapshots haven't expired."""
        at = self.heads.get(branch)
        while at is not None and (found := self.snapshots.get(at)) is not None:
            yield found
            at = found.parent

    def commits(self, branch: str) -> Iterator[Commit]:
        """What exports wrote to a branch, newest first."""
        for snapshot in self.ancestry(branch):
            found = commit_of(snapshot)
            if found is not None:
                yield found

    def is_empty(self, branch: str) -> bool:
        """No snapshot of the branch has records."""
        head = next(self.ancestry(branch), None)
        return head is None or head.summary.get("total-records", "0") == "0"


def commit_of(snapshot: Snapshot) -> Commit | None:
    """The export that made a snapshot; BadRequest if its summary says only half of it."""
    given = {
        name.removeprefix(PREFIX).replace("-", "_"): value
        for name, value in snapshot.summary.items()
        if name.startswith(PREFIX)
    }
    if not given:
        return None
    try:
        return msgspec.convert({**given, "snapshot": snapshot.id}, Commit, strict=False)
    except msgspec.ValidationError as error:
        reason = f"the summary of snapshot {snapshot.id} can't be read: {error}"
        raise BadRequest(_CONTINUE, reason) from None


def next_position(branches: Branches, branch: str, view: View) -> int | None:
    """The first position that the branch doesn't have; None if no export wrote to it.

    BadRequest if its newest export isn't of this log, nor of what the log inherits.
    """
    newest = next(branches.commits(branch), None)
    if newest is None:
        return None
    if newest.log_id != view.log_id:
        if newest.end <= view.inherits.get(newest.log_id, -1):
            return newest.end
        reason = (
            f"its branch {branch} ends with {newest.log}[{newest.start}..{newest.end}), which "
            f"{view.log} doesn't have: choose another table or branch"
        )
        raise BadRequest(_CONTINUE, reason)
    if newest.generation > view.generation:
        reason = (
            f"its branch {branch} was exported from generation {newest.generation} of {view.log}, "
            f"and the service is at {view.generation}: was it restored from an older copy?"
        )
        raise BadRequest(_CONTINUE, reason)
    return newest.end


def base(branches: Branches, names: Sequence[str], view: View) -> Commit | None:
    """From which commit a fork's branch is made: the latest that has only what the fork inherits.

    `names` are the branches of the fork's ancestors, nearest first.
    """
    for name in names:
        for commit in branches.commits(name):
            if commit.end <= view.inherits.get(commit.log_id, -1):
                return commit
    return None
