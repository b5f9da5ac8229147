"""A group's elections: who stands, and who votes for whom.

A candidate first asks whether it could win, and begins a term only then (pre-vote): a member that
was cut off disturbs nobody when it is back. A member that hears from a leader votes for nobody
else, and a member whose log is ahead of the candidate's refuses. Nothing is left to chance: members
wait for different times before they stand.
"""

from collections.abc import Callable

from anabranch.core.consensus.group import Group
from anabranch.core.consensus.letters import AskVote, Vote
from anabranch.core.quorum import MAJORITY
from anabranch.core.types import Nanoseconds


class Poll:
    """The votes for one candidate.

    Votes of fresh members count only if all members vote for it: so a new group elects its first
    leader, and a member that lost its disk cannot undo what it had promised.
    """

    def __init__(self, *, term: int, members: int, probing: bool, bidden: bool) -> None:
        assert not (probing and bidden), "a candidate that was asked to stand does not probe"
        self.term = term
        self.probing = probing
        self.bidden = bidden
        self.votes: dict[str, bool] = {}
        """By voter; True if the voter is fresh."""
        self._members = members

    @property
    def is_won(self) -> bool:
        return self.is_unanimous or self.is_plain

    @property
    def is_plain(self) -> bool:
        """True if a majority voted for it that still has what it promised."""
        return sum(not fresh for fresh in self.votes.values()) >= MAJORITY.size(self._members)

    @property
    def is_unanimous(self) -> bool:
        return len(self.votes) == self._members


class Election:
    def __init__(self, group: Group) -> None:
        self.poll: Poll | None = None
        """While this member stands."""
        self.abstains = False
        """This member stands for no election any more."""
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

    def postpone(self) -> None:
        """There is a leader, or another member may become one: wait anew."""
        self._deadline = self._group.alarms.now + self._wait

    def stand_bidden(self) -> None:
        """The leader wants this member in its place: no probe is needed."""
        if not self.abstains:
            self._stand(probing=False, bidden=True)

    def asked(self, sender: str, ask: AskVote) -> None:
        """The term that is asked for has begun here, unless the candidate only probes."""
        if ask.probing:
            granted = ask.term > self._disk.term and self._is_up_to_date(ask)
            self._answer(sender, ask.term if granted else self._disk.term, granted, probing=True)
            return
        assert ask.term == self._disk.term
        granted = self._disk.vote in {"", sender} and self._is_up_to_date(ask)
        if granted and not self._disk.vote:
            self._disk.cast(ask.term, sender)
        if granted:
            self.postpone()
        self._answer(sender, ask.term, granted, probing=False)

    def voted(self, sender: str, vote: Vote) -> None:
        poll = self.poll
        if vote.granted and poll and (poll.term, poll.probing) == (vote.term, vote.probing):
            self._count(poll, sender, vote.fresh)

    def linked(self, node: str) -> None:
        """The question may have been lost with an earlier connection."""
        if self.poll is not None:
            self._ask(self.poll, node)

    @property
    def _wait(self) -> Nanoseconds:
        """Longer than a member is loyal to a silent leader, and different for each member."""
        return self._group.election_time * (12 + 3 * self._rank) // 10

    def _ring(self) -> None:
        if self._group.alarms.now >= self._deadline:
            self.postpone()
            if not self._group.is_led and not self.abstains and not self._disk.faulty:
                self._stand(probing=True)
        assert self._deadline > self._group.alarms.now
        self._group.alarms.at(self._deadline, self._ring)

    def _stand(self, *, probing: bool, bidden: bool = False) -> None:
        assert not self.abstains
        self._group.leader = None
        self.postpone()
        term = self._disk.term + 1
        poll = Poll(term=term, members=len(self._group.members), probing=probing, bidden=bidden)
        self.poll = poll
        if not probing:
            self._disk.cast(term, self._group.node)
        # Its own vote is a promise like any other's.
        self._disk.when_durable(lambda: self._open(poll))

    def _open(self, poll: Poll) -> None:
        if self.poll is poll:
            self._ask_all(poll)
            self._count(poll, self._group.node, not self._disk.joined)

    def _ask_all(self, poll: Poll) -> None:
        """Ask those that have not voted for it, again and again: letters may be lost."""
        if self.poll is not poll:
            return
        for member in self._group.others:
            if member not in poll.votes:
                self._ask(poll, member)
        self._group.alarms.after(2 * self._group.timing.heartbeat_ms, lambda: self._ask_all(poll))

    def _ask(self, poll: Poll, member: str) -> None:
        log = self._group.log
        ask = AskVote(
            poll.term,
            last_term=log.last_term,
            last=log.last,
            probing=poll.probing,
            bidden=poll.bidden,
        )
        self._group.send(member, ask)

    def _count(self, poll: Poll, voter: str, fresh: bool) -> None:
        assert voter in self._group.members
        poll.votes[voter] = fresh
        if not poll.is_won:
            return
        self.poll = None
        if poll.probing:
            self._stand(probing=False)
        else:
            assert self._disk.vote == self._group.node
            self.on_won(poll)

    def _is_up_to_date(self, ask: AskVote) -> bool:
        log = self._group.log
        return (ask.last_term, ask.last) >= (log.last_term, log.last)

    def _answer(self, to: str, term: int, granted: bool, *, probing: bool) -> None:
        vote = Vote(term, granted=granted, probing=probing, fresh=not self._disk.joined)
        self._group.pledge(to, vote)
