"""Appends that only some members have, because their client left before it had sent them to all.

The leader orders its own ring, so what it doesn't have would stay in the others' rings until the
view ends, and fill them. A member shows the leader what is in its ring for long. The leader takes
it as if its client had sent it: it wasn't acknowledged, so it may have any place from now on.
"""

from collections import deque
from itertools import islice

from anabranch.core.sequencing.appends import Appends
from anabranch.core.sequencing.member import Member
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.letters import Strays as StraysLetter
from anabranch.core.sequencing.protocol.letters import Void
from anabranch.core.sequencing.state.ring import Entry
from anabranch.core.sequencing.uncounted import Uncounted

_LOOK_MAX = 50_000
"""So many of the ring's oldest appends are looked at."""
_COUNT_MAX = 1_000
_BYTES_MAX = 1 << 20
"""What is shown at once. The rest follows when that is ordered: a client that sends to one member
alone could otherwise keep the ring full for minutes, and everybody's appends waiting.
"""


class Strays:
    def __init__(self, member: Member, appends: Appends, uncounted: Uncounted) -> None:
        self._member = member
        self._appends = appends
        self._uncounted = uncounted
        self._seen: set[AppendId] = set()
        """The oldest appends of the ring at the last look."""
        self._strays: deque[Entry] = deque()
        """Found by the last look, and not shown yet."""
        self._shown: list[AppendId] = []
        """In the last letter, and in the ring for all that is known."""

    def look(self) -> None:
        """Show the leader what was here at the last look already."""
        oldest = list(islice(self._member.state.ring, _LOOK_MAX))
        self._strays = deque(entry for entry in oldest if entry.id in self._seen)
        self._seen = {entry.id for entry in oldest}
        self._show()

    def left(self) -> None:
        """Appends have left the ring."""
        ring, shown = self._member.state.ring, self._shown
        while shown and shown[-1] not in ring:
            shown.pop()
        if not shown and self._strays:
            self._show()

    def _show(self) -> None:
        """The next ones that are still here."""
        member, strays = self._member, self._strays
        if member.view is None or not member.active or member.leads:
            strays.clear()
        shown: list[Entry] = []
        room = _BYTES_MAX
        while strays and room > 0 and len(shown) < _COUNT_MAX:
            entry = strays.popleft()
            if entry.id in member.state.ring:
                room -= entry.cost
                shown.append(entry)
        self._shown = [entry.id for entry in shown]
        assert shown or not strays, "one is shown at least, if there is one"
        if shown and member.view is not None:
            ordered = member.state.ordered
            letter = StraysLetter(view=member.number, ordered=ordered, entries=shown)
            member.send(member.view.leader, letter)

    def received(self, sender: str, letter: StraysLetter) -> None:
        """At the leader. What it never takes is void, but only if the other member has dropped all
        that was ordered: else the leader may know it because it is ordered.
        """
        member = self._member
        assert sender != member.config.node, "a member shows its own to another"
        if not member.leads or letter.view != member.number:
            return
        taken: list[Entry] = []
        never = [entry.id for entry in letter.entries if not self._appends.adopt(entry, taken)]
        size, records = sum(each.size for each in taken), sum(each.count for each in taken)
        self._uncounted.add(size, records, counted_by=sender)
        if never and letter.ordered == member.state.ordered:
            member.send(sender, Void(letter.view, never))

    def void(self, sender: str, letter: Void) -> None:
        member = self._member
        if member.view is None or not member.takes or letter.view != member.number:
            return
        ids = [id for id in letter.ids if id in member.state.ring]
        if ids and sender == member.view.leader and not member.leads:
            member.void(ids)
            self.left()
            self._appends.retry()
