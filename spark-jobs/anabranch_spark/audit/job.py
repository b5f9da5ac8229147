"""Audits logs, wave by wave: plans them, lets Spark read them, and judges what was found."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress

from anabranch import ScanPlan, Service
from anabranch.core.records.objects import ObjectName
from anabranch.errors import AnabranchError, Promoted, Retry, Squashed, UnknownLog
from anabranch_spark.audit.judgement import comparable, judged, sums
from anabranch_spark.audit.location import Weighed, differing
from anabranch_spark.audit.planning import LEASE_S, Subject, planned
from anabranch_spark.audit.report import (
    DAMAGE_REPORTED,
    AuditReport,
    Damage,
    LogReport,
    audit_verdict,
)
from anabranch_spark.audit.shares import Answer, Found, Piece, Share, share_out
from anabranch_spark.audit.tally import Tally, kept_no_more, merged
from anabranch_spark.expectations.words import count
from anabranch_spark.source.lease import Renewal

WAVE_LOGS = 64
"""Logs whose plans live at the same time: a service has room for some hundreds."""
WAVE_PORTIONS = 100_000
"""Extents of a wave, unless it is one log: bounds what the driver holds."""

END_S = 2.0
"""How long to try to end a plan."""

Run = Callable[[list[Share]], list[Answer]]
"""Has tasks read shares, on many machines."""
Say = Callable[[str], None]


class Audit:
    """One audit of one service."""

    def __init__(self, service: Service, url: str, *, run: Run, say: Say) -> None:
        self._service, self._url = service, url
        self._cluster = service.survey().cluster
        self._run, self._say = run, say
        self._reports: list[LogReport] = []
        self._skipped: list[str] = []

    def of(self, names: Sequence[str] | None) -> AuditReport:
        """The report of these logs, or of all that there are when the audit begins."""
        wanted = self._all() if names is None else names
        obstacles: list[str] = []
        try:
            for wave in _waves(self._subjects(wanted, gone_is_fine=names is None)):
                self._read(wave)
        except Retry as error:
            # Whoever is away for one log is away for the next ones, too.
            obstacles.append(error.message)
            self._say(error.message)
        return AuditReport(
            cluster=self._cluster,
            verdict=audit_verdict((each.verdict for each in self._reports), obstacles),
            logs=sorted(self._reports, key=_name),
            skipped=self._skipped,
            obstacles=obstacles,
        )

    def _all(self) -> list[str]:
        found: list[str] = []
        for each in self._service.logs():
            if each.engine == "bolt":
                found.append(each.name)
            else:
                self._skipped.append(f"{each.name}: logs of {each.engine} have no set sums")
        return found

    def _subjects(self, names: Sequence[str], *, gone_is_fine: bool) -> Iterator[Subject]:
        """Each log, planned when it is asked for. One that can't be planned has its report."""
        for name in names:
            try:
                yield planned(self._service.log(name, engine="bolt"))
            except (UnknownLog, Promoted, Squashed) as error:
                if gone_is_fine:
                    self._skipped.append(f"{name}: {error.message}")
                else:
                    self._report(_unjudged(name, error))
            except Retry:
                raise
            except AnabranchError as error:
                self._report(_unjudged(name, error))

    def _read(self, wave: Sequence[Subject]) -> None:
        with ExitStack() as ending:
            for subject in wave:
                ending.callback(_end, subject.plan)
            pieces = [
                Piece(number, subject.plan.description, subject.expected.portions)
                for number, subject in enumerate(wave)
            ]
            shares = [Share(self._url, self._cluster, each) for each in share_out(pieces)]
            what, tasks = count(len(wave), "log"), count(len(shares), "task")
            self._say(f"reading {what} in {tasks}")
            with ExitStack() as reading:
                for subject in wave:
                    reading.enter_context(Renewal(subject.plan, LEASE_S))
                answers = self._run(shares) if shares else []
            found = defaultdict[int, list[Found]](list)
            for answer in answers:
                for each in answer.found:
                    found[each.log].append(each)
            for number, subject in enumerate(wave):
                self._report(self._judge(subject, found[number]))

    def _judge(self, subject: Subject, found: Sequence[Found]) -> LogReport:
        tally = merged(each.tally for each in found)
        try:
            subject.plan.renew(LEASE_S)
        except Retry:
            raise
        except AnabranchError as error:
            # Only while the plan lives is everything that it names kept.
            tally = kept_no_more(tally, error.message)
        expected, wrong = subject.expected, list[Damage]()
        if comparable(expected, tally) and not sums(expected, tally).equal:
            wrong = self._located(subject, [each for part in found for each in part.weighed], tally)
        return judged(expected, tally, wrong)

    def _located(self, subject: Subject, weighed: Sequence[Weighed], tally: Tally) -> list[Damage]:
        """Where the sums differ: of one extent if the service can still be asked about it."""
        log, expected = subject.log, subject.expected
        objects = {each.position: each.place for each in expected.portions}
        whole = (
            f"the set sum of {tally.summed} records is {tally.sum:08x}, and the service keeps "
            f"{expected.kept_sum:08x} of {expected.kept_records}"
        )
        found: list[Damage] = []
        with suppress(AnabranchError):
            ranges = differing(sorted(weighed, key=_at), expected.end, log.set_sum)
            for first, end in ranges:
                place = objects[first]
                name = str(ObjectName.of(self._cluster, place.object))
                reason = f"positions {first} to {end - 1} hold other batches: {whole}"
                found.append(Damage("set-sum", first, name, place.offset, place.length, reason))
                if len(found) == DAMAGE_REPORTED:
                    break
        return found or [Damage("set-sum", expected.start, "", 0, 0, whole)]

    def _report(self, report: LogReport) -> None:
        self._reports.append(report)
        self._say(_line(report))


def _waves(subjects: Iterable[Subject]) -> Iterator[list[Subject]]:
    """Bounded in logs and in extents. Plans are ended by whoever takes a wave, or here."""
    wave: list[Subject] = []
    portions = 0
    try:
        for subject in subjects:
            wave.append(subject)
            portions += len(subject.expected.portions)
            if len(wave) == WAVE_LOGS or portions >= WAVE_PORTIONS:
                taken, wave, portions = wave, [], 0
                yield taken
        if wave:
            taken, wave = wave, []
            yield taken
    finally:
        for subject in wave:
            _end(subject.plan)


def _line(report: LogReport) -> str:
    line = f"{report.log}: {report.verdict}"
    if report.extents:
        line += f", {count(report.records, 'record')} in {count(report.extents, 'extent')}"
    if report.damages:
        first = report.damage[0]
        found = count(report.damages, "damage")
        line += f"; {found}, the first at {first.position}: {first.reason}"
    if report.obstacles:
        line += f"; {report.obstacles[0]}"
    return line


def _unjudged(name: str, error: AnabranchError) -> LogReport:
    return LogReport(log=name, verdict="unknown", obstacles=[error.message])


def _end(plan: ScanPlan) -> None:
    # A plan that can't be ended lapses.
    with suppress(AnabranchError):
        plan.end(timeout=END_S)


def _name(report: LogReport) -> str:
    return report.log


def _at(weighed: Weighed) -> int:
    return weighed.position
