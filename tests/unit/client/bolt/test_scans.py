"""What a client takes of a service that answers its questions about scan plans wrongly."""

import asyncio
import struct
from typing import Any, cast

import pytest
from msgspec.structs import replace

from anabranch.client.bolt.scans import SLICE_BYTES_CEILING, PlannedSlice, ScanPlan
from anabranch.core.bolt.protocol.queries import PlanPage, Slice
from anabranch.core.bolt.protocol.scans import Plan, PlanId, SignedRange, SignedScan
from anabranch.core.errors import BadFrame
from anabranch.core.types import LogId, ObjectId

LOG = LogId(7)
PLAN = Plan(PlanId(5), LOG, "orders", 3, 9, 0, 9, 100, 900, "me")
A = Slice(3, 2, ObjectId(1), 0, 100, 0, LOG, 3)
B = Slice(5, 4, ObjectId(1), 100, 50, 1, LOG, 5)


class _Link:
    """Gives these answers, one after the other."""

    def __init__(self, answers: list[Any]) -> None:
        self.answers = answers

    def milliseconds(self, _: float | None) -> int:
        return 1

    async def ask(self, *_: object) -> Any:
        return self.answers.pop(0)


def page(slices: list[Slice], following: int, seals: int | None = None) -> PlanPage:
    count = len(slices) if seals is None else seals
    return PlanPage(slices, following, seals=struct.pack(f">{count}Q", *range(count)))


def read(answers: list[Any]) -> list[PlannedSlice]:
    plan = ScanPlan(cast("Any", _Link(answers)), PLAN)

    async def all_pages() -> list[PlannedSlice]:
        return [each async for found in plan.pages() for each in found]

    return asyncio.run(all_pages())


def signed(ranges: list[SignedRange]) -> list[SignedRange]:
    slices = read([page([A, B], 9)])
    plan = ScanPlan(cast("Any", _Link([SignedScan(ranges, 1)])), PLAN)
    return asyncio.run(plan.sign(slices))


def test_pages_that_hold_the_range_are_taken() -> None:
    assert [each.first for each in read([page([A], 5), page([B], 9)])] == [3, 5]


@pytest.mark.parametrize(
    "answer",
    [
        page([], 3),
        page([], 9),
        page([A], 3),
        page([A], 9),
        page([B], 9),
        page([A, replace(B, first=6, count=3)], 9),
        page([A, replace(B, count=9)], 14),
        page([A, replace(B, count=0)], 5),
        page([A, replace(B, length=-1)], 9),
        page([A, replace(B, length=SLICE_BYTES_CEILING + 1)], 9),
        page([A, replace(B, offset=-1)], 9),
        page([A, replace(B, skip=-1)], 9),
        page([A, B], 9, seals=1),
    ],
)
def test_a_page_that_leaves_records_out_or_leads_nowhere_ends_the_scan(answer: PlanPage) -> None:
    with pytest.raises(BadFrame):
        read([answer])


def test_slices_that_touch_are_one_range() -> None:
    ranges = [SignedRange(ObjectId(1), 0, 150, "u")]
    assert signed(ranges) == ranges


@pytest.mark.parametrize(
    "ranges",
    [
        [],
        [SignedRange(ObjectId(1), 0, 100, "u")],
        [SignedRange(ObjectId(1), 0, 120, "u")],
        [SignedRange(ObjectId(1), 0, 1 << 40, "u")],
        [SignedRange(ObjectId(2), 0, 150, "u")],
        [SignedRange(ObjectId(1), 0, 100, "u"), SignedRange(ObjectId(1), 101, 50, "u")],
        [SignedRange(ObjectId(1), 0, 0, "u"), SignedRange(ObjectId(1), 0, 150, "u")],
    ],
)
def test_ranges_that_nobody_asked_for_are_refused(ranges: list[SignedRange]) -> None:
    with pytest.raises(BadFrame):
        signed(ranges)
