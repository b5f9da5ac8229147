"""The journal's copy in the bucket, as names and bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.errors import JournalCorrupt, WrongCluster
from anabranch.core.storage.archive import Segment, chain, covered, pack, unpack

ENTRIES = [b"one", b"", b"three" * 1_000]


def test_a_segment_is_read_as_it_was_packed() -> None:
    content = pack("here", 7, ENTRIES)
    assert unpack(content, "x", "here", Segment(7, 9)) == ENTRIES


def test_a_segment_of_another_cluster_is_refused() -> None:
    with pytest.raises(WrongCluster, match="there"):
        unpack(pack("there", 1, ENTRIES), "x", "here", Segment(1, 3))


@pytest.mark.parametrize("named", [Segment(7, 10), Segment(6, 9)])
def test_a_segment_that_is_not_what_its_name_says_is_refused(named: Segment) -> None:
    with pytest.raises(JournalCorrupt):
        unpack(pack("here", 7, ENTRIES), "x", "here", named)


@given(st.data())
def test_a_flipped_bit_is_never_read_as_something_else(data: st.DataObject) -> None:
    content = bytearray(pack("here", 7, ENTRIES[:2]))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(JournalCorrupt):
        unpack(bytes(content), "x", "here", Segment(7, 8))


def test_names_sort_as_entries_do_and_others_are_no_segments() -> None:
    assert Segment.parse(str(Segment(9, 12))) == Segment(9, 12)
    assert str(Segment(9, 12)) < str(Segment(10, 10))
    assert Segment.parse("cluster") is None


SPANS = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 10)), max_size=30)


@given(SPANS, st.integers(0, 30))
def test_a_chain_reaches_as_far_as_any_choice_does(
    spans: list[tuple[int, int]], after: int
) -> None:
    segments = [Segment(first, first + more) for first, more in spans]
    held = {index for each in segments for index in range(each.first, each.last + 1)}
    reach = after
    while reach + 1 in held:
        reach += 1
    chosen = chain(segments, after)
    assert [each for each in chosen if each in segments] == chosen
    assert (chosen[-1].last if chosen else after) >= reach
    reached = after
    for each in chosen:
        assert each.first <= reached + 1 <= each.last
        reached = each.last


@given(SPANS, st.integers(0, 50))
def test_what_a_snapshot_covers_is_never_needed_behind_it(
    spans: list[tuple[int, int]], index: int
) -> None:
    segments = [Segment(first, first + more) for first, more in spans]
    kept = [each for each in segments if each not in covered(segments, index)]
    assert chain(kept, index) == chain(segments, index)
