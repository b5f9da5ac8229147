"""One run of a stream, as the driver follows it: offsets, micro-batches and their scan plans.

Spark asks for the latest offset, then for the parts between two offsets; after a restart it asks
first for the parts of its last micro-batch. Spark 4.1 doesn't say where it stands when it asks for
the latest offset, so the stream remembers the end of the parts that were asked for last.
"""

import time
from contextlib import suppress
from typing import Any, NamedTuple, cast

import anabranch
from anabranch import PlannedSlice, ScanPlan
from anabranch.errors import AnabranchError, BadRequest, OutOfRange, UnknownLog
from anabranch_spark.options import ReadOptions
from anabranch_spark.service import connect
from anabranch_spark.source.parts import Part, parts_of
from anabranch_spark.source.planning import report_loss, resolve, slices_of
from anabranch_spark.source.streams.admission import Admission, within_bytes
from anabranch_spark.source.streams.offsets import Offset

IDLE_S = 0.1
"""While there is nothing to read, the service is asked no more often than this."""

_ALL = Admission()


class _MicroBatch(NamedTuple):
    """A range of positions with its plan, and the slices that hold it."""

    start: int
    end: int
    plan: ScanPlan
    slices: list[PlannedSlice]


class Stream:
    """It connects when it is first asked; close it at its end."""

    def __init__(self, options: ReadOptions, url: str) -> None:
        self._options, self._url = options, url
        self._admission = Admission(
            records_max=options.records_max,
            bytes_max=options.bytes_max,
            records_min=options.records_min,
            delay=options.delay,
        )
        self._aims = options.available_now
        self._service: anabranch.Service | None = None
        self._opened: anabranch.Log | None = None
        self._stands: Offset | None = None
        """What the query has read, or is reading."""
        self._target: int | None = None
        """Where the run ends."""
        self._measured: _MicroBatch | None = None
        """The next one, if its slices were looked at to count its bytes."""
        self._plans: dict[int, ScanPlan] = {}
        """By the end of the micro-batch that each is for."""
        self._began = time.monotonic()
        """When the last micro-batch did, or this run."""
        self._looked = 0.0
        """When the log was last found to have nothing to read."""

    def initial(self) -> Offset:
        """Where a query without a checkpoint begins."""
        log = self._log()
        now = log.describe()
        start = resolve(log, self._options.start, earliest=now.start, latest=now.settled)
        if start < now.start and self._options.ignore_loss:
            report_loss(log.name, start, now.start)
            start = now.start
        if not now.start <= start <= now.settled:
            raise OutOfRange(log.name, start, now.start, now.settled)
        self._stands = Offset(log.id, now.generation, start)
        return self._stands

    def latest(self, start: Offset | None = None, *, whole: bool = False) -> Offset:
        """Where the next micro-batch ends; where the last one did if there is nothing to read yet.
        `whole`: it has everything that there is, whatever the options say.

        Promoted, Squashed or OutOfRange end the query: the log is no longer what it was.
        """
        if start is not None:
            self._stand_at(start)
        stands = self._stands or self.initial()
        self._pause()
        log = self._log()
        now = log.describe()
        first = self._kept(stands.position, now.start, now.settled)
        if self._target is None:
            self._target = self._end_of_run(now.start, now.settled)
        admission = _ALL if whole else self._admission
        end = admission.end(
            stands=first,
            settled=now.settled,
            target=self._target,
            waited=time.monotonic() - self._began,
        )
        if end > first and admission.bytes_max is not None:
            end = self._measure(first, end, admission.bytes_max)
        if end <= stands.position:
            self._looked = time.monotonic()
            return stands
        return Offset(log.id, now.generation, end)

    def aim(self) -> None:
        """End where the log is settled now, or at the end that was given if that comes first."""
        self._aims = True
        now = self._log().describe()
        self._target = self._end_of_run(now.start, now.settled)

    def settled(self) -> Offset:
        """As far as the log could be read now."""
        log = self._log()
        now = log.describe()
        return Offset(log.id, now.generation, now.settled)

    def parts(self, start: Offset, end: Offset) -> list[Part]:
        """The parts of a micro-batch: of the same records whenever it is asked for."""
        self._stand_at(end)
        log = self._log()
        if start.log != end.log or start.position > end.position:
            raise BadRequest(f"a micro-batch of {log.name}", f"{start} doesn't come before {end}")
        if start.position == end.position:
            return []
        self._began = time.monotonic()
        found, self._measured = self._measured, None
        if found is None or (found.start, found.end) != (start.position, end.position):
            _end(found)
            found = self._planned(start.position, end.position)
        if found is None:
            return []
        self._let_go(end.position)
        self._plans[end.position] = found.plan
        plan = found.plan.description
        return [*parts_of(log.name, plan, found.slices, self._options, ends=False)]

    def commit(self, end: Offset) -> None:
        """Micro-batches up to here are done: what only their plans held may be deleted."""
        for position in [each for each in self._plans if each <= end.position]:
            self._let_go(position)

    def close(self) -> None:
        """The run is over."""
        _end(self._measured)
        for position in [*self._plans]:
            self._let_go(position)
        if self._service is not None:
            self._service.close()

    def _connected(self) -> anabranch.Service:
        if self._service is None:
            self._service = connect(self._url)
        return self._service

    def _log(self) -> anabranch.Log:
        if self._opened is None:
            self._opened = self._connected().log(self._options.logs[0], engine="bolt")
        return self._opened

    def _end_of_run(self, start: int, settled: int) -> int | None:
        """The position that this run never passes; None if it has no end."""
        if self._options.end is None:
            return settled if self._aims else None
        end = resolve(self._log(), self._options.end, earliest=start, latest=settled)
        return min(end, settled) if self._aims else end

    def _stand_at(self, offset: Offset) -> None:
        if self._stands is None:
            self._opened = self._checked(offset)
        self._stands = offset

    def _checked(self, offset: Offset) -> anabranch.Log:
        """The log that the checkpoint is of, if it is the one to read."""
        name = self._options.logs[0]
        what = f"a checkpoint of log {offset.log}, and option log={name}"
        try:
            # A fork that was promoted or squashed says so, also if there is a new one of its name.
            found = self._connected().log(cast("Any", offset.log), engine="bolt")
        except UnknownLog:
            reason = f"that log is no more, and {name} is another: begin with a new checkpoint"
            raise BadRequest(what, reason) from None
        if found.name != name:
            reason = f"that log is {found.name}: name it, or begin with a new checkpoint"
            raise BadRequest(what, reason)
        return found

    def _kept(self, stands: int, start: int, settled: int) -> int:
        """Where reading goes on: at the log's start if it was trimmed past where the query stands,
        and that is to be ignored.
        """
        lost = stands < start and not self._options.ignore_loss
        if lost or stands > settled:
            raise OutOfRange(self._log().name, stands, start, settled)
        return max(stands, start)

    def _measure(self, start: int, end: int, bytes_max: int) -> int:
        """Where a micro-batch ends that may have so many bytes. Its plan is kept."""
        _end(self._measured)
        self._measured = None
        plan = self._log().plan_scan(start, end, lease=self._options.lease)
        taken, whole = within_bytes(slices_of(plan), bytes_max)
        if not whole:
            end = taken[-1].first + taken[-1].count
        self._measured = _MicroBatch(start, end, plan, taken)
        return end

    def _planned(self, start: int, end: int) -> _MicroBatch | None:
        """None if all of it was trimmed, and that is to be ignored."""
        log = self._log()
        now = log.describe()
        first = min(self._kept(start, now.start, now.settled), end)
        if first > start:
            report_loss(log.name, start, first)
        if first == end:
            return None
        plan = log.plan_scan(first, end, lease=self._options.lease)
        return _MicroBatch(first, end, plan, [*slices_of(plan)])

    def _let_go(self, position: int) -> None:
        plan = self._plans.pop(position, None)
        if plan is not None:
            _end_plan(plan)

    def _pause(self) -> None:
        """Spark asks again every few milliseconds while there is nothing to read."""
        left = self._looked + IDLE_S - time.monotonic()
        if left > 0:
            time.sleep(left)


def _end(batch: _MicroBatch | None) -> None:
    if batch is not None:
        _end_plan(batch.plan)


def _end_plan(plan: ScanPlan) -> None:
    with suppress(AnabranchError):  # it lapses by itself
        plan.end()
