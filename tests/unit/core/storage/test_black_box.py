"""Which records of a log count, and where entries lie."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.storage.black_box import (
    CONTENT_PARTS_MAX,
    MAGIC,
    PART_BYTES_MAX,
    Fold,
    Kind,
    Numbering,
    Part,
    Places,
    decode,
    encode,
    opening,
)

OWNER = "a log's shard"


def entries(numbering: Numbering, first: int, *contents: bytes) -> list[bytes]:
    return list(numbering.entries(first, contents))


def folded(records: list[bytes]) -> list[tuple[int, bytes]]:
    fold = Fold()
    found = (fold.take(position, record) for position, record in enumerate(records))
    return [(whole.index, whole.content) for whole in found if whole is not None]


def begin(life: int, before: int) -> tuple[bytes, Numbering]:
    return encode(opening(life, before, OWNER)), Numbering(life, OWNER)


def test_a_record_that_comes_twice_counts_once() -> None:
    opened, numbering = begin(1, 0)
    a, b = entries(numbering, 1, b"a", b"b")
    assert folded([opened, a, b, a, b, opened, a]) == [(1, b"a"), (2, b"b")]


@pytest.mark.parametrize(
    "made_up",
    [
        [9, 1, 2, 2],
        [Kind.ENTRY, 1, 2, -1],
        [Kind.ENTRY, 1, 2, 0],
        [Kind.ENTRY, 1, 2, 1],
        [Kind.ENTRY, 1, 2, 1 << 63],
        [Kind.ENTRY, 1, 2, 2, True, bytes(PART_BYTES_MAX + 1)],
        [Kind.OPENING, 0, 0, 0, True, b"", 1],
        [Kind.OPENING, 1, 0, 0, True, b"", 1],
        [Kind.OPENING, 2, 0, 0, True, b"", 1, "x" * 1_000_000],
    ],
    ids=lambda each: str(each)[:40],
)
def test_a_record_that_no_writer_makes_is_passed_over(made_up: list[object]) -> None:
    opened, numbering = begin(1, 0)
    a, b = entries(numbering, 1, b"a", b"b")
    foreign = MAGIC + msgspec.msgpack.encode(made_up)
    assert folded([opened, a, foreign, b]) == [(1, b"a"), (2, b"b")]


def test_a_record_behind_a_gap_counts_when_it_comes_again() -> None:
    opened, numbering = begin(1, 0)
    a, b, c = entries(numbering, 1, b"a", b"b", b"c")
    assert folded([opened, a, c, b, c]) == [(1, b"a"), (2, b"b"), (3, b"c")]


def test_a_life_that_ended_counts_no_more() -> None:
    first, old = begin(1, 0)
    second, new = begin(2, 1)
    a, late = entries(old, 1, b"a", b"late")
    (b,) = entries(new, 2, b"b")
    assert folded([first, a, second, late, b, late]) == [(1, b"a"), (2, b"b")]


def test_of_two_openings_that_end_the_same_life_the_first_counts() -> None:
    first, _ = begin(1, 0)
    second, winner = begin(2, 1)
    third, loser = begin(3, 1)
    (a,), (b,) = entries(winner, 1, b"a"), entries(loser, 1, b"b")
    assert folded([first, second, third, b, a]) == [(1, b"a")]


def test_an_entry_that_a_life_left_unfinished_is_void() -> None:
    first, old = begin(1, 0)
    second, new = begin(2, 1)
    half, *_ = entries(old, 1, bytes(PART_BYTES_MAX + 1))
    (a,) = entries(new, 1, b"a")
    assert folded([first, half, second, a]) == [(1, b"a")]


def parts(count: int) -> list[bytes]:
    """The first records of entry 1, none of which ends it."""
    return [
        encode(Part(kind=Kind.ENTRY, life=1, number=number, index=1, ends=False, content=b"-"))
        for number in range(1, count + 1)
    ]


def test_of_parts_that_somebody_makes_up_a_bounded_number_is_gathered() -> None:
    opened, _ = begin(1, 0)
    fold = Fold()
    for position, record in enumerate([opened, *parts(3 * CONTENT_PARTS_MAX)]):
        assert fold.take(position, record) is None
    assert fold.number == CONTENT_PARTS_MAX, "one less counted, and the opening"
    second, numbering = begin(2, 1)
    (a,) = entries(numbering, 1, b"a")
    assert fold.take(1 << 20, second) is None
    whole = fold.take(1 + (1 << 20), a)
    assert whole is not None
    assert whole.content == b"a"


def test_an_entry_of_as_many_parts_as_there_may_be_counts() -> None:
    opened, _ = begin(1, 0)
    last = Part(kind=Kind.ENTRY, life=1, number=CONTENT_PARTS_MAX, index=1, content=b".")
    found = folded([opened, *parts(CONTENT_PARTS_MAX - 1), encode(last)])
    assert found == [(1, b"-" * (CONTENT_PARTS_MAX - 1) + b".")]


def test_what_somebody_else_wrote_is_passed_over() -> None:
    opened, numbering = begin(1, 0)
    (a,) = entries(numbering, 1, b"a")
    assert decode(b"something else") is None
    assert folded([opened, b"something else", b"", a[:8] + b"\xff", a]) == [(1, b"a")]


def test_a_fold_goes_on_from_any_record_that_counts() -> None:
    opened, numbering = begin(1, 0)
    _, b = entries(numbering, 1, b"a", b"b")
    second, new = begin(2, 1)
    (c,) = entries(new, 3, b"c")
    part = decode(b)
    assert part is not None
    fold = Fold.at(part)
    found = [fold.take(position, each) for position, each in enumerate([b, second, c], 2)]
    assert [each.content for each in found if each is not None] == [b"b", b"c"]
    assert opened


@given(st.lists(st.integers(1, 3), max_size=30), st.integers(0, 40))
def test_places_are_a_table_of_positions(gaps: list[int], below: int) -> None:
    places, table = Places(), dict[int, int]()
    position = 0
    for index, gap in enumerate(gaps, 1):
        position += gap
        places.add(index, position)
        table[index] = position
    places.forget(below)
    assert places.first == max(1, min(below, len(gaps) + 1))
    for index in range(places.first, len(gaps) + 1):
        assert places.position(index) == table[index]
    places.add(len(gaps) + 1, position + 2)
    assert places.position(len(gaps) + 1) == position + 2
