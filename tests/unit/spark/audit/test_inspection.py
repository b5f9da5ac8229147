"""What the bytes of a portion prove."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import PlannedSlice
from anabranch.core.records.objects import TRAILER_BYTES, lay_out
from anabranch.core.records.set_sum import combined, set_sum
from anabranch.core.types import LogId
from anabranch_spark.audit.inspection import (
    footer_damage,
    footer_length,
    inspect,
    position_of,
)
from anabranch_spark.audit.portions import Portion, portions

Batch = Callable[..., bytes]
Piece = Callable[..., PlannedSlice]


@pytest.fixture
def three(batch: Batch) -> list[bytes]:
    return [batch(b"a", b"b"), batch(b"c"), batch(b"d", b"e", b"f")]


def test_sound_bytes_have_the_set_sum_of_their_batches(three: list[bytes], piece: Piece) -> None:
    content = b"".join(three)
    found = inspect(Portion([piece(10, 6, length=len(content))], []), content, "o")
    assert (found.batches, found.summed, found.sum) == (3, 6, set_sum(three))
    assert found.damage == []


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_damaged_batch_is_placed(three: list[bytes], piece: Piece, at: int) -> None:
    before = sum(map(len, three[:at]))
    content = bytearray(b"".join(three))
    content[before + len(three[at]) - 1] ^= 4
    portion = Portion([piece(10, 6, offset=7, length=len(content))], [])
    (damage,) = inspect(portion, bytes(content), "o").damage
    assert damage.kind == "corrupt-batch"
    assert damage.position == [10, 12, 13][at]
    assert (damage.offset, damage.length) == (7 + before, len(three[at]))


def test_a_damaged_length_takes_the_rest_along(three: list[bytes], piece: Piece) -> None:
    content = bytearray(b"".join(three))
    content[len(three[0]) + 8] ^= 255
    portion = Portion([piece(10, 6, length=len(content))], [])
    (damage,) = inspect(portion, bytes(content), "o").damage
    assert (damage.position, damage.offset) == (12, len(three[0]))
    assert damage.offset + damage.length == len(content)


def test_fewer_records_than_named_are_lost_records(three: list[bytes], piece: Piece) -> None:
    content = b"".join(three)
    portion = Portion([piece(10, 7, length=len(content))], [])
    (damage,) = inspect(portion, content, "o").damage
    assert (damage.kind, damage.reason) == (
        "lost-records",
        "7 records were named and 6 are there",
    )


def test_a_batch_counts_where_its_first_record_is_meant(three: list[bytes], piece: Piece) -> None:
    size = sum(map(len, three))
    cut = Portion([piece(0, 4, length=size, skip=1)], [])
    assert inspect(cut, b"".join(three), "o").sum == set_sum(three[1:])
    split = Portion([piece(0, 1, length=size), piece(5, 5, length=size, skip=1)], [])
    found = inspect(split, b"".join(three), "o")
    assert (found.sum, found.summed) == (set_sum(three), 6)
    unsummed = Portion([piece(0, 6, length=size)], [(2, 3)])
    assert inspect(unsummed, b"".join(three), "o").sum == set_sum([three[0], three[2]])


@given(st.lists(st.lists(st.binary(max_size=4), min_size=1, max_size=3), min_size=1, max_size=6))
def test_portions_of_any_cut_make_the_sum_of_all(
    batch: Batch, piece: Piece, contents: list[list[bytes]]
) -> None:
    batches = [batch(*values) for values in contents]
    content, counts = b"".join(batches), [len(values) for values in contents]
    total = sum(counts)
    for cut in range(1, total):
        size = len(content)
        slices = [
            piece(0, cut, length=size),
            piece(cut + 9, total - cut, length=size, skip=cut),
        ]
        (portion,) = portions(slices, [])
        assert inspect(portion, content, "o").sum == combined(set_sum([each]) for each in batches)


def test_positions_follow_the_slices(piece: Piece) -> None:
    slices = [piece(10, 2, skip=1), piece(20, 2, skip=4)]
    assert [position_of(slices, ordinal) for ordinal in range(7)] == [10, 10, 11, 20, 20, 21, 21]


def test_a_footer_of_this_cluster_that_holds_the_bytes_is_sound(
    three: list[bytes], piece: Piece
) -> None:
    parts, _ = lay_out("here", [(LogId(1), three[:1]), (LogId(2), three[1:])])
    content, first = b"".join(parts), len(three[0])
    inside = Portion([piece(0, 4, offset=first, length=len(three[1]) + len(three[2]))], [])
    across = Portion([piece(0, 3, length=first + len(three[1]))], [])
    more = Portion([piece(0, 5, offset=first, length=len(three[1]))], [])

    def damage(portion: Portion, cluster: str = "here", content: bytes = content) -> list[str]:
        size = len(content)
        length = footer_length(content[-TRAILER_BYTES:], size, "o")
        found = footer_damage(content[-length:], size, cluster, [portion], "o")
        return [each.reason for each in found]

    assert damage(inside) == []
    assert "no row" in damage(across)[0]
    assert "4 records where the plan names 5" in damage(more)[0]
    assert "'here'" in damage(inside, "there")[0]
    assert "cut short" in damage(inside, content=content[:-1])[0]
    assert damage(inside, content=b"")
