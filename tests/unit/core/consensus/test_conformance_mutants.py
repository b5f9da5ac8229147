"""The conformance suite can fail: it finds each of these errors, planted one at a time."""

# Breaking what a class keeps to itself is the purpose here.
# pyright: reportPrivateUsage=false

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from tests.unit.core.consensus.conformance import conform
from tests.unit.core.consensus.council import Entries

from anabranch.core.consensus.disk import GroupDisk
from anabranch.core.consensus.election import Election, Poll
from anabranch.core.consensus.follower import Follower
from anabranch.core.consensus.leader import Leader
from anabranch.core.consensus.log import GroupLog


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


class Mutant(NamedTuple):
    name: str
    broken: type
    method: str
    instead: Callable[..., Any] | property
    seed: int
    """The first that finds it."""


MUTANTS = [
    Mutant("one disk commits", Leader, "advance", _by_its_leader_alone, 2),
    Mutant("votes for a candidate with less", Election, "_is_up_to_date", _yes, 1),
    Mutant("promises come before the disk", GroupDisk, "when_durable", _at_once, 30),
    Mutant("a vote is forgotten in a crash", GroupDisk, "cast", _forgetful, 2),
    Mutant("an offer is taken behind a gap", Follower, "_follows", _yes, 1),
    Mutant("one vote elects", Poll, "is_won", property(_yes), 1),
    Mutant("fresh members elect", Poll, "is_plain", property(_fresh_or_not), 1),
    Mutant("an image leaves old entries", GroupLog, "reset", _from_the_base, 2),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=[each.name for each in MUTANTS])
def test_a_mutant_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutant.broken, mutant.method, mutant.instead)
    with pytest.raises(AssertionError):
        conform(mutant.seed, Entries)
