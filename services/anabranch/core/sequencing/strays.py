"""Appends that only some members have, because their client left before it had sent them to all.

The leader orders its own ring, so what it doesn't have would stay in the others' rings until the
view ends, and fill them. A member shows the leader what is in its ring for long. The leader takes
it as if its client had sent it: it wasn't acknowledged, so it may have any place from now on.
"""

from itertools import islice

from anabranch.core.sequencing.appends import Appends
from anabranch.core.sequencing.ids import AppendId
from anabranch.core.sequencing.letters import Strays as StraysLetter
from anabranch.core.sequencing.letters import Void
from anabranch.core.sequencing.member import Member
from anabranch.core.sequencing.state.ring import Entry

_COUNT_MAX = 1_000
_BYTES_MAX = 1 << 20
"""What is shown at once."""


class Strays:
    def __init__(self, member: Member, appends: Appends) -> None:
        self._member = member
        self._appends = appends
        self._seen: set[AppendId] = set()
        """The oldest appends of the ring at the last look."""

    def look(self) -> None:
        """Show the leader what was here at the last look already."""
        member = self._member
        oldest = list(islice(member.state.ring, _COUNT_MAX))
        strays = [entry for entry in oldest if entry.id in self._seen]
        self._seen = {entry.id for entry in oldest}
        if member.view is None or not member.active or member.leads or not strays:
            return
        shown: list[Entry] = []
        room = _BYTES_MAX
        while strays and (room > 0 or not shown):
            room -= strays[0].cost
            shown.append(strays.pop(0))
        letter = StraysLetter(view=member.number, ordered=member.state.ordered, entries=shown)
        member.send(member.view.leader, letter)

    def received(self, sender: str, letter: StraysLetter) -> None:
        """At the leader. What it never takes is void, but only if the other member has dropped all
        that was ordered: else the leader may know it because it is ordered.
        """
        member = self._member
        if not member.leads or letter.view != member.number:
            return
        never = [entry.id for entry in letter.entries if not self._appends.adopt(entry)]
        if never and letter.ordered == member.state.ordered:
            member.send(sender, Void(letter.view, never))

    def void(self, sender: str, letter: Void) -> None:
        member = self._member
        if member.view is None or not member.takes or letter.view != member.number:
            return
        ids = [id for id in letter.ids if id in member.state.ring]
        if ids and sender == member.view.leader and not member.leads:
            member.void(ids)
            self._appends.retry()
