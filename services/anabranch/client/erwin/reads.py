"""Reads of an Erwin log: from the shards that have its records, until where it was durable when the
read came so far (LazyLog, 4.4).
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import NamedTuple

from anabranch.client.erwin.link import Link
from anabranch.client.erwin.pieces import piece
from anabranch.client.session import arguments
from anabranch.client.session.records import LogRecord
from anabranch.core.errors import BadFrame, BadRequest, BatchUnreadable, DeadlineExceeded
from anabranch.core.erwin.protocol.messages import Read, Records, Span
from anabranch.core.sequencing.protocol.messages import Directory, Locate
from anabranch.core.types import NEVER, LogId, Milliseconds, Position

_RECORDS_MAX = 10_000
"""Asked of one shard at once."""


class _Batch(NamedTuple):
    """As a shard sent it; without content it is no-ops."""

    shard: str
    first: Position
    records: int
    content: bytes


class Reader:
    """One read. What a shard answers is asked of it once."""

    def __init__(self, link: Link, id: LogId, log: str, timeout: float | None) -> None:
        self._link, self._id, self._what = link, id, f"read {log}"
        self._timeout, self._limit_ms = timeout, link.milliseconds(timeout)
        self._batches: dict[Position, _Batch] = {}
        """By the first position that is meant."""

    async def portions(
        self, start: Position, count: int | None, wait: float, *, stable_only: bool
    ) -> AsyncGenerator[list[LogRecord], None]:
        """At most `count` records from `start` on; no portion is empty."""
        what = self._what
        start, wait = arguments.position(what, start), arguments.seconds(what, wait)
        left = NEVER if count is None else arguments.number(what, count, NEVER)
        if left == 0:
            raise BadRequest(what, "count must be 1 or more")
        # A reader that waits sends one request, and its shard answers when there is something.
        first, end, some = start, NEVER, False
        wait_ms = longest_ms = round(wait * 1_000)
        while left > 0 and start < end:
            await self._fetch(start, left, wait_ms)
            before = start
            records, start = self._taken(start, end, left)
            if records:
                left, some = left - len(records), True
                yield records
            if start > before:
                # What is durable below `end` may become stable piece by piece.
                wait_ms = 0 if end == NEVER else max(1, self._limit_ms)
            elif stable_only:
                end = start
            elif end == NEVER:
                end = max(start, await self._link.tail(self._timeout))
                wait_ms = max(1, self._limit_ms)
            else:
                raise _unordered(what, self._limit_ms, start)
        if longest_ms and left > 0 and not some and start > first:
            # It found only no-ops so far.
            await self._fetch(start, left, longest_ms)
            records, _ = self._taken(start, NEVER, left)
            if records:
                yield records

    def _taken(self, start: Position, end: Position, most: int) -> tuple[list[LogRecord], Position]:
        """The records that are there from `start` up to `end`, and where they end. No-ops are
        passed at once, whatever is asked for: an append may be 100,000 of them.
        """
        records: list[LogRecord] = []
        while start < end and len(records) < most:
            batch = self._batches.pop(start, None)
            if batch is None:
                break
            try:
                made = piece(self._id, *batch)
            except BatchUnreadable:
                if not records:
                    raise
                self._batches[start] = batch
                break
            upto = min(made.end, end)
            if made.records:
                upto = min(upto, start + most - len(records))
            records += made.since(start)[: upto - start]
            if made.end > upto:
                self._batches[upto] = batch
            start = upto
        return records, start

    async def _fetch(self, start: Position, count: int, wait_ms: Milliseconds) -> None:
        """Have what lies at `start`, if it becomes stable in time, and what is asked with it.

        A shard says who has the positions that it hasn't; each shard is asked once.
        """
        asked: set[str] = set()
        begins = {await self._entry(start): start} if start not in self._batches else {}
        while begins:
            count_max = min(count, _RECORDS_MAX)
            reads = [self._read(*each, count_max, wait_ms) for each in begins.items()]
            # One shard needs no task of its own: most reads end here.
            answers = [await reads[0]] if len(reads) == 1 else await asyncio.gather(*reads)
            asked |= begins.keys()
            for shard, answer in zip(begins, answers, strict=True):
                self._absorb(shard, begins[shard], answer)
            begins = dict[str, Position]()
            for span in _in_order(answers):
                first = max(span.first, start)
                if span.shard not in asked and first not in self._batches:
                    begins.setdefault(span.shard, first)
            # Another shard has called these positions stable: this one hears of it soon.
            wait_ms = self._limit_ms

    async def _entry(self, start: Position) -> str:
        """Any shard knows whose each position is."""
        where = self._link.session.whereabouts
        if not where.shards:
            await self._find_shards()
        return where.shards[0].name

    async def _find_shards(self) -> None:
        session = self._link.session
        where = session.whereabouts
        try:
            async with asyncio.timeout(self._limit_ms / 1_000):
                while not where.shards:
                    await self._link.ask(Locate(), Directory, self._what, self._timeout)
                    if not where.shards:
                        # A log that has just started has none until its controller has met one.
                        await asyncio.sleep(session.settings.view_ms / 1_000)
        except TimeoutError as late:
            raise DeadlineExceeded.of_read(self._what, self._limit_ms) from late

    def _absorb(self, shard: str, begin: Position, answer: Records) -> None:
        if not len(answer.firsts) == len(answer.counts) == len(answer.batches):
            raise BadFrame(f"{len(answer.firsts)} positions of {len(answer.batches)} batches")
        rows = zip(answer.firsts, answer.counts, answer.batches, strict=True)
        for first, count, content in rows:
            self._batches[max(first, begin)] = _Batch(shard, first, count, content)

    async def _read(
        self, shard: str, start: Position, records_max: int, wait_ms: Milliseconds
    ) -> Records:
        message = Read(
            shard=shard,
            start=start,
            bytes_max=self._link.session.settings.read_bytes,
            records_max=records_max,
            wait_ms=wait_ms,
        )
        return await self._link.read(message, self._what, self._limit_ms, wait_ms)


def _unordered(what: str, limit_ms: Milliseconds, start: Position) -> DeadlineExceeded:
    """What is there was durable when that was asked, and isn't ordered in time."""
    advice = (
        f"what lies from position {start} on is durable and not ordered yet; the log's status says "
        "what holds it up. Ask again later, or read only what is stable"
    )
    return DeadlineExceeded(what, limit_ms, advice=advice, outcome="has changed nothing")


def _in_order(answers: Sequence[Records]) -> list[Span]:
    spans = [span for answer in answers for span in answer.elsewhere]
    return sorted(spans, key=lambda span: span.first)
