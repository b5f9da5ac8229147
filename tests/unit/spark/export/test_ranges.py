"""Ranges have every position of a log exactly once, wherever runs end."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from anabranch.errors import BadRequest
from anabranch_spark.export.ranges import (
    BYTES_MAX,
    RECORDS_MAX,
    Range,
    by_bytes,
    by_records,
)

positions = some.integers(0, 3_000)
lengths = some.integers(1, 400)
sizes = some.integers(1, 900)


def covered(ranges: list[Range]) -> list[int]:
    return [position for each in ranges for position in range(each.start, each.end)]


@some.composite
def sliced(draw: some.DrawFn) -> list[tuple[int, int, int]]:
    """A log's slices from some position on, as a scan plan gives them."""
    first, slices = draw(positions), list[tuple[int, int, int]]()
    for count, length in draw(some.lists(some.tuples(lengths, sizes), min_size=1, max_size=40)):
        slices.append((first, count, length))
        first += count
    return slices


@given(start=positions, more=positions, records=lengths)
def test_cuts_by_records_have_each_position_once(start: int, more: int, records: int) -> None:
    ranges = list(by_records(start, start + more, records))
    assert covered(ranges) == list(range(start, start + more))
    assert all(each.records <= records for each in ranges)
    assert all(each.end % records == 0 for each in ranges[:-1])


@given(ends=some.lists(positions, min_size=1, max_size=6), records=lengths)
def test_runs_that_ended_anywhere_cut_alike_and_leave_nothing_out(
    ends: list[int], records: int
) -> None:
    done, found = 0, list[Range]()
    for end in sorted(ends):
        found += by_records(done, end, records)
        done = max(done, end)
    assert covered(found) == list(range(max(ends)))
    whole = set(by_records(0, max(ends), records))
    full = {each for each in found if each.records == records}
    assert full <= whole, "a full range is the same whatever the runs were"


@given(start=positions, more=positions, records=lengths)
def test_full_ranges_only_leave_the_rest_to_a_later_run(
    start: int, more: int, records: int
) -> None:
    end = start + more
    ranges = list(by_records(start, end, records, full_only=True))
    done = ranges[-1].end if ranges else start
    assert covered(ranges) == list(range(start, done))
    assert all(each.end % records == 0 for each in ranges)
    assert end // records * records <= max(done, start)


@given(slices=sliced(), size=some.integers(1, 2_000))
def test_cuts_by_bytes_have_each_position_once(
    slices: list[tuple[int, int, int]], size: int
) -> None:
    start, end = slices[0][0], slices[-1][0] + slices[-1][1]
    ranges = list(by_bytes(start, end, slices, size))
    assert covered(ranges) == list(range(start, end))
    firsts = {first for first, _, _ in slices}
    assert all(each.start in firsts for each in ranges)
    for each in ranges:
        within = [length for first, _, length in slices if each.start <= first < each.end]
        assert sum(within) <= size or len(within) == 1


@given(slices=sliced(), size=some.integers(1, 2_000), cuts=some.lists(some.integers(0, 40)))
def test_a_run_that_goes_on_after_any_range_cuts_by_bytes_alike(
    slices: list[tuple[int, int, int]], size: int, cuts: list[int]
) -> None:
    start, end = slices[0][0], slices[-1][0] + slices[-1][1]
    whole = list(by_bytes(start, end, slices, size))
    found = list[Range]()
    for cut in [*cuts, len(whole)]:
        rest = [each for each in slices if each[0] >= start]
        some_of_it = list(by_bytes(start, end, rest, size))[:cut]
        found += some_of_it
        start = found[-1].end if found else start
    assert found == whole


def test_a_last_range_of_too_few_bytes_is_left_out_if_only_full_ones_are_wanted() -> None:
    slices = [(0, 10, 60), (10, 10, 60), (20, 10, 30)]
    assert list(by_bytes(0, 30, slices, 60, full_only=True)) == [Range(0, 10), Range(10, 20)]
    assert list(by_bytes(0, 30, slices, 60)) == [Range(0, 10), Range(10, 20), Range(20, 30)]


@pytest.mark.parametrize("records", [0, -1, RECORDS_MAX + 1])
def test_a_range_of_that_many_records_is_refused(records: int) -> None:
    with pytest.raises(BadRequest, match=str(records)):
        list(by_records(0, 10, records))


@pytest.mark.parametrize("size", [0, BYTES_MAX + 1])
def test_a_range_of_that_many_bytes_is_refused(size: int) -> None:
    with pytest.raises(BadRequest, match=str(size)):
        list(by_bytes(0, 10, [], size))


@pytest.mark.parametrize(("start", "end"), [(3, 3), (4, 3), (-1, 3), (0, 10**18 + 1)])
def test_what_is_no_range_is_refused(start: int, end: int) -> None:
    with pytest.raises(BadRequest):
        Range(start, end)
