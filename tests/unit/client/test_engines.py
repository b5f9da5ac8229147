"""Where the last records of a log begin, also where no-ops lie between records."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from anabranch.client import engines
from anabranch.client.engines import Bounds, last_position
from anabranch.core.errors import DeadlineExceeded
from anabranch.core.types import Position


@dataclass
class Sparse:
    """A Belfast log with records at these positions."""

    at: list[Position]
    engine = "belfast"

    async def portions(
        self, first: Position, count: int | None, **_: Any
    ) -> AsyncGenerator[list[SimpleNamespace]]:
        for position in self.at:
            if position >= first:
                yield [SimpleNamespace(position=position)]


def last(at: list[Position], count: int, now: Bounds) -> Position:
    return asyncio.run(last_position(cast("Any", Sparse(at)), now, count))


def test_the_last_records_are_found_behind_no_ops() -> None:
    now = Bounds(0, 10_000, 10_000)
    assert last([5, 900, 901], 2, now) == 900
    assert last([5, 900, 901], 3, now) == 5
    assert last([5, 900, 901], 9, now) == 0
    assert last([9_998, 9_999], 1, now) == 9_999
    assert last([], 0, now) == 10_000


def test_nothing_is_looked_for_below_the_start_or_very_far(monkeypatch: pytest.MonkeyPatch) -> None:
    assert last([5], 2, Bounds(7, 10, 10)) == 7
    monkeypatch.setattr(engines, "SPAN_MAX", 16)
    assert last([5], 2, Bounds(0, 10_000, 10_000)) == 10_000 - 16


@dataclass
class Waiting(Sparse):
    """An Erwin log whose records from `stable` on have no position yet."""

    stable: Position = 0
    engine = "erwin"

    async def portions(
        self, first: Position, count: int | None = None, *, stable_only: bool = False, **_: Any
    ) -> AsyncGenerator[list[SimpleNamespace]]:
        for position in self.at:
            if first <= position < self.stable:
                yield [SimpleNamespace(position=position)]
        if not stable_only:
            raise DeadlineExceeded.of_read("read it", 30_000)


@pytest.mark.parametrize(("count", "first"), [(1, 5), (3, 3), (4, 2), (9, 0)])
def test_the_last_records_of_an_erwin_log_are_found_while_their_order_is_held_up(
    count: int, first: Position
) -> None:
    log = cast("Any", Waiting(list(range(6)), 3))
    now = Bounds(0, 6, 6, unordered=3)
    assert asyncio.run(last_position(log, now, count)) == first
