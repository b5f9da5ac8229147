"""The leader's drops: what is ordered leaves all rings, and then is stable (LazyLog, 4.3)."""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from anabranch.core.sequencing.member import Member
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.letters import Drop, Dropped
from anabranch.core.sequencing.state.entries import Ordered
from anabranch.core.sequencing.state.ring import Entry
from anabranch.core.types import Position

_SILENT_MAX = 2
"""Looks until a member that owes an answer is asked again."""


class Follower:
    """Another member, as the leader knows it."""

    def __init__(self, node: str, base: Position) -> None:
        self.node = node
        self.dropped = base
        """It has journaled that what lies below is ordered."""
        self.sent = base
        """The end of the last drop that was sent."""
        self.silent = 0
        """Looks of `retry` that found it owing an answer."""


class Drops:
    """Exists while this member leads and orders. A drop is sent again until it is answered."""

    def __init__(
        self, member: Member, stored: Iterable[Entry], on_stable: Callable[[Position], None]
    ) -> None:
        assert member.view is not None
        assert member.leads
        self.stable = member.view.base
        """More may be stable in truth while `awaited` isn't empty."""
        self._member = member
        self._view = member.view
        self._on_stable = on_stable
        self._since = member.alarms.now
        self._ready = deque(stored)
        """Entries of the ring that are stored, and not taken."""
        self._followers = {
            node: Follower(node, member.view.base)
            for node in member.view.nodes
            if node != member.config.node
        }
        self.awaited = set(self._followers) if member.begun > 1 else set[str]()
        """Members that haven't told this leader what they have dropped since it was restarted. The
        earlier start may have shown as stable what they had said by then.
        """
        self._drops = [self._drop(each) for each in member.unstable]
        """In this member's journal, and not stable yet."""
        self._unstable = sum(len(drop.ids) for drop in self._drops)

    def start(self) -> None:
        """Ask the others what they have dropped: an earlier start of this leader may have told
        them more than the base of the view says.
        """
        first = self._drops[0].first if self._drops else self._member.ordered
        for follower in self._followers.values():
            follower.sent = first
            self._member.send(follower.node, self._probe(follower))
        self._count()

    def added(self, entry: Entry) -> None:
        """It is stored."""
        self._ready.append(entry)

    def take(self, *, bytes_max: int, count_max: int) -> list[Entry]:
        """At least one entry, if there is one and the other members have kept up."""
        taken: list[Entry] = []
        if self._unstable >= self._member.limits.ring_unstable_max:
            return taken
        ready = self._ready
        while ready and len(taken) < count_max:
            entry = ready[0]
            bytes_max -= entry.cost
            if taken and bytes_max < 0:
                break
            assert entry.id in self._member.state.ring, "only the leader orders"
            taken.append(ready.popleft())
        return taken

    def order(self, ids: Sequence[AppendId], positions: Sequence[Position], upto: Position) -> None:
        member = self._member
        first = member.state.ordered
        assert first <= upto, "what is ordered stays ordered"
        assert not ids or first <= positions[0] < upto
        if first == upto:
            return
        known = member.state.known
        shards = [known.shard(id) for id in ids]
        assert member.config.data_on_shards or not any(shards), "batches come with their ids"
        ordered = Ordered(
            first=first,
            upto=upto,
            ids=list(ids),
            positions=list(positions),
            forgotten=known.due(member.alarms.now, self._since),
            stable=self.stable,
            shards=shards if any(shards) else [],
        )
        member.order(ordered)
        self._unstable += len(ids)

    def stored(self, ordered: Ordered) -> None:
        """It is in this member's journal, so the others may follow. If one of them were ahead, this
        leader could be restarted behind it and have shards replace what it had dropped.
        """
        self._drops.append(self._drop(ordered))
        self._count()

    def dropped(self, sender: str, letter: Dropped) -> None:
        follower = self._followers.get(sender)
        if follower is None or letter.view != self._view.number:
            return
        if follower.silent >= _SILENT_MAX:
            # It was asked again: what was sent after the drop that it answers may be lost.
            follower.sent = follower.dropped
        follower.silent = 0
        self.awaited.discard(sender)
        assert letter.upto <= self._member.ordered, "only the leader orders"
        follower.dropped = max(follower.dropped, letter.upto)
        follower.sent = max(follower.sent, follower.dropped)
        self._count()

    def linked(self, node: str) -> None:
        """Letters under way on an earlier connection may be lost."""
        follower = self._followers.get(node)
        if follower is not None:
            follower.sent = follower.dropped

    def retry(self) -> None:
        """Send the first drop again to each member that owes an answer for a while."""
        for follower in self._followers.values():
            follower.silent += 1
            if follower.dropped >= follower.sent:
                follower.silent = 0
            elif follower.silent >= _SILENT_MAX:
                self._member.send(follower.node, self._probe(follower))

    def settle(self) -> None:
        """Send what was stored in this step."""
        last = self._drops[-1].upto if self._drops else self.stable
        for follower in self._followers.values():
            if follower.sent < last:
                for drop in self._drops[self._after(follower.sent) :]:
                    self._member.send(follower.node, drop)
                follower.sent = last

    def _drop(self, ordered: Ordered) -> Drop:
        return Drop(
            view=self._view.number,
            first=ordered.first,
            upto=ordered.upto,
            ids=ordered.ids,
            positions=ordered.positions,
            forgotten=ordered.forgotten,
            shards=ordered.shards,
        )

    def _probe(self, follower: Follower) -> Drop:
        """The next drop that this member may lack, or one of nothing: it is answered too."""
        after = self._after(follower.dropped)
        if after < len(self._drops):
            return self._drops[after]
        at = follower.dropped
        return Drop(view=self._view.number, first=at, upto=at, ids=[], positions=[])

    def _after(self, position: Position) -> int:
        """The first drop that ends beyond this position."""
        return bisect_right(self._drops, position, key=lambda drop: drop.upto)

    def _count(self) -> None:
        """What all members have journaled as ordered is stable: every later view begins there, or
        beyond.
        """
        member = self._member
        dropped = [follower.dropped for follower in self._followers.values()]
        stable = min([member.ordered, *dropped])
        if stable <= self.stable:
            return
        self.stable = stable
        count = self._after(stable)
        self._unstable -= sum(len(drop.ids) for drop in self._drops[:count])
        del self._drops[:count]
        member.release(stable)
        self._on_stable(stable)
