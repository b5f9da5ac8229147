"""A micro-batch never passes what is settled, its target or its bounds."""

from hypothesis import given
from hypothesis import strategies as st

from anabranch import PlannedSlice
from anabranch.core.types import LogId, ObjectId
from anabranch_spark.source.streams.admission import Admission, within_bytes

positions = st.integers(0, 500)


@given(
    st.builds(
        Admission,
        records_max=st.none() | st.integers(1, 300),
        records_min=st.integers(0, 300),
        delay=st.floats(0, 10),
    ),
    positions,
    positions,
    st.none() | positions,
    st.floats(0, 10),
)
def test_an_end_is_between_where_the_query_stands_and_all_bounds(
    admission: Admission, stands: int, settled: int, target: int | None, waited: float
) -> None:
    end = admission.end(stands=stands, settled=settled, target=target, waited=waited)
    assert end >= stands
    assert end in {stands, min(end, settled)}
    if target is not None:
        assert end <= max(stands, target)
    if admission.records_max is not None:
        assert end - stands <= admission.records_max


@given(st.integers(1, 50), positions, positions)
def test_a_target_is_reached_in_as_few_micro_batches_as_its_bound_allows(
    records_max: int, first: int, more: int
) -> None:
    admission = Admission(records_max=records_max, records_min=10, delay=1e9)
    stands, target, rounds = first, first + more, 0
    while (
        end := admission.end(stands=stands, settled=target + 5, target=target, waited=0)
    ) > stands:
        stands, rounds = end, rounds + 1
    assert stands == target
    assert rounds == -(-more // records_max)


def test_few_records_wait_for_more_or_for_the_delay() -> None:
    admission = Admission(records_min=10, delay=5)
    assert admission.end(stands=3, settled=12, target=None, waited=4.9) == 3
    assert admission.end(stands=3, settled=12, target=None, waited=5.0) == 12
    assert admission.end(stands=3, settled=13, target=None, waited=0) == 13
    assert admission.end(stands=3, settled=12, target=20, waited=0) == 3


@given(st.lists(st.integers(1, 100), min_size=1, max_size=30), st.integers(1, 500))
def test_bytes_are_bounded_but_one_slice_is_always_taken(lengths: list[int], most: int) -> None:
    slices = [
        PlannedSlice(nth, 1, ObjectId(1), 0, length, 0, LogId(1), nth, 0)
        for nth, length in enumerate(lengths)
    ]
    taken, whole = within_bytes(iter(slices), most)
    assert taken == slices[: len(taken)]
    assert taken
    assert whole == (len(taken) == len(slices))
    assert len(taken) == 1 or sum(each.length for each in taken) <= most
    if not whole:
        assert sum(each.length for each in slices[: len(taken) + 1]) > most
