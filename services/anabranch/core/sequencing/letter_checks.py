"""Which letters a sequencing replica takes, and from whom (docs/decisions/0080).

Whoever shows the token of peers can send any letter. One that its sender may not send, or that says
what can't be, is dropped and counted by the replica's owner.
"""

from collections.abc import Collection

from anabranch.core.errors import AnabranchError
from anabranch.core.records import batch as batches
from anabranch.core.sequencing.controller.names import is_controller
from anabranch.core.sequencing.member import Member
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.letters import (
    AskState,
    Drop,
    Dropped,
    Prepare,
    Seal,
    SequencingLetter,
    Start,
    Strays,
    Uncounted,
    Void,
)
from anabranch.core.sequencing.state.ring import Entry


class LetterChecks:
    """Of one replica. Letters of an earlier or later view are late or early, and no faults: the
    replica ignores them.
    """

    def __init__(self, member: Member) -> None:
        self._member = member
        self._sequencers: Collection[str] = ()
        """Of the latest configuration that is known here; empty before the first."""

    def configured(self, sequencers: Collection[str]) -> None:
        self._sequencers = frozenset(sequencers)

    def is_controller(self, sender: str) -> bool:
        known = self._member.config.controllers
        return is_controller(sender, controllers=known, sequencers=self._sequencers)

    def takes(self, sender: str, letter: SequencingLetter) -> bool:
        """Others are a fault of the sender's, or it isn't who it seems to be."""
        match letter:
            case Start():
                return self.is_controller(sender) and self._may_start(letter)
            case Seal() | Prepare():
                return self.is_controller(sender)
            case AskState():
                return self._may_copy(sender)
            case Drop():
                return self._is_leader(sender, letter.view) and _is_sound(letter)
            case Void() | Uncounted():
                return self._is_leader(sender, letter.view)
            case Dropped():
                return self._is_member(sender, letter.view) and self._may_be_dropped(letter)
            case Strays():
                return self._is_member(sender, letter.view) and all(map(self._fits, letter.entries))
            case _:  # `Transfer` knows whose state it copies; others are for controllers
                return True

    def _may_copy(self, sender: str) -> bool:
        """Also a node that joins the log with the next view."""
        view = self._member.view
        known = sender in self._sequencers or (view is not None and sender in view.nodes)
        return known or not self._sequencers

    def _is_leader(self, sender: str, number: int) -> bool:
        view = self._member.view
        return view is None or view.number != number or sender == view.leader

    def _is_member(self, sender: str, number: int) -> bool:
        view = self._member.view
        return view is None or view.number != number or sender in view.nodes

    def _may_start(self, letter: Start) -> bool:
        member, view = self._member, letter.view
        prepared = member.next_state if member.prepared == view.ballot else None
        return view.leader in view.nodes and (prepared is None or prepared.ordered == view.base)

    def _may_be_dropped(self, letter: Dropped) -> bool:
        """Only the leader orders."""
        member = self._member
        late = letter.view != member.number or not member.leads
        return late or letter.upto <= member.ordered

    def _fits(self, entry: Entry) -> bool:
        """Is the entry one that a client could have made?"""
        member = self._member
        if member.config.data_on_shards:
            return bool(entry.shard) and not entry.batch
        try:
            header = batches.check(entry.batch, member.limits, "an append of another member")
        except AnabranchError:
            return False
        said = entry.id, entry.count, entry.size
        return said == (AppendId.of(header), header.count, len(entry.batch))


def _is_sound(drop: Drop) -> bool:
    """As the leader makes them: each append has a position among those that the drop orders."""
    ids, positions = drop.ids, drop.positions
    if len(positions) != len(ids) or len(drop.shards) not in (0, len(ids)):
        return False
    if not positions:
        return drop.first <= drop.upto
    return drop.first <= min(positions) and max(positions) < drop.upto
