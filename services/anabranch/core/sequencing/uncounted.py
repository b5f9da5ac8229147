"""What is ordered and was counted against the log's quota by no member, or by one of them alone.

A client sends each append to all members, and the server in front of each counts it. A client that
sends to one member alone is counted there, and its append is ordered all the same; one that
announces less than it sends to a shard is counted too little everywhere. The leader finds out, and
all members count it then: whoever is over the quota takes nothing until that is made up for. So
the log has its quota over any longer time, whatever clients do.
"""

from collections.abc import Callable

from anabranch.core.sequencing.member import Member
from anabranch.core.sequencing.protocol.letters import Uncounted as UncountedLetter


class Uncounted:
    def __init__(self, member: Member) -> None:
        self.on_uncounted: Callable[[int, int], None] = lambda size, records: None
        self._member = member

    def add(self, size: int, records: int, *, counted_by: str = "") -> None:
        """At the leader. `counted_by`: the member that has counted it already."""
        assert size >= 0 <= records, "what was counted too much isn't given back"
        member = self._member
        if member.view is None or not (size or records):
            return
        self.on_uncounted(size, records)
        for node in member.view.nodes:
            if node not in (member.config.node, counted_by):
                member.send(node, UncountedLetter(member.number, size, records))

    def received(self, sender: str, letter: UncountedLetter) -> None:
        """A letter that is lost is no matter: most aren't."""
        view = self._member.view
        if view is not None and letter.view == view.number and sender == view.leader:
            self.on_uncounted(letter.bytes, letter.records)
