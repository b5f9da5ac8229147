"""What is asked for page by page: how two logs differ, and the set sum of a range."""
# ruff: noqa: ASYNC109  # a timeout here travels with each request

from typing import Protocol, TypeVar

from anabranch.core.bolt.protocol.messages import ClientMessage, Compare
from anabranch.core.bolt.protocol.queries import Comparison, together
from anabranch.core.bolt.protocol.set_sums import ReadSetSum, SetSum
from anabranch.core.records.set_sum import combined
from anabranch.core.types import LogId, Position

A = TypeVar("A")


class Asked(Protocol):
    """A log, as far as these need it."""

    @property
    def id(self) -> LogId: ...

    async def ask(
        self, message: ClientMessage, answer: type[A], what: str, timeout: float | None
    ) -> A: ...


async def differences(log: Asked, other: LogId, timeout: float | None) -> Comparison:
    pages: list[Comparison] = []
    while not pages or pages[-1].next is not None:
        message = Compare(log.id, other, pages[-1].next if pages else None)
        pages.append(await log.ask(message, Comparison, "compare", timeout))
    return together(pages)


async def range_sum(
    log: Asked, start: Position | None, end: Position | None, timeout: float | None
) -> SetSum:
    """As one answer, however many the service gave. What is settled by the first is the end of
    all, if none is given: below it no position ever moves.
    """
    found = await log.ask(ReadSetSum(log.id, start, end), SetSum, "sum", timeout)
    end = found.settled if end is None else end
    while found.end < end:
        page = await log.ask(ReadSetSum(log.id, found.end, end), SetSum, "sum", timeout)
        assert page.end > found.end, "each answer covers some positions"
        unsummed = [*found.unsummed]
        for first, after in page.unsummed:
            follows = unsummed and unsummed[-1][1] == first
            unsummed.append((unsummed.pop()[0] if follows else first, after))
        total, summed = combined([found.sum, page.sum]), found.summed + page.summed
        found = SetSum(found.start, page.end, total, summed, unsummed, found.settled)
    return found
