"""A leader's part: what each follower holds, and what is sent to it next.

Offers don't wait for the leader's own disk, nor for the answer to the offer before, except while
the leader searches for the place where a follower's log leaves its own.
"""

from collections import deque
from collections.abc import Set as AbstractSet

from anabranch.core.consensus.group import Group
from anabranch.core.consensus.letters import Accepted, Entry, Install, Missed, Offer
from anabranch.core.quorum import agreed
from anabranch.core.types import Nanoseconds

OFFER_BYTES = 1 << 20
OFFERS_MAX = 64
"""Offers to one follower that it has not acknowledged; later entries wait, and go together."""
OFFERS_BYTES = 8 << 20


class _Peer:
    """A follower, as the leader knows it."""

    def __init__(self, node: str, following: int) -> None:
        self.node = node
        self.next = following
        """The first entry that was not sent to it."""
        self.match = 0
        """Up to here its log equals the leader's, and is on its disk."""
        self.searching = True
        """The place where its log leaves the leader's is unknown: one offer at a time."""
        self.waits = False
        """The answer to that offer is awaited."""
        self.installing: int | None = None
        """It was sent the owner's image after this entry."""
        self.install_again: Nanoseconds = 0
        self.counts = False
        """It keeps what it promises, and counts towards a majority."""
        self.fresh = False
        self.joins_at: int | None = None
        """A fresh follower counts once it and a majority of the others hold this entry: that shows
        that no later leader exists, and that this one holds everything that was promised before.
        """
        self._flying: deque[tuple[int, int]] = deque()
        """The last entry, and the bytes, of each offer that is not on its disk yet."""
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
        """Search for the place where the logs part, from here downwards."""
        assert following > self.match, "up to there the logs are known to be the same"
        self.searching, self.waits = True, False
        self.next = following
        self._flying.clear()
        self._flying_bytes = 0

    def accepted(self, durable: int, matched: int) -> None:
        assert durable <= matched
        self.match = max(self.match, durable)
        while self._flying and self._flying[0][0] <= self.match:
            self._flying_bytes -= self._flying.popleft()[1]
        if self.searching and matched >= self.next - 1:
            self.searching = self.waits = False
            self.installing = None
            self.next = matched + 1


class Leader:
    """One term of a leader."""

    def __init__(self, group: Group, *, founding: bool) -> None:
        """`founding`: all members voted for it, so no member's log is ahead of this one."""
        self._group = group
        self._disk = group.disk
        self._log = group.log
        self._founders = dict.fromkeys(group.others, founding)
        self._followers = {node: _Peer(node, self._log.last + 1) for node in group.others}
        if not self._disk.joined:
            self._disk.join()
        self.first = self.propose(group.no_op)

    def propose(self, content: bytes) -> int:
        assert self._disk.vote == self._group.node, "one leader in a term"
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
        """Letters under way on an earlier connection may be lost."""
        follower = self._followers[node]
        follower.installing = None
        follower.search(follower.match + 1)

    def advance(self) -> None:
        """Commit what a majority has on disk, once that includes an entry of this term: entries of
        earlier terms are committed only along with it (Raft, 5.4.2).
        """
        held = [self._disk.durable]
        held += [each.match if each.counts else 0 for each in self._followers.values()]
        upto = agreed(held, self._group.majority)
        if upto is not None and upto >= self.first:
            self._group.commit(upto)

    def supply(self) -> None:
        """Send every follower what it lacks."""
        for follower in self._followers.values():
            if not follower.waits:
                self._supply(follower)

    def beat(self) -> None:
        """Send every follower a heartbeat, whose answer also shows what was lost."""
        now = self._group.alarms.now
        for follower in self._followers.values():
            if follower.installing is None and follower.next <= self._log.base:
                # The log forgot what it needs while its answer was awaited.
                follower.waits = False
            elif follower.installing is not None and now >= follower.install_again:
                self._install(follower)
            self._offer(follower, max(follower.next, self._log.base + 1), [])

    def heir(self, passed_over: AbstractSet[str]) -> str | None:
        """The follower that has most, if that is everything that is committed."""
        nodes = set(self._group.reachable).difference(passed_over)
        able = [each for each in self._followers.values() if each.node in nodes and each.counts]
        best = max(able, key=lambda each: each.match, default=None)
        return best.node if best is not None and best.match >= self._group.committed else None

    def _note(self, follower: _Peer, fresh: bool, held: int) -> None:
        """Decide whether what it says that it holds counts."""
        follower.fresh = fresh
        if not fresh:
            follower.counts, follower.joins_at = True, None
            self._founders[follower.node] = False
            return
        # It may have lost the disk that it spoke of before.
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
        offer = Offer(
            self._disk.term,
            previous=first - 1,
            previous_term=term,
            entries=entries,
            committed=committed,
            joined=joined,
        )
        self._group.send(follower.node, offer)

    def _install(self, follower: _Peer) -> None:
        """Send the owner's image, and again after a while, unless an answer shows that it came."""
        index = self._group.committed
        follower.search(index + 1)
        follower.waits, follower.installing = True, index
        follower.install_again = self._group.alarms.now + self._group.election_time
        image = self._group.take_image()
        term = self._log.term_at(index)
        install = Install(self._disk.term, index=index, index_term=term, image=image)
        self._group.send(follower.node, install)
