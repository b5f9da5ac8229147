"""A primary's part: its log goes to the other replicas, and is durable where a quorum has it.

Letters don't wait for the primary's own journal, except those of a term that is not in it yet: a
primary that crashes and comes back must not use the term's number for something else.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from anabranch.core.limits import MIB
from anabranch.core.quorum import agreed
from anabranch.core.replication.entries import Item
from anabranch.core.replication.letters import Copy, Joining, Match, Stored
from anabranch.core.replication.links import Links
from anabranch.core.replication.log import Log
from anabranch.core.replication.terms import Term
from anabranch.core.types import NEVER, LocalSequence, Nanoseconds

LETTER_BYTES_MAX = MIB


@dataclass(slots=True)
class _Peer:
    """Another replica, as this primary knows it."""

    node: str
    matched: bool = False
    """Its log is known to be a part of this one, once it has what was sent up to `sent`."""
    sent: LocalSequence = 0
    stored: LocalSequence = 0
    adopted: bool = False
    """It has everything from before this term, and counts towards the quorum."""
    flights: deque[tuple[LocalSequence, int]] = field(
        default_factory=deque[tuple[LocalSequence, int]]
    )
    """Where each letter that is not acknowledged yet ends, and its bytes."""
    flight_bytes: int = 0
    reading: bool = False
    owes_since: Nanoseconds = NEVER
    """Since when it owes an answer; NEVER if it owes none."""
    answered: bool = False
    """Since the last heartbeat."""
    goal: LocalSequence = 0
    """What was durable at the last heartbeat: a replica that has this keeps up."""

    def owe(self, now: Nanoseconds) -> None:
        self.owes_since = min(self.owes_since, now)

    def acknowledge(self, upto: LocalSequence) -> None:
        while self.flights and self.flights[0][0] <= upto:
            self.flight_bytes -= self.flights.popleft()[1]
        assert self.flight_bytes >= 0

    def match(self, sent: LocalSequence) -> None:
        self.matched = True
        self.sent = sent
        self.flights.clear()
        self.flight_bytes = 0


class Primary:
    """One term of a primary. The primary is part of every quorum, so after a crash it can lead
    again at once: it holds everything that is durable.
    """

    def __init__(
        self, links: Links, log: Log, *, epoch: int, replicas: Sequence[str], view: int
    ) -> None:
        assert links.config.node in replicas
        self.view = view
        """Writers of an earlier view are fenced off."""
        self._links = links
        self._log = log
        self._epoch = epoch
        self._quorum = links.config.quorum.size(len(replicas))
        self._term: Term = log.begin_term(epoch, view)
        self._begun = False
        """The term is in the own journal."""
        self._established = False
        """It stays so: what a replica has adopted it keeps for as long as the term lasts."""
        self._answers_due = NEVER
        """Every reachable replica has answered by then."""
        self._beating = False
        self._closed = False
        self._backups = tuple(node for node in replicas if node != links.config.node)
        self._peers = {node: _Peer(node) for node in self._backups}
        log.journal.when_stored(self._begin)

    @property
    def silent(self) -> tuple[str, ...]:
        """Replicas of the epoch whose answers are overdue."""
        return tuple([node for node in self._backups if self._is_silent(self._peers[node])])

    @property
    def caught_up(self) -> tuple[str, ...]:
        """Replicas outside of the epoch that keep up with what is durable."""
        if len(self._peers) == len(self._backups):
            return ()
        return tuple(
            peer.node
            for peer in self._peers.values()
            if peer.node not in self._backups and peer.adopted and peer.stored >= peer.goal
        )

    @property
    def established(self) -> bool:
        """A quorum has this term in its journals: whoever is primary next knows its view, and takes
        nothing from writers of an earlier one.
        """
        if not self._established:
            adopted = self._log.adopted == self._term.number
            self._established = adopted and self._agreed() is not None
        return self._established

    @property
    def may_be_sealed(self) -> bool:
        """All reachable, unsealed backups had time to adopt this term."""
        return self._answers_due <= self._links.alarms.now and not any(
            peer.matched and not peer.adopted and not self._is_silent(peer)
            for peer in map(self._peers.__getitem__, self._backups)
        )

    def close(self) -> None:
        """Another term or role follows: what still arrives for this one changes nothing."""
        assert not self._closed, "a term ends once"
        self._closed = True

    def join(self, sender: str, letter: Joining) -> None:
        if not self._begun:
            return
        log = self._log
        peer = self._peers.setdefault(sender, _Peer(sender, goal=log.last))
        common, shared = log.terms.shared(log.last, letter.terms, letter.last)
        assert shared <= min(log.last, letter.last)
        peer.match(max(shared, log.first))
        peer.answered = True
        peer.owe(self._links.alarms.now)
        match = Match(
            letter.group,
            self._epoch,
            term=self._term.number,
            last=letter.last,
            last_term=letter.terms[-1].number if letter.terms else 0,
            common=common,
            shared=shared,
            first=log.first,
            terms=log.terms.since(common),
        )
        self._links.send(sender, match)
        self._start_heartbeat()

    def stored(self, sender: str, letter: Stored) -> None:
        peer = self._peers.get(sender)
        if peer is None or letter.term != self._term.number:
            return
        progress = letter.upto > peer.stored or (letter.adopted == letter.term) > peer.adopted
        peer.answered = True
        peer.stored = max(peer.stored, letter.upto)
        peer.adopted = peer.adopted or letter.adopted == letter.term
        peer.acknowledge(peer.stored)
        if peer.adopted and peer.stored >= peer.sent:
            peer.owes_since = NEVER
        elif progress:
            peer.owes_since = self._links.alarms.now
        self.count()

    def linked(self, node: str) -> None:
        """Letters under way on an earlier connection may be lost: ask at once."""
        if self._begun and node in self._peers:
            self._probe(self._peers[node])

    def count(self) -> None:
        """Count what is durable now. Only what this journal holds can be, and only with a quorum
        that adopted this term (Raft, 5.4.2).
        """
        log = self._log
        if self._closed or log.adopted != self._term.number:
            return
        upto = self._agreed()
        if upto is not None and min(upto, log.stored) > log.durable:
            log.durable = min(upto, log.stored)

    def settle(self) -> None:
        """The end of a step: send what was logged in it."""
        if self._begun:
            last = self._log.last
            for peer in self._peers.values():
                if peer.sent < last:
                    self._pump(peer)

    def _agreed(self) -> LocalSequence | None:
        """The end of what a quorum has stored; None without a quorum that adopted the term."""
        held = [self._log.stored]
        for node in self._backups:
            peer = self._peers[node]
            if peer.adopted:
                held.append(peer.stored)
        return agreed(held, self._quorum)

    def _begin(self) -> None:
        if self._closed:
            return
        assert self._log.adopted == self._term.number
        self._begun = True
        self._answers_due = self._links.alarms.now + self._links.patience
        for peer in self._peers.values():
            self._probe(peer)
        self._start_heartbeat()
        self.count()

    def _pump(self, peer: _Peer) -> None:
        log = self._log
        room = self._links.config.unacknowledged_bytes_max
        while peer.matched and not peer.reading and peer.sent < log.last:
            if peer.flight_bytes >= room:
                return
            if peer.sent < log.first:
                self._rematch(peer)
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
        if not self._closed and peer.matched and peer.sent == sent and items:
            self._send(peer, items)

    def _send(self, peer: _Peer, items: list[Item]) -> None:
        assert self._begun, "the term has to be journaled first"
        assert not self._closed
        first = peer.sent
        if items:
            assert items[0].first == first
            peer.sent = items[-1].end
            size = sum(len(item.batch) for item in items)
            peer.flights.append((peer.sent, size))
            peer.flight_bytes += size
        peer.owe(self._links.alarms.now)
        copy = Copy(
            self._links.config.group,
            self._epoch,
            term=self._term.number,
            first=first,
            durable=self._log.durable,
            items=items,
        )
        self._links.send(peer.node, copy)

    def _rematch(self, peer: _Peer) -> None:
        """What it needs next was trimmed: it has to go on from elsewhere."""
        assert peer.sent < self._log.first
        peer.matched = False
        peer.sent = self._log.last
        self._probe(peer)

    def _probe(self, peer: _Peer) -> None:
        """Send no items: a replica that has less than it was sent answers with what it has."""
        self._send(peer, [])

    def _start_heartbeat(self) -> None:
        if self._peers and not self._beating:
            self._beating = True
            self._links.alarms.at(self._links.next_retry, self._beat)

    def _beat(self) -> None:
        self._beating = False
        if self._closed:
            return
        for peer in list(self._peers.values()):
            if peer.node not in self._backups and self._is_silent(peer):
                del self._peers[peer.node]  # it joins again when it is back
            elif not peer.answered:
                self._probe(peer)
            peer.answered = False
            peer.goal = self._log.durable
        self._start_heartbeat()

    def _is_silent(self, peer: _Peer) -> bool:
        return peer.owes_since + self._links.patience < self._links.alarms.now
