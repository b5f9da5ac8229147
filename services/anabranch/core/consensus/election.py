"""Elections of the sequencing group: who stands, and who votes for whom.

A candidate asks first whether it could win, and begins a term only then: one that was cut off
disturbs nobody when it is back. Who hears from a leader votes for nobody else, and who has more
than the candidate doesn't either. No chance is involved: members wait for different times.
"""

from collections.abc import Callable

from anabranch.core.consensus.group import Group
from anabranch.core.consensus.letters import AskVote, Vote
from anabranch.core.types import Nanoseconds


class Poll:
    """Votes for one candidate. Those of fresh members count only if all members vote for it: so a
    group begins, and so a member that lost its disk can't unmake what it had promised.
    """

    def __init__(self, term: int, members: int, *, probing: bool, bidden: bool) -> None:
        self.term = term
        self.probing = probing
        self.bidden = bidden
        self.votes: dict[str, bool] = {}
        """Of whom; is it fresh?"""
        self._members = members

    @property
    def is_won(self) -> bool:
        return self.is_unanimous or self.is_plain

    @property
    def is_plain(self) -> bool:
        """Do those make a majority who hold what they promised?"""
        return sum(not fresh for fresh in self.votes.values()) * 2 > self._members

    @property
    def is_unanimous(self) -> bool:
        return len(self.votes) == self._members


class Election:
    def __init__(self, group: Group) -> None:
        self.poll: Poll | None = None
        self.abstains = False
        """It stands for no election any more."""
        self.on_won: Callable[[Poll], None] = lambda poll: None
        self._group = group
        self._disk = group.disk
        self._rank = group.members.index(group.node)
        self._deadline: Nanoseconds = 0

    def start(self) -> None:
        """The first wait is short: most likely nobody leads."""
        self._deadline = self._group.alarms.now + self._wait // 6 * (1 + 3 * self._rank)
        if not self._group.others:
            self._stand(probing=False)
        self._group.alarms.at(self._deadline, self._ring)

    def calm(self) -> None:
        """There is a leader, or somebody may become one: wait anew."""
        self._deadline = self._group.alarms.now + self._wait

    def stand_bidden(self) -> None:
        """The leader wants this one in its place: no need to ask whether it could win."""
        if not self.abstains:
            self._stand(probing=False, bidden=True)

    def asked(self, sender: str, ask: AskVote) -> None:
        """The term asked for has begun here, unless it is only probed."""
        if ask.probing:
            granted = ask.term > self._disk.term and self._is_up_to_date(ask)
            self._answer(sender, ask.term if granted else self._disk.term, granted, probing=True)
            return
        assert ask.term == self._disk.term
        granted = self._disk.vote in {"", sender} and self._is_up_to_date(ask)
        if granted and not self._disk.vote:
            self._disk.cast(ask.term, sender)
        if granted:
            self.calm()
        self._answer(sender, ask.term, granted, probing=False)

    def voted(self, sender: str, vote: Vote) -> None:
        poll = self.poll
        if vote.granted and poll and (poll.term, poll.probing) == (vote.term, vote.probing):
            self._count(poll, sender, vote.fresh)

    def linked(self, node: str) -> None:
        if self.poll is not None:
            self._ask(self.poll, node)

    @property
    def _wait(self) -> Nanoseconds:
        """Longer than a member is loyal to a leader that it hears no more, and no two alike."""
        return self._group.election_time * (12 + 3 * self._rank) // 10

    def _ring(self) -> None:
        if self._group.alarms.now >= self._deadline:
            self.calm()
            if not self._group.is_led and not self.abstains and not self._disk.faulty:
                self._stand(probing=True)
        self._group.alarms.at(self._deadline, self._ring)

    def _stand(self, *, probing: bool, bidden: bool = False) -> None:
        self._group.leader = None
        self.calm()
        term = self._disk.term + 1
        poll = Poll(term, len(self._group.members), probing=probing, bidden=bidden)
        self.poll = poll
        if not probing:
            self._disk.cast(term, self._group.node)
        # Its own vote is a promise like any other's.
        self._disk.when_durable(lambda: self._open(poll))

    def _open(self, poll: Poll) -> None:
        if self.poll is poll:
            for member in self._group.others:
                self._ask(poll, member)
            self._group.alarms.after(2 * self._group.timing.heartbeat_ms, lambda: self._urge(poll))
            self._count(poll, self._group.node, not self._disk.joined)

    def _urge(self, poll: Poll) -> None:
        """Letters may be lost."""
        if self.poll is poll:
            for member in self._group.others:
                if member not in poll.votes:
                    self._ask(poll, member)
            self._group.alarms.after(2 * self._group.timing.heartbeat_ms, lambda: self._urge(poll))

    def _ask(self, poll: Poll, member: str) -> None:
        log = self._group.log
        ask = AskVote(poll.term, log.last_term, log.last, poll.probing, poll.bidden)
        self._group.send(member, ask)

    def _count(self, poll: Poll, voter: str, fresh: bool) -> None:
        poll.votes[voter] = fresh
        if not poll.is_won:
            return
        self.poll = None
        if poll.probing:
            self._stand(probing=False)
        else:
            self.on_won(poll)

    def _is_up_to_date(self, ask: AskVote) -> bool:
        log = self._group.log
        return (ask.last_term, ask.last) >= (log.last_term, log.last)

    def _answer(self, to: str, term: int, granted: bool, *, probing: bool) -> None:
        vote = Vote(term, granted, probing, not self._disk.joined)
        self._group.pledge(to, vote)
