"""Each simulation sees what it must: every broken rule, at the seed that is known to find it."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from _pytest.mark import ParameterSet
from tests.unit.core.belfast.sequencer import test_failures
from tests.unit.core.belfast.shard import test_shard_positions as positions
from tests.unit.core.bolt.broker.conftest import Props, Stage
from tests.unit.core.bolt.broker.read_path import test_subscriptions
from tests.unit.core.erwin.controller import test_leaving
from tests.unit.core.erwin.shard import test_unordered
from tests.unit.core.replication import test_replica

from anabranch.core.limits import Limits
from anabranch_sim.belfast import mutants as of_belfast
from anabranch_sim.bolt import mutants as of_bolt
from anabranch_sim.erwin import mutants as of_erwin
from anabranch_sim.kinds import KINDS
from anabranch_sim.mutants import known_seeds, search
from anabranch_sim.world.mutants import Mutant, StaleMutant, being, broken, hunt, returning
from anabranch_sim.world.simulation import Report

MORE = 20
"""Seeds that are tried if the known one doesn't find a mutant any more: a protocol that has changed
meets it elsewhere. `python -m anabranch_sim.mutants --find` writes the known seeds anew.
"""


SELDOM = 80
"""A mutant that is found this late is skipped when a change moves it, until it is found again."""


def mutants() -> list[ParameterSet]:
    return [
        pytest.param(kind.name, mutant, id=f"{kind.name}-{mutant.name}")
        for kind in KINDS.values()
        for mutant in kind.mutants
    ]


@pytest.mark.parametrize(("kind", "mutant"), mutants())
def test_a_mutant_is_found(kind: str, mutant: Mutant) -> None:
    found = search(KINDS[kind], mutant, MORE)
    if found.seed is None and known_seeds()[kind][mutant.name] >= SELDOM:
        pytest.skip("a change has moved what finds it: python -m anabranch_sim.mutants --find")
    assert found.seed is not None, f"it survived {found.runs} seeds"
    assert not found.unreached, "a mutant that is never called proves nothing"


def read_past_a_promotion() -> None:
    test_subscriptions.test_an_answer_from_after_a_promotion_that_was_not_heard_of_waits_for_it(
        Stage(Limits()), Props
    )


FINDS: dict[str, Callable[[], None]] = {
    "pages of any generation": read_past_a_promotion,
    "sealed in words alone": (
        test_replica.test_a_seal_is_journaled_before_it_is_said_and_binds_from_then_on
    ),
    "the stamp of a view is ignored": test_failures.test_a_report_of_an_older_view_is_void,
    "only the last failure voids places": (
        positions.test_a_replica_that_was_away_over_two_failures_keeps_nothing_that_was_void
    ),
    "a backup leads without the opening": (
        test_unordered.test_a_backup_that_lacks_unordered_data_does_not_take_over
    ),
    "controllers wait for the end of who leaves": (
        test_leaving.test_a_view_goes_on_without_a_member_that_is_about_to_end
    ),
}


@pytest.mark.parametrize(
    "mutant",
    [*of_bolt.BY_LETTER, *of_belfast.BY_LETTER, *of_erwin.BY_LETTER],
    ids=lambda mutant: mutant.name,
)
def test_a_mutant_that_no_seed_finds_is_found_letter_by_letter(mutant: Mutant) -> None:
    with broken(mutant) as planted, pytest.raises(AssertionError):
        FINDS[mutant.name]()
    assert not planted.unreached


def test_there_are_a_hundred_mutants_and_a_known_seed_for_each() -> None:
    known = known_seeds()
    names = {kind.name: [mutant.name for mutant in kind.mutants] for kind in KINDS.values()}
    assert sum(map(len, names.values())) >= 100
    for its in names.values():
        assert len(set(its)) == len(its)
    for kind, its in names.items():
        assert set(known[kind]) == {*its}


@dataclass
class Rules:
    """What a simulation could be made of."""

    broken: list[str] = field(default_factory=list[str])

    def holds(self) -> bool:
        return True

    @property
    def strict(self) -> bool:
        return True

    def unused(self) -> None: ...


def simulate(_: int) -> Report:
    rules = Rules()
    violations = [] if rules.holds() and rules.strict else ["a rule is broken"]
    return Report(0, "", violations)


def simulate_with(crashed_in: str) -> Callable[[int], Report]:
    return lambda seed: Report(seed, "", ["failed"], crash="a trace", crashed_in=crashed_in)


def test_a_mutant_of_a_function_or_a_property_is_found_and_taken_away_again() -> None:
    for mutant in (
        Mutant("holds never", Rules, "holds", returning(value=False)),
        Mutant("is not strict", Rules, "strict", being(value=False)),
    ):
        assert hunt(mutant, range(1), simulate).passed
    assert not simulate(0).failed


def test_a_mutant_of_what_is_not_there_is_an_error() -> None:
    gone = Mutant("of a rule that is gone", Rules, "held", returning(value=False))
    with pytest.raises(StaleMutant, match="held"), broken(gone):
        pass
    another = Mutant("of another kind", Rules, "strict", returning(value=False))
    with pytest.raises(StaleMutant, match="property"), broken(another):
        pass


def test_a_mutant_whose_parts_are_not_all_called_proves_nothing() -> None:
    unused = Mutant("of what nothing calls", Rules, "unused", returning(value=None))
    found = hunt(Mutant("half", Rules, "holds", returning(value=False), unused), [0], simulate)
    assert found.seed == 0
    assert found.unreached == [unused.name]
    assert not found.passed


def test_a_mutant_that_crashes_by_itself_is_an_error_and_not_found() -> None:
    mutant = Mutant("one that crashes", Rules, "holds", returning(value=True))
    with pytest.raises(StaleMutant, match="crashes by itself"):
        hunt(mutant, [0], simulate_with("services/anabranch_sim/bolt/mutants.py"))
    assert hunt(mutant, [0], simulate_with("services/anabranch/core/alarms.py")).seed == 0
