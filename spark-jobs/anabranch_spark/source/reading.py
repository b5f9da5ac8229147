"""Read one part of a scan: sign, fetch ahead, verify, decode, and give record batches.

Bytes that are missing or damaged are asked for once through a broker. A plan that has ended is no
end of the part: settled positions never move, so the task plans what it hasn't read yet anew.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import NamedTuple
from urllib.parse import urlsplit

import anabranch
from anabranch import PlannedSlice, ScanPlan
from anabranch.errors import (
    AnabranchError,
    BatchUnreadable,
    CorruptBatch,
    PlanEnded,
    PlanOutdated,
    RecordsDamaged,
    Unavailable,
    UnsupportedBatch,
)
from anabranch_spark.service import connect
from anabranch_spark.source.arrow import RecordBatch
from anabranch_spark.source.columns import Rows
from anabranch_spark.source.cuts import groups
from anabranch_spark.source.decode import Span, Stretch, decode, decoder
from anabranch_spark.source.decoders.batches import Wanted
from anabranch_spark.source.fetch import Fetched, Fetcher, ObjectGone, UrlRefused
from anabranch_spark.source.lease import Renewal
from anabranch_spark.source.parts import Part
from anabranch_spark.source.pieces import pieces
from anabranch_spark.source.planning import report, slices_of

SIGNED_SLICES_MAX = 64
"""Signed at a time: their URLs are used within seconds, however long the task takes."""
SIGNED_BYTES_MAX = 64 << 20
REPLANS_MAX = 3
"""So often a task plans anew without having read anything in between."""


class Get(NamedTuple):
    """One GET, and the slices that it fetches."""

    slices: Sequence[PlannedSlice]
    offset: int
    length: int
    url: str


def read_part(
    part: Part, columns: Sequence[str], *, service: str, ask_broker: bool
) -> Iterator[RecordBatch]:
    """The records of the part, in order."""
    rows = Rows(part.log, columns)
    with connect(service) as connected:
        scan = Scan(connected, part, rows.wanted, ask_broker=ask_broker)
        for stretches in scan.stretches():
            yield from rows.add(stretches)
        yield from rows.rest()
        scan.done()


class Scan:
    """One part's way through the store."""

    def __init__(
        self, service: anabranch.Service, part: Part, wanted: Wanted, *, ask_broker: bool
    ) -> None:
        self._service, self._part, self._wanted = service, part, wanted
        self._ask_broker = ask_broker
        self._columns = decoder()
        self._next = part.start
        """Of what was read so far."""
        self._asked = 0

    def stretches(self) -> Iterator[list[Stretch]]:
        """Slice by slice, planned anew where the plan ends before its scan."""
        part = self._part
        plan = self._service.scan_plan(part.plan)
        slices: Iterator[PlannedSlice] = iter(part.slices)
        idle = 0
        while True:
            before = self._next
            try:
                yield from self._planned(plan, slices)
                return
            except PlanEnded:
                idle = idle + 1 if before == self._next else 0
                if idle > REPLANS_MAX:
                    raise
            plan = self._planned_anew()
            slices = slices_of(plan)

    def done(self) -> None:
        """All is read."""
        if self._part.ends:
            self._service.scan_plan(self._part.plan).end()

    def _planned_anew(self) -> ScanPlan:
        part = self._part
        report(
            f"planned-anew: {part.name}: the plan has ended; from {self._next} on it is made anew"
        )
        log = self._service.log(part.plan.log, engine="bolt")
        beyond = part.end > part.plan.settled
        plan = log.plan_scan(self._next, part.end, speculative=beyond, lease=part.lease)
        if beyond and plan.description.generation != part.plan.generation:
            plan.end()
            reason = f"a promotion has moved records from {part.plan.settled} on"
            raise PlanOutdated(f"{part.plan.id:016x}", part.log, self._next, reason)
        return plan

    def _planned(self, plan: ScanPlan, slices: Iterator[PlannedSlice]) -> Iterator[list[Stretch]]:
        with ExitStack() as held:
            if plan.description.id != self._part.plan.id:
                held.callback(plan.end)
            held.enter_context(Renewal(plan, self._part.lease))
            fetcher = held.enter_context(Fetcher())
            for first in fetcher.each(self._signed(plan, slices)):
                fetched = first
                if isinstance(first.fault, UrlRefused):
                    # It may have lapsed while Spark took no rows.
                    fetched = fetcher.get(next(self._signed(plan, first.place.slices)))
                    if isinstance(fetched.fault, UrlRefused):
                        raise _no_rights(fetched)
                if isinstance(fetched.fault, ObjectGone):
                    plan.renew(self._part.lease)  # PlanEnded: then nothing is wrong with the store
                for each in fetched.place.slices:
                    yield from self._records(each, fetched)

    def _signed(self, plan: ScanPlan, slices: Iterable[PlannedSlice]) -> Iterator[Get]:
        """GETs in order, signed some at a time."""
        for group in groups(slices, slices_max=SIGNED_SLICES_MAX, bytes_max=SIGNED_BYTES_MAX):
            left = iter(group)
            for place in plan.sign(group):
                end, covered = place.offset, list[PlannedSlice]()
                while end < place.offset + place.length:
                    covered.append(each := next(left))
                    end += each.length
                yield Get(covered, place.offset, place.length, place.url)

    def _records(self, each: PlannedSlice, fetched: Fetched[Get]) -> Iterator[list[Stretch]]:
        """Of one slice, verified, piece by piece."""
        self._next = each.first
        if fetched.fault is not None:
            yield from self._through_broker(each, str(fetched.fault))
            return
        at = each.offset - fetched.place.offset
        content = memoryview(fetched.content)[at : at + each.length]
        span = Span(
            self._part.log, each.first, each.count, each.skip, each.origin, each.origin_first
        )
        try:
            for piece, batches in pieces(span, content):
                yield decode(piece, batches, self._wanted, self._columns)
                self._next += piece.count
        except (CorruptBatch, UnsupportedBatch) as fault:
            reason = fault.message
        else:
            return
        if self._next < each.first + each.count:  # else what is damaged is nothing that is meant
            yield from self._through_broker(each, reason)

    def _through_broker(self, each: PlannedSlice, reason: str) -> Iterator[list[Stretch]]:
        """The rest of a slice as a broker has it, which may hold it in its cache, or mend it."""
        part, object = self._part, f"{each.object:016x}"
        first, end = self._next, each.first + each.count
        damaged = RecordsDamaged(part.log, first, end, object, reason)
        if not self._ask_broker:
            raise damaged
        self._asked += 1
        report(
            f"asked-broker {self._asked}: records {first} to {end - 1} of {part.log}, object "
            f"{object}: {reason}"
        )
        try:
            log = self._service.log(part.plan.log, engine="bolt")
            for batch in log.read_batches(first, end - first):
                run = batch.run
                span = Span(
                    part.log, batch.first, batch.count, run.skip, run.origin_log, run.origin_first
                )
                yield decode(span, batch.raw, self._wanted, self._columns)
                self._next = batch.first + batch.count
        except BatchUnreadable:
            raise
        except AnabranchError as fault:
            raise damaged from fault
        if self._next != end:
            raise damaged


def _no_rights(fetched: Fetched[Get]) -> Unavailable:
    """The store refuses a URL that was signed a moment ago: so it will refuse all of them, and no
    broker could serve a whole scan in its place.
    """
    where = f"the object store at {urlsplit(fetched.place.url).netloc}"
    reason = (
        f"{fetched.fault} though it was signed a moment ago: the service's own credentials must "
        "have the right to read objects of its bucket, and its clock must be right"
    )
    return Unavailable(where, reason)
