"""The lowest sequence that members must know, against a list."""

from hypothesis import given
from hypothesis import strategies as st

from anabranch.client.erwin.outstanding import Outstanding


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 8)), max_size=60))
def test_the_lowest_is_the_least_that_anybody_holds(steps: list[tuple[bool, int]]) -> None:
    outstanding, held = Outstanding(), list[int]()
    for begins, sequence in steps:
        if begins:
            outstanding.hold(sequence)
            held.append(sequence)
        elif sequence in held:
            outstanding.release(sequence)
            held.remove(sequence)
        if held:
            assert outstanding.lowest == min(held)
