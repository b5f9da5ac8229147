"""A planned scan: what a program needs to get a log's records from the object store itself."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

import struct
from collections.abc import AsyncGenerator, Iterator, Sequence
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from anabranch.client.bolt.link import Link
from anabranch.client.session import arguments
from anabranch.core.bolt.protocol.commands import Done
from anabranch.core.bolt.protocol.messages import ClientMessage
from anabranch.core.bolt.protocol.queries import PlanPage
from anabranch.core.bolt.protocol.scans import (
    AS_FAR,
    PAGE_SLICES_MAX,
    SIGNED_SLICES_MAX,
    EndPlan,
    Plan,
    PlanScan,
    ReadPlan,
    RenewPlan,
    SealedSlice,
    SignedRange,
    SignedScan,
    SignScan,
)
from anabranch.core.errors import BadFrame
from anabranch.core.records.objects import ObjectName
from anabranch.core.records.origins import Run, deliveries
from anabranch.core.records.record import Record
from anabranch.core.types import LogId, Milliseconds, ObjectId, Position

LEASE_S = 120.0
"""How long a plan lives that nobody renews."""
PAGE_SLICES = PAGE_SLICES_MAX
"""Slices of a page, unless it is asked for otherwise."""

SLICE_BYTES_CEILING = 1 << 29
"""No slice is larger: formats and settings keep objects below it."""
_SEAL_BYTES = 8

A = TypeVar("A")


class PlannedSlice(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Bytes of one object that hold records of the log. It can be sent to other processes."""

    first: Position
    """Of the first record that is meant."""
    count: int
    """Records that are meant."""
    object: ObjectId
    offset: int
    length: int
    """Bytes: whole record batches."""
    skip: int
    """Records of these bytes before the first that is meant."""
    origin: LogId
    """The log that the records were appended to."""
    origin_first: Position
    """The first one's position there."""
    seal: int
    """Without it the service doesn't sign the slice."""

    def name(self, cluster: str) -> str:
        """The object's, in the bucket of a service of this cluster name."""
        return str(ObjectName.of(cluster, self.object))

    def records(self, content: bytes) -> Iterator[tuple[Position, Record]]:
        """The records that are meant, each with its position, of the slice's bytes. CorruptBatch if
        they aren't what was written.
        """
        run = Run(self.first, self.count, self.skip, self.origin, self.origin_first, self.length)
        for position, _, _, record in deliveries([run], [content], "the slice of a scan"):
            yield position, record


class ScanPlan:
    """What it names stays in the store until the plan ends, whatever becomes of the log.

    Renew it while the scan goes on. Any process may, that has the description and may read the log:
    `service.scan_plan(description)` is the same plan there.
    """

    def __init__(self, link: Link, description: Plan) -> None:
        self.link = link
        self.description = description
        """As it was when the scan was planned, or renewed here."""

    def __repr__(self) -> str:
        plan = self.description
        return f"<scan plan {plan.id:016x} of {plan.name}[{plan.start}..{plan.end})>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.end()

    async def pages(
        self, slices_max: int = PAGE_SLICES, *, timeout: float | None = None
    ) -> AsyncGenerator[list[PlannedSlice], None]:
        """All slices in order of position. PlanOutdated if the log was trimmed meanwhile, or a
        promotion has moved records past the settled position that were planned as speculative.
        """
        plan = self.description
        position = plan.start
        while position < plan.end:
            message = ReadPlan(plan.log, plan.id, position, slices_max)
            page = await self._ask(message, PlanPage, "read", timeout)
            found = [*_sealed(page)]
            _check_page(found, position, page.next, plan.end)
            position = page.next
            yield found

    async def renew(self, lease: float = LEASE_S, *, timeout: float | None = None) -> Plan:
        """Let it live for this many seconds from now on. PlanEnded if it does no more."""
        plan = self.description
        message = RenewPlan(plan.log, plan.id, _milliseconds(lease))
        self.description = await self._ask(message, Plan, "renew", timeout)
        return self.description

    async def end(self, *, timeout: float | None = None) -> None:
        """The scan is over: what only it held may be deleted."""
        plan = self.description
        await self._ask(EndPlan(plan.log, plan.id), Done, "end", timeout)

    async def sign(
        self, slices: Sequence[PlannedSlice], *, timeout: float | None = None
    ) -> list[SignedRange]:
        """Where these slices can be fetched without keys of the store, for some minutes.

        Slices that touch are one range. `Range: bytes=OFFSET-LAST` goes with the request; a file://
        URL is that of the whole object. NotFetchable where nobody else gets to the objects.
        """
        plan, found = self.description, list[SignedRange]()
        for first in range(0, len(slices), SIGNED_SLICES_MAX):
            asked = [
                SealedSlice(each.object, each.offset, each.length, each.seal)
                for each in slices[first : first + SIGNED_SLICES_MAX]
            ]
            message = SignScan(plan.log, plan.id, asked)
            ranges = (await self._ask(message, SignedScan, "sign", timeout)).ranges
            _check_ranges(asked, ranges)
            found += ranges
        return found

    async def _ask(
        self, message: ClientMessage, answer: type[A], what: str, timeout: float | None
    ) -> A:
        link = self.link
        what = f"{what} a scan plan of {self.description.name}"
        return await link.ask(message, answer, what, link.milliseconds(timeout))


