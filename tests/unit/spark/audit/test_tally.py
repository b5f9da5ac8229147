"""Totals of parts make the totals of the whole, in whatever order and however divided."""

from random import Random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from anabranch_spark.audit.report import DAMAGE_REPORTED, Damage
from anabranch_spark.audit.tally import Tally, kept_no_more, merged, of_damage, of_obstacle

damages = st.builds(
    Damage,
    st.sampled_from(["corrupt-batch", "object-missing"]),
    st.integers(0, 500),
    st.sampled_from(["a", "b"]),
    st.integers(0, 3),
    st.just(1),
    st.just("why"),
)
tallies = st.one_of(
    st.builds(
        Tally,
        portions=st.integers(0, 9),
        records=st.integers(0, 9),
        bytes=st.integers(0, 9),
        batches=st.integers(0, 9),
        sum=st.integers(0, 2**32 - 1),
        summed=st.integers(0, 9),
    ),
    st.lists(damages, max_size=60).map(of_damage),
    st.sampled_from("abc").map(of_obstacle),
)


@given(st.lists(tallies, max_size=8), st.randoms(use_true_random=False), st.integers(0, 8))
def test_order_and_division_make_no_difference(
    parts: list[Tally], random: Random, cut: int
) -> None:
    whole = merged(parts)
    shuffled = random.sample(parts, len(parts))
    assert merged(shuffled) == whole
    assert merged([merged(shuffled[:cut]), merged(shuffled[cut:])]) == whole


def test_all_damage_is_counted_and_the_first_is_kept() -> None:
    made = [Damage("footer", position, "o", 0, 1, "why") for position in range(300)]
    found = merged([of_damage(made[100:]), of_damage(made[:100])])
    assert found.damages == 300
    assert found.damage == made[:DAMAGE_REPORTED]


def test_what_nobody_kept_is_no_damage_when_it_is_missing() -> None:
    made = [
        Damage("object-missing", 1, "o", 0, 1, "gone"),
        Damage("corrupt-batch", 2, "o", 0, 1, "CRC"),
    ]
    found = kept_no_more(of_damage(made), "the plan ended")
    assert (found.damages, found.damage) == (1, made[1:])
    assert found.obstacles == ["the plan ended"]
    nothing = kept_no_more(of_damage(made[:1]), "the plan ended")
    assert (nothing.damages, nothing.damage) == (0, [])
    assert msgspec.structs.replace(nothing, obstacles=[]) == Tally()
