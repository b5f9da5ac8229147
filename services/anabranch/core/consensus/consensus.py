"""A group's consensus: one log of entries that a majority has on disk
(docs/decisions/0027-consensus.md).

Terms, votes and the log are Raft's (Ongaro and Ousterhout, 2014), with a probe before each election
(pre-vote), and leaders that step down when a majority falls silent.
"""

from collections.abc import Callable

from anabranch.core.alarms import Alarms
from anabranch.core.consensus.disk import Recovered
from anabranch.core.consensus.election import Election, Poll
from anabranch.core.consensus.follower import Follower
from anabranch.core.consensus.group import ConsensusConfig, ConsensusTiming, Group
from anabranch.core.consensus.leader import Leader
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

__all__ = ["Consensus", "ConsensusConfig", "ConsensusLetter", "ConsensusTiming", "Recovered"]


class Consensus:
    """A part of a machine. The owner sets the callbacks before `start`, and calls `settle` at the
    end of each step.
    """

    def __init__(self, config: ConsensusConfig, effects: list[Effect], alarms: Alarms) -> None:
        self.on_commit: Callable[[int, bytes], None] = lambda index, entry: None
        """Called for every entry in order, also for the one that each leader's term begins with."""
        self.on_restore: Callable[[int, bytes], None] = lambda index, image: None
        """The owner's state is now that of this image, taken after this entry."""
        self.on_elected: Callable[[], None] = lambda: None
        self.on_deposed: Callable[[], None] = lambda: None
        self.take_image: Callable[[], bytes] = bytes
        """Returns the owner's state after the last entry that was committed."""
        self.node = config.node
        self.leads = False
        """It was elected, and the owner has every entry that earlier leaders had committed."""
        self._kept = config.kept_entries
        self._group = Group(config, effects, alarms)
        self._disk = self._group.disk
        self._log = self._group.log
        self._election = Election(self._group)
        self._follower = Follower(self._group)
        self._leader: Leader | None = None
        self._image = b""
        self._resigning = False
        self._bids = False
        """It looks for a follower that can take over."""
        self._asked = set[str]()
        """Followers that were asked to take over, and did not at once: one may abstain itself."""
        self._heir_needs: int | None = None
        """The leader asked this member to take over: it does so when it has this entry."""
        self._unwritten = 0
        """How many entries were proposed while it hands over: they are never written."""

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
        """Members that sent something within an election's time, and this one."""
        return self._group.reachable

    def recover(self, recovered: Recovered) -> None:
        """What the disk held, before `start`."""
        self._image = self._disk.recover(recovered)

    def start(self) -> None:
        assert self._leader is None, "a member starts once"
        self._group.on_commit = self.on_commit
        self._group.take_image = self.take_image
        self._follower.on_restore = self.on_restore
        self._election.on_won = self._won
        self._group.committed = self._log.base
        if self._log.base:
            self.on_restore(self._log.base, self._image)
        self._image = b""
        self._election.start()

    def propose(self, entry: bytes) -> int:
        """Returns the entry's index, which is final unless another member leads before the entry is
        committed. Only the leader may propose.
        """
        assert self.leads
        assert self._leader is not None
        if self._resigning:
            # Otherwise the follower that takes over would never catch up.
            self._unwritten += 1
            return self.last + self._unwritten
        return self._leader.propose(entry)

    def entries(self, after: int, count_max: int) -> tuple[int, list[bytes]] | None:
        """Committed entries behind this one, and the index of the first. None if those entries were
        forgotten: use the image.
        """
        assert count_max > 0, "no entry would be given"
        if after < self._log.base:
            return None
        upto = min(self.committed, after + count_max)
        return after + 1, [entry.content for entry in self._log.after(after, upto)]

    def received(self, sender: str, letter: ConsensusLetter) -> None:
        if sender not in self._group.others or self._disk.faulty:
            # A member whose disk refuses cannot keep a promise, so it makes none.
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
        self._follower.persisted()
        self._advance()

    def persist_failed(self, error: AnabranchError) -> None:
        self._disk.persist_failed()
        self._election.poll = None
        self._step_down()

    def snapshot_saved(self, index: int) -> None:
        self._disk.snapshot_saved()

    def linked(self, node: str) -> None:
        """Letters under way on an earlier connection may be lost."""
        if node not in self._group.others:
            return
        self._election.linked(node)
        if self._leader is not None:
            self._leader.linked(node)

    def was_away(self, missed: Nanoseconds) -> None:
        """The process did not run for so long: its member neither steps down because of letters
        that it missed, nor stands against a leader that may have been as slow.
        """
        self._group.was_away(missed)

    def resign(self) -> None:
        """Hand over to the follower that has most, and stand for election no more: the process is
        to stop. If this member leads, `on_deposed` is called when that is done, within an
        election's time at the latest.
        """
        self._resigning = self._bids = self._election.abstains = True
        self._election.poll = None
        if not self._group.others:
            self._step_down()
        leader = self._leader
        if leader is not None:
            election_ms = self._group.timing.election_ms
            self._group.alarms.after(election_ms, lambda: self._give_up(leader))

    def settle(self) -> None:
        """The end of a step: send and write what was gathered in it."""
        if self._leader is not None:
            self._leader.supply()
            self._hand_over(self._leader)
        self._follower.settle()
        self._disk.settle()
        if self.committed - self._log.base > self._kept + self._kept // 4:
            self._log.forget(self.committed - self._kept)

    def _read(self, sender: str, letter: ConsensusLetter) -> None:
        match letter:
            case AskVote():
                self._election.asked(sender, letter)
            case Vote():
                self._election.voted(sender, letter)
            case Offer():
                self._follow(sender)
                self._follower.offered(sender, letter)
                self._take_over()
            case Install():
                self._follow(sender)
                self._follower.installed(letter)
            case TakeOver(last=last):
                self._follow(sender)
                self._heir_needs = last
                self._take_over()
            case Accepted():
                if self._leader is not None:
                    self._leader.accepted(sender, letter)
                    self._tell_elected()
            case Missed():
                if self._leader is not None:
                    self._leader.missed(sender, letter)

    def _outdated(self, sender: str, letter: ConsensusLetter) -> None:
        """A member that still asks or leads in an earlier term has to learn of this one."""
        fresh = not self._disk.joined
        match letter:
            case AskVote():
                self._group.pledge(sender, Vote(self.term, False, letter.probing, fresh))
            case Offer():
                self._group.pledge(sender, Missed(self.term, letter.previous, 0, fresh))
            case Install():
                self._group.pledge(sender, Missed(self.term, letter.index, 0, fresh))
            case Vote() | Accepted() | Missed() | TakeOver():
                """Late: nobody waits for anything on account of it."""

    def _enter(self, term: int) -> None:
        assert term > self.term
        self._step_down()
        self._election.poll = None
        self._heir_needs = None
        self._disk.cast(term, "")

    def _follow(self, leader: str) -> None:
        assert self._leader is None, "one leader in a term"
        self._group.leader = leader
        self._group.led_at = self._group.alarms.now
        self._election.poll = None
        self._election.postpone()

    def _won(self, poll: Poll) -> None:
        assert self._leader is None
        self._group.leader = self.node
        for member in self._group.others:
            self._group.heard(member)
        self._leader = Leader(self._group, founding=not poll.is_plain)
        self._beat_later(self._leader)

    def _beat(self, leader: Leader) -> None:
        if self._leader is not leader:
            return
        if len(self._group.reachable) < self._group.majority:
            self._step_down()
            return
        leader.beat()
        self._bids = self._resigning
        if self._asked.issuperset(self._group.others):
            self._asked.clear()
        self._beat_later(leader)

    def _beat_later(self, leader: Leader) -> None:
        self._group.alarms.after(self._group.timing.heartbeat_ms, lambda: self._beat(leader))

    def _advance(self) -> None:
        if self._leader is not None:
            self._leader.advance()
            self._tell_elected()

    def _tell_elected(self) -> None:
        leader = self._leader
        if leader is not None and not self.leads and self.committed >= leader.first:
            assert self._group.leader == self.node
            self.leads = True
            self.on_elected()

    def _take_over(self) -> None:
        if self._heir_needs is not None and self.last >= self._heir_needs:
            self._heir_needs = None
            self._election.stand_bidden()

    def _give_up(self, leader: Leader) -> None:
        """Nobody has taken over in time: the others elect a leader."""
        if self._leader is leader:
            self._step_down()

    def _hand_over(self, leader: Leader) -> None:
        heir = leader.heir(self._asked) if self._bids else None
        if heir is not None:
            self._bids = False
            self._asked.add(heir)
            self._group.send(heir, TakeOver(term=self.term, last=self.last))

    def _step_down(self) -> None:
        self._leader = None
        self._group.leader = None
        if self.leads:
            self.leads = False
            self.on_deposed()


def _is_probe(letter: ConsensusLetter) -> bool:
    """True for a term that somebody asks about or agrees to, and that has not begun."""
    match letter:
        case AskVote(probing=probing):
            return probing
        case Vote(granted=granted, probing=probing):
            return granted and probing
        case _:
            return False
