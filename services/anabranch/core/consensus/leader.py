"""The leader's side of the group's log: what each follower holds, and what is sent to it next.

Offers don't wait for the leader's own disk, nor for the answer to the one before, except to a
follower of which it isn't known where its log leaves the leader's.
"""

from collections import deque

from anabranch.core.consensus.group import Group
from anabranch.core.consensus.letters import Accepted, Entry, Install, Missed, Offer
from anabranch.core.quorum import MAJORITY
from anabranch.core.types import Nanoseconds

OFFER_BYTES = 1 << 20
OFFERS_MAX = 64
"""To one follower, that it hasn't on its disk; what comes meanwhile goes together in the next."""
OFFERS_BYTES = 8 << 20


class _Peer:
    """What the leader knows of one."""

    def __init__(self, node: str, following: int) -> None:
        self.node = node
        self.next = following
        """The first entry that it wasn't sent."""
        self.match = 0
        """Equal to the leader's up to here, and on its disk."""
        self.searching = True
        """Where does its log leave ours? One offer at a time."""
        self.waits = False
        """For the answer to that one."""
        self.installing: int | None = None
        """It was sent the state after this entry."""
        self.install_again: Nanoseconds = 0
        self.counts = False
        """It keeps what it promises: it is part of a majority."""
        self.fresh = False
        self.joins_at: int | None = None
        """A fresh one has a say when it holds this entry and a majority of the others does: so the
        leader is known to be the last one, and to hold all that was promised before.
        """
        self._flying: deque[tuple[int, int]] = deque()
        """Offers that aren't on its disk: their last entries, and their bytes."""
        self._flying_bytes = 0

    @property
    def has_room(self) -> bool:
        return len(self._flying) < OFFERS_MAX and self._flying_bytes < OFFERS_BYTES

    def sent(self, entries: list[Entry]) -> None:
        if self.searching:
            self.waits = True
        elif entries:
            self.next += len(entries)
            size = sum(len(entry.content) for entry in entries)
            self._flying.append((self.next - 1, size))
            self._flying_bytes += size

    def search(self, following: int) -> None:
        """Begin here to look for where the logs part."""
        self.searching, self.waits = True, False
        self.next = following
        self._flying.clear()
        self._flying_bytes = 0

    def accepted(self, durable: int, matched: int) -> None:
        self.match = max(self.match, durable)
        while self._flying and self._flying[0][0] <= self.match:
            self._flying_bytes -= self._flying.popleft()[1]
        if self.searching and matched >= self.next - 1:
            self.searching = self.waits = False
            self.installing = None
            self.next = matched + 1


class Leader:
    """Of one term's leader."""

    def __init__(self, group: Group, *, founding: bool) -> None:
        """`founding`: all members voted for it, so none can hold more than it does."""
        self._group = group
        self._disk = group.disk
        self._log = group.log
        self._founders = dict.fromkeys(group.others, founding)
        self._followers = {node: _Peer(node, self._log.last + 1) for node in group.others}
        if not self._disk.joined:
            self._disk.join()
        self.first = self.propose(group.no_op)

    def propose(self, content: bytes) -> int:
        return self._disk.append(Entry(self._disk.term, content))

    def accepted(self, sender: str, letter: Accepted) -> None:
        follower = self._followers[sender]
        self._note(follower, letter.fresh, letter.durable)
        follower.accepted(letter.durable, letter.matched)
        self.advance()

    def missed(self, sender: str, letter: Missed) -> None:
        follower = self._followers[sender]
        self._note(follower, letter.fresh, letter.hint)
        tried = follower.next - 1
        stale = letter.previous <= follower.match or (
            follower.searching and letter.previous != tried
        )
        if stale or follower.installing is not None:
            return
        follower.search(max(follower.match, min(letter.previous - 1, letter.hint)) + 1)

    def linked(self, node: str) -> None:
        """What was under way may be lost."""
        follower = self._followers[node]
        follower.installing = None
        follower.search(follower.match + 1)

    def advance(self) -> None:
        """What a majority has on disk is committed, if it is of this term or lies before such."""
        held = [self._disk.durable]
        held += [each.match if each.counts else 0 for each in self._followers.values()]
        agreed = MAJORITY.agreed(held)
        if agreed is not None and agreed >= self.first:
            self._group.commit(agreed)

    def supply(self) -> None:
        """Send to each what it hasn't been sent."""
        for follower in self._followers.values():
            if not follower.waits:
                self._supply(follower)

    def beat(self) -> None:
        """A sign of life for each, which also shows what was lost."""
        now = self._group.alarms.now
        for follower in self._followers.values():
            if follower.installing is None and follower.next <= self._log.base:
                # Forgotten while its answer was awaited.
                follower.waits = False
            elif follower.installing is not None and now >= follower.install_again:
                self._install(follower)
            self._offer(follower, max(follower.next, self._log.base + 1), [])

    def heir(self) -> str | None:
        """Who would lead best, once it has all that is committed."""
        reachable = self._group.reachable
        able = [each for each in self._followers.values() if each.node in reachable and each.counts]
        best = max(able, key=lambda each: each.match, default=None)
        return best.node if best is not None and best.match >= self._group.committed else None

    def _note(self, follower: _Peer, fresh: bool, held: int) -> None:
        """Is it to be believed what it says that it holds?"""
        follower.fresh = fresh
        if not fresh:
            follower.counts, follower.joins_at = True, None
            self._founders[follower.node] = False
            return
        # Its disk may be another than the one that was heard of before.
        follower.match = min(follower.match, held)
        follower.counts = self._founders[follower.node]
        if not follower.counts and follower.joins_at is None:
            follower.joins_at = self.propose(self._group.no_op)

    def _has_joined(self, follower: _Peer) -> bool:
        if not follower.fresh:
            return False
        at = self.first if follower.joins_at is None else follower.joins_at
        return follower.match >= at and (follower.counts or self._group.committed >= at)

    def _supply(self, follower: _Peer) -> None:
        if follower.next <= self._log.base:
            self._install(follower)
            return
        while follower.searching or (follower.next <= self._log.last and follower.has_room):
            entries = self._log.portion(follower.next, OFFER_BYTES)
            self._offer(follower, follower.next, entries)
            follower.sent(entries)
            if follower.waits:
                return

    def _offer(self, follower: _Peer, first: int, entries: list[Entry]) -> None:
        term = self._log.term_at(first - 1)
        joined = self._has_joined(follower)
        committed = self._group.committed
        offer = Offer(self._disk.term, first - 1, term, entries, committed, joined)
        self._group.send(follower.node, offer)

    def _install(self, follower: _Peer) -> None:
        """A later answer shows that it has it; else it is sent once more, after a while."""
        index = self._group.committed
        follower.search(index + 1)
        follower.waits, follower.installing = True, index
        follower.install_again = self._group.alarms.now + self._group.election_time
        image = self._group.take_image()
        term = self._log.term_at(index)
        self._group.send(follower.node, Install(self._disk.term, index, term, image))