def planning(
    link: Link,
    log: LogId,
    start: Position | None,
    end: Position | None,
    speculative: bool,
    lease: float,
) -> PlanScan:
    """The request for a plan of these positions."""
    what = "plan a scan"
    return PlanScan(
        log,
        link.once(),
        _milliseconds(lease),
        AS_FAR if start is None else arguments.position(what, start),
        AS_FAR if end is None else arguments.position(what, end),
        speculative,
        link.session.settings.client,
    )


def _check_page(
    found: Sequence[PlannedSlice], position: Position, following: Position, end: Position
) -> None:
    """A page that left records out, or led nowhere, would be a scan that misses them or never ends:
    nobody counts again what a plan names.
    """
    start = position
    for each in found:
        if each.first != position or each.count < 1:
            reason = f"{each.count} records of {each.first} came where {position} was next"
            raise BadFrame(f"in a page of a scan plan {reason}")
        if each.skip < 0 or each.offset < 0 or not 0 < each.length <= SLICE_BYTES_CEILING:
            raise BadFrame(f"a page of a scan plan names {each.length} bytes at {each.offset}")
        position += each.count
    if not start < position == following <= end:
        reason = f"ends at {position} and goes on at {following}, of a plan up to {end}"
        raise BadFrame(f"a page of a scan plan from {start} on {reason}")


def _check_ranges(asked: Sequence[SealedSlice], ranges: Sequence[SignedRange]) -> None:
    """All slices are in the ranges, in order, and nothing else is."""
    left = iter(asked)
    for each in ranges:
        end = each.offset + each.length
        at = each.offset
        while at < end:
            piece = next(left, None)
            if piece is None or (piece.object, piece.offset) != (each.object, at):
                raise BadFrame(f"a range was signed that nobody asked for: {each.offset} to {end}")
            at += piece.length
        if at != end or each.length <= 0:
            raise BadFrame(f"half a slice was signed: {each.offset} to {end} of it")
    if next(left, None) is not None:
        raise BadFrame("fewer slices were signed than were asked about")


def _sealed(page: PlanPage) -> Iterator[PlannedSlice]:
    if len(page.seals) != _SEAL_BYTES * len(page.slices):
        raise BadFrame(f"{len(page.seals)} bytes seal {len(page.slices)} slices of a scan plan")
    seals = struct.unpack(f">{len(page.slices)}Q", page.seals)
    for each, seal in zip(page.slices, seals, strict=True):
        yield PlannedSlice(
            each.first,
            each.count,
            each.object,
            each.offset,
            each.length,
            each.skip,
            each.origin,
            each.origin_first,
            seal,
        )


def _milliseconds(lease: float) -> Milliseconds:
    return round(arguments.seconds("the lease of a scan plan", lease) * 1_000)
