"""Set sums of batches, from their bytes alone."""

from __future__ import annotations

import random
from array import array

from anabranch.core.records.batch import rebase
from anabranch.core.records.record import Record, encode
from anabranch.core.records.set_sum import (
    MODULUS,
    UNKNOWN,
    batch_value,
    column_sum,
    combined,
    pack_values,
    packed_sum,
    set_sum,
)


def batches(count: int) -> list[bytes]:
    return [encode([Record(b"value %d" % turn)], now=1) for turn in range(count)]


def test_neither_order_nor_position_nor_division_counts() -> None:
    some = batches(9)
    whole = set_sum(some)
    shuffled = random.Random(1).sample(some, 9)
    assert set_sum(shuffled) == whole
    assert set_sum(b"".join(rebase(each, 77)) for each in some) == whole
    assert combined([set_sum(some[:4]), UNKNOWN, set_sum(some[4:])]) == whole


def test_loss_repetition_and_another_batch_are_seen() -> None:
    some = batches(9)
    whole = set_sum(some)
    assert set_sum(some[1:]) != whole
    assert set_sum([*some, some[0]]) != whole
    assert set_sum([*some[:8], *batches(10)[9:]]) != whole


def test_contents_exchanged_between_two_batches_are_seen() -> None:
    """A checksum is linear: of two batches that exchange a part, one's often grows by just what the
    other's loses.
    """
    chance = random.Random(2)
    for _ in range(1_000):
        one, other, delta = (chance.randrange(1, 1 << 31) for _ in range(3))
        moved = [batch_value(one + delta), batch_value(other + (1 << 31) - delta)]
        assert combined(moved) != combined([batch_value(one), batch_value(other + (1 << 31))])


def test_no_batch_and_no_set_but_the_empty_one_is_unknown() -> None:
    assert batch_value(0) == MODULUS
    assert combined([]) == combined([UNKNOWN]) == UNKNOWN
    assert combined([MODULUS, MODULUS]) == combined([1, MODULUS - 1]) == MODULUS


def test_a_column_is_summed_as_its_numbers_are() -> None:
    chance = random.Random(3)
    for size in (0, 1, 2, 1_000):
        numbers = [chance.choice((0, 1, MODULUS, chance.randrange(MODULUS))) for _ in range(size)]
        assert column_sum(array("I", numbers)) == combined(numbers)


def test_a_row_of_several_says_the_sum_of_any_of_its_batches() -> None:
    values = [batch_value(crc) for crc in (5, 6, 7)]
    packed = pack_values(values)
    assert packed_sum(packed, 1, 3) == combined(values[1:])
    assert packed_sum(b"", 0, 1) == packed_sum(packed[:8], 0, 3) == UNKNOWN
