"""The conformance suite can fail: it finds each of these errors, planted one at a time."""

# Breaking what a class keeps to itself is the purpose here.
# pyright: reportPrivateUsage=false

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from tests.unit.core.replication.conformance import World

from anabranch.core.quorum import Quorum
from anabranch.core.replication.backup import Backup
from anabranch.core.replication.letters import Copy
from anabranch.core.replication.log import Log
from anabranch.core.replication.primary import Primary
from anabranch.core.replication.replica import Replica


def _own_disk_alone(self: Primary) -> None:
    if not self._closed:
        self._log.durable = max(self._log.durable, self._log.stored)


def _in_words_alone(self: Replica, sender: str, epoch: int, answer: Any) -> None:
    answer(self.log.adopted, self.log.stored)


def _in_the_same_term(self: Replica, to: int) -> None:
    if to < self.log.last:
        self.log.cut(to, self.log.terms.last)


def _of_any_term(self: Backup, letter: Copy) -> None:
    for item in letter.items:
        if item.first == self._log.last:
            self._log.add(item)
    self._owes = True


def _one_too_few(self: Quorum, members: int) -> int:
    return max(1, members - self.size(members))


def _admitted(self: Replica, view: int) -> bool:
    return view > self.view


def _nothing(*_: Any) -> None:
    """Instead of what should be done."""


MORE = 50


class Mutant(NamedTuple):
    name: str
    broken: type
    method: str
    instead: Callable[..., Any] | property
    seed: int
    """The first that found it: tried first, and then others, because changes move seeds."""


MUTANTS = [
    Mutant("durable is what the primary has", Primary, "count", _own_disk_alone, 1),
    Mutant("sealed in words alone", Replica, "seal", _in_words_alone, 0),
    Mutant("an incomplete backup is sealed", Replica, "complete", property(lambda _: True), 0),
    Mutant("a takeover asks one too few", Quorum, "to_recover", _one_too_few, 17),
    Mutant("logs that differ stay so", Log, "cut", _nothing, 7),
    Mutant("letters of any term count", Backup, "copy", _of_any_term, 43),
    Mutant("a tail is replaced in the same term", Replica, "_cut", _in_the_same_term, 0),
    Mutant("writers of any view are admitted", Replica, "_is_new", _admitted, 0),
    Mutant("a fence is established at once", Primary, "established", property(lambda _: True), 9),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=[each.name for each in MUTANTS])
def test_a_mutant_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutant.broken, mutant.method, mutant.instead)
    assert any(_fails(seed) for seed in (mutant.seed, *range(MORE)))


def _fails(seed: int) -> bool:
    world = World(seed, 3)
    try:
        world.run(2_500)
        world.heal()
    except AssertionError:
        return True
    return False
