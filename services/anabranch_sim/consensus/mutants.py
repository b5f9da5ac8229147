"""Ways to get a consensus group wrong: each breaks one rule, where one function holds it."""

# Breaking what others keep to themselves is the purpose here.
# pyright: reportPrivateUsage=false

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from anabranch.core.consensus.consensus import Consensus
from anabranch.core.consensus.disk import GroupDisk
from anabranch.core.consensus.election import Election
from anabranch.core.consensus.leader import Leader
from anabranch.core.consensus.letters import AskVote, Vote
from anabranch_sim.world.mutants import Function, Mutant, returning


def _by_its_leader_alone(_: Function) -> Function:
    def advance(self: Leader) -> None:
        if self._disk.durable >= self.first:
            self._group.commit(self._disk.durable)

    return advance


def _to_whoever_asks(original: Function) -> Function:
    def asked(self: Election, sender: str, ask: Any) -> None:
        if not ask.probing and self._disk.vote not in {"", self._group.node}:
            self._disk.vote = ""
        original(self, sender, ask)

    return asked


def _without(**forgotten: Any) -> Callable[[Function], Function]:
    """A snapshot of a sequencer's disk with these fields as on an empty disk."""

    def instead(original: Function) -> Function:
        def picture(self: GroupDisk) -> Any:
            return replace(original(self), **forgotten)

        return picture

    return instead


def _in_memory_alone(original: Function) -> Function:
    """The write in flight still counts for the entries that were cut off."""

    def cut_back(self: GroupDisk, upto: int) -> None:
        flying = self._flying_last
        original(self, upto)
        self._flying_last = flying

    return cut_back


def _of_any_term(original: Function) -> Function:
    """A probe is granted even for a term that the voter is already in."""

    def asked(self: Election, sender: str, ask: AskVote) -> None:
        later = replace(ask, term=max(ask.term, self._disk.term + 1)) if ask.probing else ask
        original(self, sender, later)

    return asked


def _of_any_poll(original: Function) -> Function:
    """A vote counts in the current poll, whichever it was granted in."""

    def voted(self: Election, sender: str, vote: Vote) -> None:
        term = self.poll.term if self.poll else vote.term
        original(self, sender, replace(vote, term=term))

    return voted


def _whatever_its_disk_does(original: Function) -> Function:
    def received(self: Consensus, sender: str, letter: Any) -> None:
        faulty, self._disk.faulty = self._disk.faulty, False
        original(self, sender, letter)
        self._disk.faulty = faulty

    return received


MUTANTS = [
    Mutant("a snapshot forgets joined", GroupDisk, "_picture", _without(joined=False)),
    Mutant("what is cut off counts as written", GroupDisk, "cut_back", _in_memory_alone),
    Mutant("votes for who has less", Election, "_is_up_to_date", returning(True)),
    Mutant("an entry is decided by one disk", Leader, "advance", _by_its_leader_alone),
    Mutant("votes for everybody in one term", Election, "asked", _to_whoever_asks),
]

BY_LETTER = [
    Mutant("a snapshot forgets the vote", GroupDisk, "_picture", _without(vote="")),
    Mutant("a probe's term is ignored", Election, "asked", _of_any_term),
    Mutant("the term of a probe's answer is ignored", Election, "voted", _of_any_poll),
    Mutant("a faulty disk's member speaks", Consensus, "received", _whatever_its_disk_does),
]
"""Each needs a rare order of letters and writes, or costs an election and no more: tests that write
to one member letter by letter find these (tests/unit/core/consensus/test_conformance_mutants.py).
"""
