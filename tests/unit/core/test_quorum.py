"""Quorums: what any two of them share, and what a group loses with its members."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.quorum import ALL, MAJORITY, Quorum, agreed, f_plus_one

RULES = [MAJORITY, ALL, f_plus_one(0), f_plus_one(1), f_plus_one(2)]


@pytest.mark.parametrize(
    ("rule", "sizes"),
    [
        (MAJORITY, [1, 2, 2, 3, 3]),
        (ALL, [1, 2, 3, 4, 5]),
        (f_plus_one(0), [1, 1, 1, 1, 1]),
        (f_plus_one(1), [2, 2, 2, 2, 2]),
        (f_plus_one(2), [3, 3, 3, 3, 3]),
    ],
)
def test_sizes_in_groups_of_one_to_five(rule: Quorum, sizes: list[int]) -> None:
    assert [rule.size(members) for members in range(1, 6)] == sizes


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("members", range(1, 6))
def test_so_many_members_as_recover_share_one_with_every_quorum(rule: Quorum, members: int) -> None:
    group = range(members)
    for quorum in combinations(group, rule.size(members)):
        for asked in combinations(group, rule.to_recover(members)):
            assert set(quorum) & set(asked)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("members", range(1, 6))
def test_one_member_fewer_may_miss_a_quorum(rule: Quorum, members: int) -> None:
    size, asked = rule.size(members), rule.to_recover(members) - 1
    assert asked == 0 or size + asked <= members


def test_any_two_majorities_share_a_member() -> None:
    for members in range(1, 6):
        assert 2 * MAJORITY.size(members) > members


@given(st.integers(1, 5), st.lists(st.integers(0, 9), min_size=1, max_size=5))
def test_what_is_agreed_is_held_by_a_quorum_and_no_more_is(size: int, held: list[int]) -> None:
    upto = agreed(held, size)
    if size > len(held):
        assert upto is None
        return
    assert upto is not None
    assert sum(each >= upto for each in held) >= size
    assert sum(each > upto for each in held) < size


def test_fewer_members_than_a_quorum_agree_on_nothing() -> None:
    assert agreed([7, 7], f_plus_one(2).size(2)) is None
    assert agreed([7, 7, 5], f_plus_one(2).size(3)) == 5
