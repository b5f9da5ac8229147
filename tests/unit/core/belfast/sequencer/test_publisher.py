"""Windows: how many are ahead, who has seats, in which groups (Belfast, 4.4, 4.7)."""

import pytest
from tests.unit.core.belfast.sequencer.policy_stage import RULES, Stage

from anabranch.core.belfast.ledger.decisions import CutTo, OpenWindow


@pytest.mark.parametrize("rounds", [1, 2, 5, 20])
def test_however_short_windows_are_some_rounds_are_published_ahead(rounds: int) -> None:
    stage = Stage.seated("a", window=rounds, ahead_rounds=10)
    for window in range(20):
        for done in range(1, rounds + 1):
            stage.report("a", window, done)
            assert stage.office.plan.rounds_left >= 10


def test_the_first_window_waits_for_as_many_shards_as_the_rules_say() -> None:
    stage = Stage.seated("a", "b", "c")
    assert [len(each.quotas) for each in stage.of(OpenWindow)] == [3]
    assert RULES.shards_min == 1


def test_many_shards_take_turns_in_groups_and_a_cut_waits_for_one() -> None:
    names = "abcdefg"
    stage = Stage.seated(*names)
    window = stage.windows[0]
    assert (window.groups, window.cuts) == (2, 20)
    first = [names[seat.shard] for seat in window.seats if seat.group == 0]
    for name in first:
        stage.report(name, 0, 1)
    assert stage.of(CutTo) == [CutTo(window=0, cut=1)]
    assert stage.ledger.confirmed == 10 * len(first)


def test_few_shards_are_not_staggered_and_none_where_the_rules_say_so() -> None:
    assert Stage.seated(*"abcdef").windows[0].groups == 1
    assert Stage.seated(*"abcdefgh", stagger=False).windows[0].groups == 1


def test_cuts_without_room_wait_and_become_one() -> None:
    stage = Stage.seated("a")
    for done in range(1, 5):
        assert not stage.report("a", 0, done, room=False)
    assert stage.settle() == [CutTo(window=0, cut=4)]


def test_a_cut_goes_to_a_windows_end_before_the_next_begins() -> None:
    stage = Stage.seated("a", ahead_rounds=20)
    decided = stage.report("a", 1, 3)
    assert [each for each in decided if isinstance(each, CutTo)] == [
        CutTo(window=0, cut=10),
        CutTo(window=1, cut=3),
    ]


def test_what_a_report_claims_must_be_durable_and_be_within_its_window() -> None:
    stage = Stage.seated("a")
    stage.report("a", 0, 5, durable=49)
    stage.report("a", 0, 11, durable=1000)
    stage.report("a", 7, 1, durable=1000)
    assert not stage.of(CutTo)
    assert stage.office.plan.counters.nonsense == 2
