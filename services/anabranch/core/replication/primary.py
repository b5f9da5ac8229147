"""A primary's reign: its log goes to the others, and is durable where a majority has it.

Letters don't wait for the own journal, except for those of a reign that isn't in it yet: a primary
that fell and came back must not use the reign's number for something else.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from anabranch.core.limits import MIB
from anabranch.core.replication.entries import Item
from anabranch.core.replication.letters import Copy, Joining, Match, Stored
from anabranch.core.replication.links import Post
from anabranch.core.replication.log import LocalLog
from anabranch.core.replication.terms import Reign
from anabranch.core.types import NEVER, LocalSequence, Nanoseconds

LETTER_BYTES_MAX = MIB


@dataclass(slots=True)
class _Peer:
    """Another replica, as this primary sees it."""

    node: str
    matched: bool = False
    """What it has is known to be a part of the log, up to `sent`."""
    sent: LocalSequence = 0
    stored: LocalSequence = 0
    adopted: bool = False
    """It has all from before this reign: it counts."""
    flights: deque[tuple[LocalSequence, int]] = field(
        default_factory=deque[tuple[LocalSequence, int]]
    )
    """Where the letters on the way end, and their bytes."""
    flight_bytes: int = 0
    reading: bool = False
    owes_since: Nanoseconds = NEVER
    """An answer to a letter; NEVER: it owes none."""
    heard: bool = False
    """Since the last beat."""
    goal: LocalSequence = 0
    """What was durable at the last beat: one that has this keeps up."""

    def owe(self, now: Nanoseconds) -> None:
        self.owes_since = min(self.owes_since, now)

    def land(self, upto: LocalSequence) -> None:
        while self.flights and self.flights[0][0] <= upto:
            self.flight_bytes -= self.flights.popleft()[1]

    def match(self, sent: LocalSequence) -> None:
        self.matched = True
        self.sent = sent
        self.flights.clear()
        self.flight_bytes = 0


class Leading:
    """`durable` is a part of the log that a majority of `replicas` has, this one always among
    them: it can then be a primary again after a fall.
    """

    def __init__(
        self,
        post: Post,
        log: LocalLog,
        epoch: int,
        replicas: Sequence[str],
        durable: LocalSequence,
        on_durable: Callable[[LocalSequence], None],
    ) -> None:
        self.durable = durable
        self._post = post
        self._log = log
        self._epoch = epoch
        self._majority = len(replicas) // 2 + 1
        self._on_durable = on_durable
        self._reign: Reign = log.reign(epoch)
        self._begun = False
        self._begun_by = NEVER
        """Whoever is there has answered by then."""
        self._beating = False
        self._over = False
        self._backups = tuple(node for node in replicas if node != post.config.node)
        self._peers = {node: _Peer(node) for node in self._backups}
        log.journal.when_stored(self._begin)

    @property
    def silent(self) -> tuple[str, ...]:
        return tuple(node for node in self._backups if self._is_silent(self._peers[node]))

    @property
    def caught_up(self) -> tuple[str, ...]:
        """Of those outside of the epoch."""
        return tuple(
            peer.node
            for peer in self._peers.values()
            if peer.node not in self._backups and peer.adopted and peer.stored >= peer.goal
        )

    @property
    def followed(self) -> bool:
        """Whoever of the epoch is there, and not sealed, has had the time to adopt the reign."""
        return self._begun_by <= self._post.alarms.now and not any(
            peer.matched and not peer.adopted and not self._is_silent(peer)
            for peer in map(self._peers.__getitem__, self._backups)
        )

    def end(self) -> None:
        self._over = True

    def join(self, sender: str, letter: Joining) -> None:
        if not self._begun:
            return
        log = self._log
        peer = self._peers.setdefault(sender, _Peer(sender, goal=log.last))
        common, shared = log.reigns.shared(log.last, letter.reigns, letter.last)
        peer.match(max(shared, log.first))
        last_reign = letter.reigns[-1].number if letter.reigns else 0
        match = Match(
            letter.shard,
            self._epoch,
            self._reign.number,
            letter.last,
            last_reign,
            common,
            shared,
            log.first,
            log.reigns.since(common),
        )
        peer.heard = True
        peer.owe(self._post.alarms.now)
        self._post.send(sender, match)
        self._start_beating()

    def stored(self, sender: str, letter: Stored) -> None:
        peer = self._peers.get(sender)
        if peer is None or letter.reign != self._reign.number:
            return
        progress = letter.upto > peer.stored or (letter.adopted == letter.reign) > peer.adopted
        peer.heard = True
        peer.stored = max(peer.stored, letter.upto)
        peer.adopted = peer.adopted or letter.adopted == letter.reign
        peer.land(peer.stored)
        if peer.adopted and peer.stored >= peer.sent:
            peer.owes_since = NEVER
        elif progress:
            peer.owes_since = self._post.alarms.now
        self.count()

    def linked(self, node: str) -> None:
        """What was on the way may be lost: ask at once."""
        if self._begun and node in self._peers:
            self._probe(self._peers[node])

    def count(self) -> None:
        """How much is durable now? Who hasn't adopted the reign doesn't count (Raft, 5.4.2)."""
        log = self._log
        if self._over or log.adopted != self._reign.number:
            return
        peers = (self._peers[node] for node in self._backups)
        stored = sorted([log.stored, *(peer.stored for peer in peers if peer.adopted)])
        if len(stored) < self._majority:
            return
        durable = min(log.stored, stored[-self._majority])
        if durable > self.durable:
            self.durable = durable
            self._on_durable(durable)

    def settle(self) -> None:
        if self._begun:
            for peer in self._peers.values():
                self._pump(peer)

    def _begin(self) -> None:
        if self._over:
            return
        self._begun = True
        self._begun_by = self._post.alarms.now + self._post.patience
        for peer in self._peers.values():
            self._probe(peer)
        self._start_beating()
        self.count()

    def _pump(self, peer: _Peer) -> None:
        log = self._log
        room = self._post.config.copy_bytes_max
        while peer.matched and not peer.reading and peer.sent < log.last:
            if peer.flight_bytes >= room:
                return
            if peer.sent < log.first:
                self._lose(peer)
                return
            items = log.items(peer.sent, log.last, LETTER_BYTES_MAX)
            if items is None:
                peer.reading = True
                then = partial(self._read, peer, peer.sent)
                log.fetch(peer.sent, log.last, LETTER_BYTES_MAX, then)
                return
            self._send(peer, items)

    def _read(self, peer: _Peer, sent: LocalSequence, items: list[Item]) -> None:
        peer.reading = False
        if not self._over and peer.matched and peer.sent == sent and items:
            self._send(peer, items)

    def _send(self, peer: _Peer, items: list[Item]) -> None:
        first, peer.sent = peer.sent, items[-1].end if items else peer.sent
        if items:
            assert items[0].first == first
            size = sum(len(item.batch) for item in items)
            peer.flights.append((peer.sent, size))
            peer.flight_bytes += size
        peer.owe(self._post.alarms.now)
        shard, reign = self._post.config.shard, self._reign.number
        copy = Copy(shard, self._epoch, reign, first, self.durable, items)
        self._post.send(peer.node, copy)

    def _lose(self, peer: _Peer) -> None:
        """What it needs next was trimmed: it must go on from elsewhere."""
        peer.matched = False
        peer.sent = self._log.last
        self._probe(peer)

    def _probe(self, peer: _Peer) -> None:
        """Without items: one that has less than it was sent says what it has."""
        self._send(peer, [])

    def _start_beating(self) -> None:
        if self._peers and not self._beating:
            self._beating = True
            self._post.alarms.at(self._post.soon, self._beat)

    def _beat(self) -> None:
        self._beating = False
        if self._over:
            return
        for peer in list(self._peers.values()):
            if peer.node not in self._backups and self._is_silent(peer):
                del self._peers[peer.node]  # it asks again when it is there
            elif not peer.heard:
                self._probe(peer)
            peer.heard = False
            peer.goal = self.durable
        self._start_beating()

    def _is_silent(self, peer: _Peer) -> bool:
        return peer.owes_since + self._post.patience < self._post.alarms.now
