"""Compacts logs, wave by wave: takes copies to make, lets Spark write them, has them adopted."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import NamedTuple

from anabranch import CompactorJob, Log, ScanPlan, Service
from anabranch.client.bolt.compactors import CopyOrder
from anabranch.errors import (
    AnabranchError,
    BadRequest,
    CompactorEnded,
    Promoted,
    Retry,
    Squashed,
    UnknownLog,
)
from anabranch_spark.compact.report import CompactReport, LogReport, verdict_of
from anabranch_spark.compact.shares import Answer, Numbered, Share, Unmade, Written, share_out
from anabranch_spark.expectations.words import count
from anabranch_spark.source.lease import Renewal

LEASE_S = 300.0
WAVE_BYTES = 16 << 30
"""What the job copies before it has the copies adopted: for so long the store keeps both, and what
a wave replaces is kept until its plan ends.
"""
WAVE_EXTENTS = 500_000
"""Extents of a wave: bounds what the driver holds."""
PASSES_MAX = 8
"""Through one log: each one at least doubles what is there, so a few leave little to do."""
TAKE_S = 120.0
"""How long to wait for a log that another compactor held, which may be gone: more than
`compact_wait_ms`.
"""
ADOPT_S = 120.0
"""Copies are read back one at a time, those of other jobs as well."""
END_S = 2.0
"""How long to try to end a plan, or the compactor."""

Run = Callable[[list[Share]], list[Answer]]
"""Has tasks copy shares, on many machines."""
Say = Callable[[str], None]


class _Sum(NamedTuple):
    """What the service keeps of a range of a log, for as far as it is summed."""

    start: int
    end: int
    sum: int
    records: int


class Compaction:
    """One job on one service."""

    def __init__(
        self, service: Service, url: str, *, run: Run, say: Say, wave_bytes: int = WAVE_BYTES
    ) -> None:
        self._service, self._url = service, url
        self._cluster = service.survey().cluster
        self._run, self._say = run, say
        self._wave_bytes = wave_bytes
        self._sequence = 0
        self._reports: list[LogReport] = []
        self._skipped: list[str] = []

    def of(self, names: Sequence[str] | None, called: str) -> CompactReport:
        """Compact these logs, or all that there are when the job begins."""
        obstacles: list[str] = []
        wanted = self._all() if names is None else list(names)
        try:
            with self._registered(called) as compactor:
                for name in wanted:
                    self._of_log(name, compactor, gone_is_fine=names is None)
        except (Retry, CompactorEnded) as error:
            # Whoever is away for one log is away for the next ones, too.
            obstacles.append(error.message)
            self._say(error.message)
        return CompactReport(
            cluster=self._cluster,
            verdict=verdict_of((each.verdict for each in self._reports), obstacles),
            logs=self._reports,
            skipped=self._skipped,
            obstacles=obstacles,
        )

    def _registered(self, called: str) -> "_Registered":
        return _Registered(self._service.compactor(called, lease=LEASE_S))

    def _all(self) -> list[str]:
        found: list[str] = []
        for each in self._service.logs():
            if each.engine == "bolt":
                found.append(each.name)
            else:
                self._skipped.append(f"{each.name}: logs of {each.engine} keep no objects")
        return found

    def _of_log(self, name: str, compactor: CompactorJob, *, gone_is_fine: bool) -> None:
        report = LogReport(log=name)
        try:
            log = self._service.log(name, engine="bolt")
            self._passes(log, compactor, report)
        except (UnknownLog, Promoted, Squashed) as error:
            if gone_is_fine and not report.copies:
                self._skipped.append(f"{name}: {error.message}")
                return
            report.obstacles.append(error.message)
        except (Retry, CompactorEnded) as error:
            report.obstacles.append(error.message)
            self._report(report)
            raise
        except AnabranchError as error:
            report.obstacles.append(error.message)
        self._report(report)

    def _passes(self, log: Log, compactor: CompactorJob, report: LogReport) -> None:
        before = _kept(log)
        report.start, report.end, report.sum = before.start, before.end, before.sum
        for _ in range(PASSES_MAX):
            adopted = report.copies
            self._pass(log, compactor, report)
            if report.copies == adopted or report.damages or report.obstacles:
                break
        self._compare(log, before, report)

    def _pass(self, log: Log, compactor: CompactorJob, report: LogReport) -> None:
        """Wave after wave through the whole log, each under a plan of its own: what a wave has
        replaced can go while the next one is made.
        """
        since, more = 0, True
        while more and not report.obstacles:
            with ExitStack() as ending:
                plan = log.plan_scan(lease=LEASE_S)
                ending.callback(_end, plan)
                ending.enter_context(Renewal(plan, LEASE_S))
                orders, since, more = self._taken(compactor, plan, since)
                if orders:
                    self._wave(orders, compactor, plan, report)

    def _taken(
        self, compactor: CompactorJob, plan: ScanPlan, since: int
    ) -> tuple[list[Numbered], int, bool]:
        """The copies of one wave."""
        orders: list[Numbered] = []
        size = extents = 0
        more = True
        while more and size < self._wave_bytes and extents < WAVE_EXTENTS:
            taken = compactor.take(plan, since, timeout=TAKE_S)
            for order in taken.orders:
                self._sequence += 1
                orders.append(Numbered(self._sequence, order))
                size += order.size
                extents += len(order.extents)
            # One that led nowhere would be asked for again and again.
            since, more = taken.next, taken.more and taken.next > since
        return orders, since, more

    def _wave(
        self,
        orders: list[Numbered],
        compactor: CompactorJob,
        plan: ScanPlan,
        report: LogReport,
    ) -> None:
        described = compactor.description, plan.description
        shares = [Share(self._url, self._cluster, *described, share) for share in share_out(orders)]
        size = sum(each.order.size for each in orders)
        what, tasks = count(len(orders), "object"), count(len(shares), "task")
        self._say(f"{report.log}: writing {what} of {size >> 20} MiB in {tasks}")
        report.waves += 1
        answers = self._run(shares)
        for unmade in (each for answer in answers for each in answer.unmade):
            self._note(unmade, report)
        wanted = {each.sequence: each.order for each in orders}
        written = sorted((each for answer in answers for each in answer.written), key=_sequence)
        for each in written:
            self._adopt(compactor, wanted[each.sequence], each, report)
        taken = count(report.copies, "object")
        self._say(f"{report.log}: adopted {taken} so far, {report.fewer} fewer extents")

    def _adopt(
        self, compactor: CompactorJob, order: CopyOrder, written: Written, report: LogReport
    ) -> None:
        """In order of sequence, one at a time. A copy that can't be adopted is only in vain."""
        try:
            sequence, size = written.sequence, written.size
            adopted = compactor.adopt(order, sequence, size, timeout=ADOPT_S)
        except BadRequest as error:
            report.in_vain += 1
            report.add_reason(report.reasons, error.message)
            return
        if adopted.why:
            report.in_vain += 1
            report.add_reason(report.reasons, adopted.why)
            return
        report.copies += 1
        report.extents += len(order.extents)
        report.fewer += adopted.fewer
        report.bytes += written.size

    def _note(self, unmade: Unmade, report: LogReport) -> None:
        if unmade.damaged:
            report.damages += 1
            report.add_reason(report.damage, unmade.reason)
        else:
            report.add_reason(report.obstacles, unmade.reason)

    def _compare(self, log: Log, before: _Sum, report: LogReport) -> None:
        """The service keeps the same sum of the same records, wherever they lie by now."""
        with suppress(BadRequest):
            after = _kept(log, before)
            if after.records == before.records and after.sum != before.sum:
                report.damages += 1
                reason = f"the set sum of {before.records} records was {before.sum:08x}"
                report.damage.append(f"{reason}, and is {after.sum:08x} after the job")

    def _report(self, report: LogReport) -> None:
        report.conclude()
        self._reports.append(report)
        done = f"{count(report.copies, 'object')} adopted, {report.fewer} fewer extents"
        line = f"{report.log}: {report.verdict}, {done}"
        first = next(iter([*report.damage, *report.obstacles]), "")
        self._say(f"{line}; {first}" if first else line)


class _Registered:
    """The compactor for as long as the job runs, renewed meanwhile."""

    def __init__(self, compactor: CompactorJob) -> None:
        self._compactor = compactor
        self._renewal = Renewal(compactor, LEASE_S)

    def __enter__(self) -> CompactorJob:
        self._renewal.__enter__()
        return self._compactor

    def __exit__(self, *_: object) -> None:
        self._renewal.__exit__()
        # One that can't be ended lapses.
        with suppress(AnabranchError):
            self._compactor.end(timeout=END_S)


def _kept(log: Log, of: _Sum | None = None) -> _Sum:
    """The sum of a range, page by page; by default of all that is settled now."""
    now = log.describe()
    start, end = (max(of.start, now.start), of.end) if of else (now.start, now.settled)
    total = log.set_sum(start, end)
    return _Sum(start, end, total.sum, total.summed)


def _end(plan: ScanPlan) -> None:
    # A plan that can't be ended lapses.
    with suppress(AnabranchError):
        plan.end(timeout=END_S)


def _sequence(written: Written) -> int:
    return written.sequence
