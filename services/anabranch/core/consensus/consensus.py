"""The consensus of the sequencing group: one log of entries that a majority has on disk
(docs/decisions/0027-consensus.md).

Terms, votes and the log are Raft's (Ongaro and Ousterhout, 2014), with votes asked for before a
term is begun, and leaders that step down when they hear from no majority.
"""

from collections.abc import Callable, Sequence

from anabranch.core.alarms import Alarms
from anabranch.core.consensus.disk import Recovered
from anabranch.core.consensus.election import Ballots, Poll
from anabranch.core.consensus.follower import Accepting
from anabranch.core.consensus.group import ConsensusTiming, Group
from anabranch.core.consensus.leader import Replication
from anabranch.core.consensus.letters import (
    Accepted,
    AskVote,
    ConsensusLetter,
    Install,
    Missed,
    Offer,
    TakeOver,
    Vote,
)
from anabranch.core.errors import AnabranchError
from anabranch.core.machine import Effect
from anabranch.core.types import Nanoseconds

__all__ = ["Consensus", "ConsensusLetter", "ConsensusTiming", "Recovered"]

KEPT_ENTRIES = 20_000
"""For members and shards that were away for a while; who was longer gets the owner's image."""

SNAPSHOT_ENTRIES = 10_000


class Consensus:
    """A part of the sequencer's machine. The owner sets its `on_...` before `begin`, and calls
    `settle` at the end of each step. `on_commit` is told every entry, also of terms that begin
    (an empty list of decisions).
    """

    def __init__(
        self,
        node: str,
        members: Sequence[str],
        timing: ConsensusTiming,
        effects: list[Effect],
        alarms: Alarms,
        *,
        kept_entries: int = KEPT_ENTRIES,
        snapshot_entries: int = SNAPSHOT_ENTRIES,
    ) -> None:
        self.on_commit: Callable[[int, bytes], None]
        self.on_restore: Callable[[int, bytes], None]
        self.on_elected: Callable[[], None]
        self.on_deposed: Callable[[], None]
        self.take_image: Callable[[], bytes]
        self.node = node
        self.leads = False
        """It was elected, and the owner was told of all that leaders before it had committed."""
        self._kept = kept_entries
        self._group = Group(node, members, timing, effects, alarms, snapshot_entries)
        self._disk = self._group.disk
        self._log = self._group.log
        self._ballots = Ballots(self._group)
        self._accepting = Accepting(self._group)
        self._replication: Replication | None = None
        self._image = b""
        self._resigning = False
        self._bids = False
        """A follower is to be asked to take over."""
        self._heir_needs: int | None = None
        """Asked to take over, it does so when it has this entry."""
        self._unwritten = 0
        """Proposed while it hands over: nobody will ever have those."""

    @property
    def term(self) -> int:
        return self._disk.term

    @property
    def leader(self) -> str | None:
        """As far as this member knows."""
        return self._group.leader

    @property
    def committed(self) -> int:
        return self._group.committed

    @property
    def last(self) -> int:
        """The end of this member's log, committed or not."""
        return self._log.last

    @property
    def first(self) -> int:
        """The oldest entry that `entries` can give."""
        return self._log.base + 1

    @property
    def reachable(self) -> tuple[str, ...]:
        """Members that were heard of within an election's time, this one among them."""
        return self._group.reachable

    def recover(self, recovered: Recovered) -> None:
        """Before `begin`, what the disk held."""
        self._image = self._disk.recover(recovered)

    def begin(self) -> None:
        self._group.on_commit = self.on_commit
        self._group.take_image = self.take_image
        self._accepting.on_restore = self.on_restore
        self._ballots.on_won = self._won
        self._group.committed = self._log.base
        if self._log.base:
            self.on_restore(self._log.base, self._image)
        self._image = b""
        self._ballots.begin()

    def propose(self, entry: bytes) -> int:
        """Only while it leads. Says the entry's index, which it has if no other leads before it is
        committed.
        """
        assert self.leads
        assert self._replication is not None
        if self._resigning:
            # Or the follower that takes over would never have all.
            self._unwritten += 1
            return self.last + self._unwritten
        return self._replication.propose(entry)

    def entries(self, after: int, count_max: int) -> tuple[int, list[bytes]] | None:
        """Committed ones behind this, and the first's index; None: forgotten, use the image."""
        if after < self._log.base:
            return None
        upto = min(self.committed, after + count_max)
        return after + 1, [entry.content for entry in self._log.after(after, upto)]

    def received(self, sender: str, letter: ConsensusLetter) -> None:
        if sender not in self._group.others or self._disk.faulty:
            # A member that can't keep promises makes none.
            return
        self._group.heard(sender)
        if isinstance(letter, AskVote) and self._group.is_led and not letter.bidden:
            return
        if letter.term < self.term:
            self._outdated(sender, letter)
            return
        if letter.term > self.term and not _is_probe(letter):
            self._enter(letter.term)
        self._read(sender, letter)

    def persisted(self, last: int) -> None:
        self._disk.persisted(last)
        self._accepting.persisted()
        self._advance()

    def persist_failed(self, error: AnabranchError) -> None:
        self._disk.persist_failed()
        self._ballots.poll = None
        self._step_down()

    def snapshot_saved(self, index: int) -> None:
        self._disk.snapshot_saved()

    def linked(self, node: str) -> None:
        """Letters under way on an earlier connection may be lost."""
        if node not in self._group.others:
            return
        self._ballots.linked(node)
        if self._replication is not None:
            self._replication.linked(node)

    def was_away(self, missed: Nanoseconds) -> None:
        """Told that the member itself did not run for so long: it neither steps down for what it
        didn't hear meanwhile, nor stands against a leader that may have been as slow.
        """
        self._group.was_away(missed)

    def resign(self) -> None:
        """Hand over to the follower that has most, and stand for election no more: for a process
        that is to end. `on_deposed` says that it is done, if this member leads; that takes no
        longer than an election's time.
        """
        self._resigning = self._bids = self._ballots.abstains = True
        self._ballots.poll = None
        if not self._group.others:
            self._step_down()
        replication = self._replication
        if replication is not None:
            election_ms = self._group.timing.election_ms
            self._group.alarms.after(election_ms, lambda: self._give_up(replication))

    def settle(self) -> None:
        """End of a step: what was gathered goes to the others and to the disk."""
        if self._replication is not None:
            self._replication.supply()
            self._hand_over(self._replication)
        self._accepting.settle()
        self._disk.settle()
        if self.committed - self._log.base > self._kept + self._kept // 4:
            self._log.forget(self.committed - self._kept)

    def _read(self, sender: str, letter: ConsensusLetter) -> None:
        match letter:
            case AskVote():
                self._ballots.asked(sender, letter)
            case Vote():
                self._ballots.voted(sender, letter)
            case Offer():
                self._follow(sender)
                self._accepting.offered(sender, letter)
                self._take_over()
            case Install():
                self._follow(sender)
                self._accepting.installed(letter)
            case TakeOver(last=last):
                self._follow(sender)
                self._heir_needs = last
                self._take_over()
            case Accepted():
                if self._replication is not None:
                    self._replication.accepted(sender, letter)
                    self._tell_elected()
            case Missed():
                if self._replication is not None:
                    self._replication.missed(sender, letter)

    def _outdated(self, sender: str, letter: ConsensusLetter) -> None:
        """Who still asks or leads in an earlier term has to hear of this one."""
        fresh = not self._disk.joined
        match letter:
            case AskVote():
                self._group.pledge(sender, Vote(self.term, False, letter.probing, fresh))
            case Offer():
                self._group.pledge(sender, Missed(self.term, letter.previous, 0, fresh))
            case Install():
                self._group.pledge(sender, Missed(self.term, letter.index, 0, fresh))
            case _:
                pass

    def _enter(self, term: int) -> None:
        self._step_down()
        self._ballots.poll = None
        self._heir_needs = None
        self._disk.cast(term, "")

    def _follow(self, leader: str) -> None:
        assert self._replication is None, "one leader in a term"
        self._group.leader = leader
        self._group.led_at = self._group.alarms.now
        self._ballots.poll = None
        self._ballots.calm()

    def _won(self, poll: Poll) -> None:
        self._group.leader = self.node
        for member in self._group.others:
            self._group.heard(member)
        self._replication = Replication(self._group, founding=not poll.is_plain)
        self._beat_later(self._replication)

    def _beat(self, replication: Replication) -> None:
        if self._replication is not replication:
            return
        if len(self._group.reachable) < self._group.majority:
            self._step_down()
            return
        replication.beat()
        self._bids = self._resigning
        self._beat_later(replication)

    def _beat_later(self, replication: Replication) -> None:
        self._group.alarms.after(self._group.timing.heartbeat_ms, lambda: self._beat(replication))

    def _advance(self) -> None:
        if self._replication is not None:
            self._replication.advance()
            self._tell_elected()

    def _tell_elected(self) -> None:
        replication = self._replication
        if replication is not None and not self.leads and self.committed >= replication.first:
            self.leads = True
            self.on_elected()

    def _take_over(self) -> None:
        if self._heir_needs is not None and self.last >= self._heir_needs:
            self._heir_needs = None
            self._ballots.stand_bidden()

    def _give_up(self, replication: Replication) -> None:
        """Nobody has taken over: they elect one."""
        if self._replication is replication:
            self._step_down()

    def _hand_over(self, replication: Replication) -> None:
        heir = replication.heir() if self._bids else None
        if heir is not None:
            self._bids = False
            self._group.send(heir, TakeOver(self.term, self.last))

    def _step_down(self) -> None:
        self._replication = None
        self._group.leader = None
        if self.leads:
            self.leads = False
            self.on_deposed()


def _is_probe(letter: ConsensusLetter) -> bool:
    """A term that is asked for or agreed to, and not begun."""
    match letter:
        case AskVote(probing=probing):
            return probing
        case Vote(granted=granted, probing=probing):
            return granted and probing
        case _:
            return False
