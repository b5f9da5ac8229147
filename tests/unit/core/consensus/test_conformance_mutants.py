"""The conformance suite can fail: it finds each of these errors, planted one at a time."""

# Breaking what a class keeps to itself is the purpose here.
# pyright: reportPrivateUsage=false

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from tests.unit.core.consensus import test_disk, test_election
from tests.unit.core.consensus.conformance import conform
from tests.unit.core.consensus.council import Entries

from anabranch.core.consensus.disk import GroupDisk
from anabranch.core.consensus.election import Election, Poll
from anabranch.core.consensus.follower import Follower
from anabranch.core.consensus.leader import Leader
from anabranch.core.consensus.log import GroupLog
from anabranch_sim.consensus.mutants import BY_LETTER
from anabranch_sim.consensus.mutants import MUTANTS as SIMULATED
from anabranch_sim.world.mutants import Mutant as SimulatedMutant
from anabranch_sim.world.mutants import broken


def _by_its_leader_alone(self: Leader) -> None:
    if self._disk.durable >= self.first:
        self._group.commit(self._disk.durable)


def _at_once(self: GroupDisk, action: Callable[[], None]) -> None:
    action()


def _yes(*_: Any) -> bool:
    return True


def _fresh_or_not(self: Poll) -> bool:
    return len(self.votes) * 2 > self._members


def _forgetful(self: GroupDisk, term: int, vote: str) -> None:
    self.term, self.vote = term, vote


def _from_the_base(self: GroupLog, index: int, term: int) -> None:
    self.base, self.base_term = index, term


MORE = 50


class Mutant(NamedTuple):
    name: str
    broken: type
    method: str
    instead: Callable[..., Any] | property
    seed: int
    """The first that found it: tried first, and then others, because changes move seeds."""


MUTANTS = [
    Mutant("one disk commits", Leader, "advance", _by_its_leader_alone, 1),
    Mutant("votes for a candidate with less", Election, "_is_up_to_date", _yes, 1),
    Mutant("promises come before the disk", GroupDisk, "when_durable", _at_once, 111),
    Mutant("a vote is forgotten in a crash", GroupDisk, "cast", _forgetful, 3),
    Mutant("an offer is taken behind a gap", Follower, "_follows", _yes, 1),
    Mutant("one vote elects", Poll, "is_won", property(_yes), 1),
    Mutant("fresh members elect", Poll, "is_plain", property(_fresh_or_not), 2),
    Mutant("an image leaves old entries", GroupLog, "reset", _from_the_base, 2),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=[each.name for each in MUTANTS])
def test_a_mutant_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutant.broken, mutant.method, mutant.instead)
    assert any(_fails(seed) for seed in (mutant.seed, *range(MORE)))


def _fails(seed: int) -> bool:
    try:
        conform(seed, Entries)
    except AssertionError:
        return True
    return False


FINDS: dict[str, Callable[[], None]] = {
    "a snapshot forgets the vote": test_disk.test_a_vote_survives_a_snapshot_and_a_restart,
    "a snapshot forgets joined": (
        test_disk.test_a_member_that_has_joined_isnt_fresh_after_a_snapshot_and_a_restart
    ),
    "what is cut off counts as written": (
        test_disk.test_entries_cut_off_while_in_flight_with_the_new_term_do_not_count_as_durable
    ),
    "a probe's term is ignored": test_election.test_a_probe_of_a_term_that_has_begun_is_refused,
    "the term of a probe's answer is ignored": (
        test_election.test_an_answer_to_an_earlier_probe_is_no_vote_in_a_later_one
    ),
    "a faulty disk's member speaks": (
        test_disk.test_a_member_whose_disk_refuses_is_silent_until_the_disk_is_back
    ),
}


@pytest.mark.parametrize(
    "mutant",
    [each for each in (*SIMULATED, *BY_LETTER) if each.name in FINDS],
    ids=lambda mutant: mutant.name,
)
def test_a_rare_mutant_is_found_letter_by_letter(mutant: SimulatedMutant) -> None:
    with broken(mutant), pytest.raises(AssertionError):
        FINDS[mutant.name]()
