"""Which positions a comparison reads, against logs that are lists of records."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from anabranch_spark.diff.ranges import (
    UNSURE_MAX,
    Extent,
    Range,
    cut_alike,
    reads,
    total,
)


class Found(NamedTuple):
    """As the service says it."""

    shared: int
    since: int
    only_a: list[Range]
    only_b: list[Range]
    trimmed_a: list[Range]
    trimmed_b: list[Range]
    complete: bool = True


def runs(positions: list[int]) -> list[Range]:
    found: list[Range] = []
    for each in positions:
        if found and found[-1][1] == each:
            found[-1] = (found[-1][0], each + 1)
        else:
            found.append((each, each + 1))
    return found


def naive(a: list[str], b: list[str], start_a: int, start_b: int) -> Found:
    """What the service would say of two logs of these records, of which some were trimmed."""
    since = max(start_a, start_b)
    shared = since
    while shared < min(len(a), len(b)) and a[shared] == b[shared]:
        shared += 1
    in_a, in_b = set(a[start_a:]), set(b[start_b:])
    lacking_a = [at for at in range(start_a, len(a)) if a[at] not in in_b]
    lacking_b = [at for at in range(start_b, len(b)) if b[at] not in in_a]
    trimmed_a = [at for at in lacking_a if a[at] in b]
    trimmed_b = [at for at in lacking_b if b[at] in a]
    return Found(
        shared,
        since,
        runs([at for at in lacking_a if at not in trimmed_a]),
        runs([at for at in lacking_b if at not in trimmed_b]),
        runs(trimmed_a),
        runs(trimmed_b),
    )


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[str], list[str], int, int]:
    """Common records in one order, and own ones of each log between them."""
    common = [f"c{turn}" for turn in range(draw(st.integers(0, 12)))]
    sides: list[list[str]] = []
    for name in "ab":
        side: list[str] = []
        for turn, each in enumerate([*common, ""]):
            side += [f"{name}{turn}.{own}" for own in range(draw(st.integers(0, 2)))]
            side += [each] if each else []
        sides.append(side)
    a, b = sides
    starts = [draw(st.sampled_from([0, 0, draw(st.integers(0, len(side)))])) for side in sides]
    return a, b, starts[0], starts[1]


@given(logs(), st.data())
def test_both_ends_come_after_the_same_common_records(
    drawn: tuple[list[str], list[str], int, int], data: st.DataObject
) -> None:
    a, b, start_a, start_b = drawn
    found = naive(a, b, start_a, start_b)
    was_a = Extent(start_a, data.draw(st.integers(start_a, len(a))))
    was_b = Extent(start_b, data.draw(st.integers(start_b, len(b))))
    new_a, new_b = cut_alike(found, was_a, was_b)
    both = set(a[start_a:]) & set(b[start_b:])
    left_a = [each for each in a[new_a.start : new_a.end] if each in both]
    left_b = [each for each in b[new_b.start : new_b.end] if each in both]
    assert left_a == left_b
    assert (new_a.start, new_b.start) == (start_a, start_b)
    # No more is cut off than must be: one of them keeps its end, and the other's next is common.
    assert new_a.end == was_a.end or new_b.end == was_b.end
    assert new_a.end == was_a.end or a[new_a.end] in both
    assert new_b.end == was_b.end or b[new_b.end] in both


@given(logs())
def test_reads_give_each_log_its_records_in_order_and_share_the_middle(
    drawn: tuple[list[str], list[str], int, int],
) -> None:
    a, b, start_a, start_b = drawn
    found = naive(a, b, start_a, start_b)
    ranges = reads(found, Extent(start_a, len(a)), Extent(start_b, len(b)))

    def positions(*parts: Range) -> list[int]:
        return [at for first, end in parts for at in range(first, end)]

    mine = positions(ranges.head_a, ranges.middle, ranges.tail_a)
    theirs = positions(ranges.head_b, ranges.middle, ranges.tail_b)
    assert mine == [*range(start_a, len(a))]
    assert theirs == [*range(start_b, len(b))]
    assert all(a[at] == b[at] for at in positions(ranges.middle))


def last_values(log: list[str], start: int, keys: dict[str, str]) -> dict[str, int]:
    return {keys[record]: at for at, record in enumerate(log) if at >= start}


@given(logs(), st.data())
def test_only_keys_outside_the_middle_can_differ(
    drawn: tuple[list[str], list[str], int, int], data: st.DataObject
) -> None:
    """The reason why the middle is read for the keys of heads and tails only."""
    a, b, start_a, start_b = drawn
    keys = {each: data.draw(st.sampled_from("xyz")) for each in sorted({*a, *b})}
    ranges = reads(naive(a, b, start_a, start_b), Extent(start_a, len(a)), Extent(start_b, len(b)))
    own = {keys[a[at]] for first, end in (ranges.head_a, ranges.tail_a) for at in range(first, end)}
    own |= {
        keys[b[at]] for first, end in (ranges.head_b, ranges.tail_b) for at in range(first, end)
    }
    last_a, last_b = last_values(a, start_a, keys), last_values(b, start_b, keys)
    for key in {*last_a, *last_b} - own:
        assert a[last_a[key]] == b[last_b[key]]


def test_an_end_that_is_not_known_is_left_alone() -> None:
    found = Found(0, 0, [(0, 2)], [], [], [], complete=False)
    extents = Extent(0, 4), Extent(0, 1)
    assert cut_alike(found, *extents) == extents


def test_many_ranges_become_one_that_claims_less() -> None:
    trimmed = [(turn * 4, turn * 4 + 1) for turn in range(UNSURE_MAX + 1)]
    found = Found(9, 0, [], [], trimmed, trimmed[:UNSURE_MAX])
    ranges = reads(found, Extent(0, 999), Extent(0, 999))
    assert ranges.unsure_a == [(0, UNSURE_MAX * 4 + 1)]
    assert ranges.unsure_b == trimmed[:UNSURE_MAX]


def test_logs_with_nothing_in_common_are_read_whole() -> None:
    found = Found(0, 0, [(0, 3)], [(0, 2)], [], [])
    ranges = reads(found, Extent(0, 3), Extent(0, 2))
    assert (ranges.head_a, ranges.head_b, ranges.middle) == ((0, 0),) * 3
    assert (ranges.tail_a, ranges.tail_b) == ((0, 3), (0, 2))
    assert ranges.records == 5
    assert total([(0, 3), (5, 6)]) == 4
