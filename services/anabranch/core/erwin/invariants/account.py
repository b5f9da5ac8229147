"""What clients did and were told, held against what became of it: E1, E2, E7, E9 and E10."""

from collections.abc import Iterator
from enum import Enum

import msgspec

from anabranch.core.erwin.invariants.witness import Witness
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.types import NEVER, Position


class Outcome(Enum):
    """What a client knows of its append."""

    OPEN = "open"
    """Nothing: it may be in the log, now or later."""
    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    """It will never be in the log."""


class AppendCall(msgspec.Struct, kw_only=True):
    """One append. Times are stamps, each another than all others."""

    id: AppendId
    count: int
    batch: bytes
    invoked: int
    returned: int = 0
    view: int = 0
    """The one that acknowledged it."""
    outcome: Outcome = Outcome.OPEN
    receipt: Position | None = None
    """The first position, as the leader has told it."""
    redeemed: int = 0
    """When it was told so."""


class TailCall(msgspec.Struct):
    """One question for the durable tail."""

    invoked: int
    tail: Position
    returned: int = NEVER


class Account(msgspec.Struct):
    """Of all clients of a run."""

    appends: list[AppendCall] = []
    tails: list[TailCall] = []
    faults: list[str] = []
    """What clients noticed themselves."""

    def judge(self, witness: Witness) -> Iterator[str]:
        """What is wrong, after all that was acknowledged had the time to become stable."""
        order, contents = witness.order, witness.reads.contents
        acknowledged = [each for each in self.appends if each.outcome is Outcome.ACKNOWLEDGED]
        lost = max(witness.lost, default=-1)
        kept = [each for each in acknowledged if each.id in order.final or each.view > lost]
        for each in self.appends:
            row, content = order.final.get(each.id), contents.get(each.id)
            if row is not None and row.count != each.count:
                yield f"E7: {row} has another number of records than {each.count}"
            if content and content != each.batch:
                yield f"E7: {each.id} is read as another batch than it is"
            if content and each.outcome is Outcome.REFUSED:
                yield f"E9: {each.id} was refused, and is in the log"
            if each.receipt is not None and (row is None or row.first != each.receipt):
                yield f"E7: {each.id} has the receipt {each.receipt} and the row {row}"
        for each in kept:
            if each.id not in order.final:
                yield f"E1: {each.id} was acknowledged in view {each.view}, and isn't in the log"
            if contents.get(each.id) == b"":
                yield f"E9: {each.id} was acknowledged, and is a no-op"
        yield from self._real_time(witness)
        yield from self._tails(kept)

    def _real_time(self, witness: Witness) -> Iterator[str]:
        """E2: an append that began after another was acknowledged is behind it."""
        final = witness.order.final
        placed = [(final[each.id].first, each) for each in self.appends if each.id in final]
        earliest: AppendCall | None = None
        """Of those behind: whose acknowledgement came first."""
        for first, each in sorted(placed, key=lambda place: place[0], reverse=True):
            if earliest is not None and earliest.returned < each.invoked:
                yield f"E2: {each.id} at {first} began after {earliest.id} was acknowledged"
            if each.returned and (earliest is None or each.returned < earliest.returned):
                earliest = each

    def _tails(self, kept: list[AppendCall]) -> Iterator[str]:
        """E10: a tail counts all that was acknowledged before anybody asked for it."""
        returned = sorted((each.returned, each.count) for each in kept)
        records, at = 0, 0
        for call in sorted(self.tails, key=lambda call: call.invoked):
            while at < len(returned) and returned[at][0] < call.invoked:
                records += returned[at][1]
                at += 1
            if call.tail < records:
                yield f"E10: the tail was {call.tail}, {records} records were acknowledged by then"
