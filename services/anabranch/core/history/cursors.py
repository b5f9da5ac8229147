"""Cursors: each shows a position that was committed, and none that was overwritten before.

What was committed to a fork may also be seen in the log that the fork was promoted into, until
something is committed there; in a log that may be promoted itself, also after that.
"""

from anabranch.core.history.calls import Fate, MarkCursor, Promote, ReadCursor
from anabranch.core.history.family import Family, Latest, Member, Violation
from anabranch.core.types import LogId

Marks = dict[tuple[LogId, str], list[MarkCursor]]


def cursor_violations(family: Family) -> list[Violation]:
    own: Marks = {}
    for call in family.history.calls:
        if isinstance(call, MarkCursor) and call.possible:
            own.setdefault((call.log, call.name), []).append(call)
    cursors = _Cursors(family, own)
    found: list[Violation] = []
    for call in family.history.calls:
        if isinstance(call, ReadCursor) and call.ok and not cursors.explain(call):
            name = family.name(call.log)
            says = f"cursor {call.name} of {name} gave {call.position}, which isn't its latest"
            found.append(Violation("3 cursor", says))
    return found


class _Cursors:
    def __init__(self, family: Family, own: Marks) -> None:
        self._family = family
        self._own = own
        self._brought = _brought(family, own)
        self._over = {
            key: Latest([(mark.returned, mark.invoked) for mark in of if mark.ok])
            for key, of in own.items()
        }

    def explain(self, call: ReadCursor) -> bool:
        """May this be what it read?"""
        key = (call.log, call.name)
        over = self._over[key].before(call.invoked) if key in self._over else None
        brought = self._brought.get(key, [])
        if call.position is None:
            return over is None and not any(self._came(mark, call) for mark in brought)
        for mark in self._own.get(key, ()):
            if mark.position == call.position and (over is None or mark.returned >= over):
                return True
        if over is not None and not self._family.members[call.log].promotable:
            return False
        return any(mark.position == call.position for mark in brought)

    def _came(self, mark: MarkCursor, call: ReadCursor) -> bool:
        """Was it certainly there before, by a promotion straight into the log that was read?"""
        fork = self._family.members[mark.log]
        return (
            mark.ok
            and fork.parent == call.log
            and any(
                isinstance(each, Promote)
                and each.ok
                and mark.returned < each.invoked
                and each.returned < call.invoked
                for each in fork.promotes
            )
        )


def _brought(family: Family, own: Marks) -> Marks:
    """What was committed to forks, by the logs that they were promoted into."""
    found: Marks = {}
    for (log, name), marks in own.items():
        member: Member | None = family.members.get(log)
        while member is not None and member.fate is Fate.PROMOTED:
            assert member.parent is not None, "what was promoted is a fork"
            found.setdefault((member.parent, name), []).extend(marks)
            member = family.members.get(member.parent)
    return found
