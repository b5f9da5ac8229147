"""Partitions cover a scan exactly once, and are as large as they may be."""

from hypothesis import given
from hypothesis import strategies as st

from anabranch import PlannedSlice
from anabranch.core.types import LogId, ObjectId
from anabranch_spark.source.cuts import cut, groups

sizes = st.lists(st.integers(1, 1_000), max_size=60)


def slices_of(lengths: list[int]) -> list[PlannedSlice]:
    return [
        PlannedSlice(nth, 1, ObjectId(nth), 0, length, 0, LogId(1), nth, 0)
        for nth, length in enumerate(lengths)
    ]


@given(sizes, st.integers(1, 3_000), st.integers(1, 80))
def test_every_slice_is_in_one_part_in_order(
    lengths: list[int], bytes_max: int, parts_min: int
) -> None:
    slices = slices_of(lengths)
    parts = cut(slices, bytes_max=bytes_max, parts_min=parts_min)
    assert [each for part in parts for each in part] == slices
    assert all(parts)


@given(sizes, st.integers(1, 3_000), st.integers(1, 80))
def test_a_part_has_no_more_bytes_than_it_may_unless_it_is_one_slice(
    lengths: list[int], bytes_max: int, parts_min: int
) -> None:
    for part in cut(slices_of(lengths), bytes_max=bytes_max, parts_min=parts_min):
        assert len(part) == 1 or sum(each.length for each in part) <= bytes_max


@given(sizes, st.integers(1, 3_000), st.integers(1, 80))
def test_there_are_as_many_parts_as_are_wanted_or_slices(
    lengths: list[int], bytes_max: int, parts_min: int
) -> None:
    parts = cut(slices_of(lengths), bytes_max=bytes_max, parts_min=parts_min)
    assert len(parts) >= min(parts_min, len(lengths))


def test_parts_are_not_smaller_than_they_need_be() -> None:
    parts = cut(slices_of([10] * 10), bytes_max=40)
    assert [len(part) for part in parts] == [4, 4, 2]
    assert len(cut(slices_of([10] * 10), bytes_max=1_000)) == 1
    assert cut([], bytes_max=1) == []


@given(sizes, st.integers(1, 10), st.integers(1, 3_000))
def test_groups_to_be_signed_are_bounded_and_whole(
    lengths: list[int], slices_max: int, bytes_max: int
) -> None:
    slices = slices_of(lengths)
    found = [*groups(slices, slices_max=slices_max, bytes_max=bytes_max)]
    assert [each for group in found for each in group] == slices
    for group in found:
        assert 1 <= len(group) <= slices_max
        assert len(group) == 1 or sum(each.length for each in group) <= bytes_max
