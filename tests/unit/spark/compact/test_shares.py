"""How a wave is cut into tasks."""

from anabranch.client.bolt.compactors import CopyOrder
from anabranch.core.bolt.protocol.compaction import Copied
from anabranch.core.types import LogId, ObjectId
from anabranch_spark.compact.report import verdict_of
from anabranch_spark.compact.shares import Numbered, share_out


def order(sequence: int, size: int, extents: int = 1) -> Numbered:
    length = size // extents
    named = [Copied(turn, 1, ObjectId(turn), 0, length, 7) for turn in range(extents)]
    return Numbered(sequence, CopyOrder(LogId(1), named, [extents], [0] * extents))


def cut(*orders: Numbered, **bounds: int) -> list[list[int]]:
    return [[each.sequence for each in share] for share in share_out(orders, **bounds)]


def test_tasks_are_bounded_in_bytes_and_extents() -> None:
    orders = [order(number, 100, 10) for number in range(6)]
    assert cut(*orders, shares_min=1) == [[0, 1, 2, 3, 4, 5]]
    assert cut(*orders, bytes_max=250, shares_min=1) == [[0, 1], [2, 3], [4, 5]]
    assert cut(*orders, extents_max=30, shares_min=1) == [[0, 1, 2], [3, 4, 5]]
    assert cut(*orders, bytes_max=1) == [[0], [1], [2], [3], [4], [5]], "one copy at least"
    assert cut() == []


def test_there_are_tasks_for_every_core() -> None:
    orders = [order(number, 100) for number in range(6)]
    assert cut(*orders, shares_min=3) == [[0, 1], [2, 3], [4, 5]]


def test_an_order_says_what_is_to_be_fetched() -> None:
    first, second = order(1, 100, 2).order.slices
    assert (first.object, first.length, second.first) == (0, 50, 1)


def test_damage_decides_then_whatever_stood_in_the_way() -> None:
    assert verdict_of(["done", "done"], []) == "done"
    assert verdict_of(["done", "unknown"], []) == "unknown"
    assert verdict_of(["done"], ["away"]) == "unknown"
    assert verdict_of(["unknown", "damaged"], ["away"]) == "damaged"
