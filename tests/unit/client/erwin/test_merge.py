"""Streams of shards as one log, against the log itself."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from anabranch.client.erwin.merge import Merge
from anabranch.client.erwin.pieces import Piece

SHARDS = ("a", "b", "c")


@given(
    rows=st.lists(st.tuples(st.sampled_from(SHARDS), st.integers(1, 4)), min_size=1, max_size=12),
    start=st.integers(0, 10),
    order=st.randoms(use_true_random=False),
    again=st.booleans(),
)
def test_every_position_is_taken_once_and_in_order(
    rows: list[tuple[str, int]], start: int, order: Random, *, again: bool
) -> None:
    """Whatever comes first, and though some of it comes again."""
    first, pieces = 0, list[Piece]()
    for shard, count in rows:
        pieces.append(Piece(shard, first, count, ()))
        first += count
    merge, taken = Merge(start), list[int]()
    coming = [piece for piece in pieces if piece.end > start] * (2 if again else 1)
    order.shuffle(coming)
    for piece in coming:
        merge.add(piece)
        while merge.ready:
            before = merge.next
            assert merge.take() is not None
            taken += range(before, merge.next)
    assert taken == list(range(start, first))


def test_a_position_that_no_known_shard_has_is_a_gap() -> None:
    merge = Merge(0)
    merge.tell("a", 0)
    assert not merge.gap
    merge.tell("a", 5)
    assert merge.gap
    merge.tell("b", merge.follow("b"))
    assert not merge.gap
    merge.add(Piece("b", 0, 5, ()))
    assert merge.ready
    assert not merge.gap
