"""The set sum of a range of a log, asked for page by page."""

from collections.abc import Awaitable, Callable

from anabranch.core.bolt.protocol.set_sums import ReadSetSum, SetSum
from anabranch.core.records.set_sum import combined
from anabranch.core.types import LogId, Position

Ask = Callable[[ReadSetSum], Awaitable[SetSum]]


async def range_sum(ask: Ask, log: LogId, start: Position | None, end: Position | None) -> SetSum:
    """As one answer, however many the service gave. What is settled by the first is the end of
    all, if none is given: below it no position ever moves.
    """
    found = await ask(ReadSetSum(log, start, end))
    end = found.settled if end is None else end
    while found.end < end:
        page = await ask(ReadSetSum(log, found.end, end))
        assert page.end > found.end, "each answer covers some positions"
        unsummed = found.unsummed
        if unsummed and page.unsummed and unsummed[-1][1] == page.unsummed[0][0]:
            joined = unsummed.pop()[0], page.unsummed.pop(0)[1]
            unsummed.append(joined)
        found = SetSum(
            found.start,
            page.end,
            combined([found.sum, page.sum]),
            found.summed + page.summed,
            [*unsummed, *page.unsummed],
            found.settled,
        )
    return found
