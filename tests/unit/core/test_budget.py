"""Shares of what a process has only so much of."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.budget import EVERYBODY, STRANGERS, Budget, Window

NAMES: tuple[str, ...] = ("ann", "bob", "eve")
STEPS = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(-1, 60)), max_size=80)


@given(STEPS)
def test_no_more_is_taken_than_there_is_and_what_is_given_back_is_there_again(
    steps: list[tuple[str, int]],
) -> None:
    budget = Budget(100)
    held: dict[str, int] = dict.fromkeys(NAMES, 0)
    for who, amount in steps:
        if amount < 0:
            budget.give(who, held[who])
            held[who] = 0
        elif budget.take(who, amount):
            held[who] += amount
        assert budget.used == sum(held.values()) <= 100
        assert all(budget.held(name) == held[name] for name in NAMES)


@given(STEPS)
def test_a_change_is_what_holding_giving_back_and_asking_for_room_are(
    steps: list[tuple[str, int]],
) -> None:
    changed, apart = Budget(100), Budget(100)
    for who, amount in steps:
        more = amount if amount >= 0 else -apart.held(who)
        if more >= 0:
            apart.hold(who, more)
        else:
            apart.give(who, -more)
        assert changed.change(who, more) == apart.has_room(who)
        assert [changed.used, *map(changed.held, NAMES)] == [apart.used, *map(apart.held, NAMES)]


def test_nobody_gives_back_what_another_holds() -> None:
    budget = Budget(100)
    budget.change("ann", 50)
    with pytest.raises(AssertionError):
        budget.change("bob", -1)


@given(st.integers(1, 5), st.permutations(range(6)))
def test_whoever_takes_all_they_can_get_leaves_a_share_for_the_next(
    greedy: int, order: list[int]
) -> None:
    budget = Budget(6_000)
    names = [f"greedy-{nth}" for nth in order if nth < greedy]
    for _ in range(6_000):
        for who in names:
            budget.take(who, 1)
    share = 6_000 // (greedy + 1)
    assert all(abs(budget.held(who) - share) <= greedy + 1 for who in names)
    assert budget.take("late", share // 2)


def test_everybody_may_have_everything_where_clients_are_not_told_apart() -> None:
    budget = Budget(10)
    assert budget.take(EVERYBODY, 10)
    assert not budget.take(EVERYBODY, 1)
    assert not budget.take(STRANGERS, 1)


def test_one_large_request_gets_what_is_free() -> None:
    budget = Budget(10)
    assert budget.take("ann", 10)
    budget.give("ann", 10)
    assert budget.take("ann", 2)
    assert not budget.take("ann", 4)


def test_what_is_held_already_is_counted_also_beyond_the_limit() -> None:
    budget = Budget(10)
    budget.hold("ann", 15)
    assert (budget.used, budget.room("bob")) == (15, -5)
    budget.give("ann", 15)
    assert budget.room("bob") == 10


def test_a_window_gives_back_by_itself() -> None:
    window = Window(100, 800)
    taken = [window.take("eve", now) for now in range(100)]
    assert sum(taken) == 50
    assert window.take("ann", 100)
    assert not window.take("eve", 799)
    assert window.take("eve", 1_800)
    assert all(window.take(EVERYBODY, 1_800) for _ in range(1_000))


@pytest.mark.parametrize("change", [Budget.take, Budget.hold, Budget.give])
def test_less_than_nothing_is_neither_taken_nor_given_back(
    change: Callable[[Budget, str, int], object],
) -> None:
    budget = Budget(10)
    with pytest.raises(AssertionError):
        change(budget, "ann", -1)
    assert not budget.used


@given(
    st.integers(0, 20), st.integers(0, 30), st.integers(0, 30), st.sampled_from([EVERYBODY, "ann"])
)
def test_there_is_room_where_something_may_be_taken(
    limit: int, ours: int, theirs: int, who: str
) -> None:
    budget = Budget(limit)
    budget.hold(who, ours)
    budget.hold("bea", theirs)
    assert budget.has_room(who) == (budget.room(who) > 0)
