"""One run of an export: what is settled and not yet there, range by range."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Protocol

import anabranch
from anabranch.errors import AnabranchError, BadRequest, UnknownLog
from anabranch_spark.export.delta import DeltaTarget
from anabranch_spark.export.folder import HadoopFolder
from anabranch_spark.export.frames import reading
from anabranch_spark.export.iceberg import IcebergTarget
from anabranch_spark.export.lineage import MAIN, View
from anabranch_spark.export.parquet import ParquetTarget
from anabranch_spark.export.progress import Manifest
from anabranch_spark.export.ranges import Range, by_bytes, by_records
from anabranch_spark.export.report import Report, Written
from anabranch_spark.export.request import Form, Request
from anabranch_spark.jobs.session import refuse_remote
from anabranch_spark.jobs.values import undecodable
from anabranch_spark.jobs.verdict import Verdict
from anabranch_spark.spark_failures import SPARK_FAILURES, cause

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Say = Callable[[str], None]


class Target(Protocol):
    """What is exported to."""

    @property
    def at_once(self) -> int:
        """How many ranges one call of `write` takes at most."""
        ...

    def next(self) -> int | None: ...

    def write(self, ranges: Sequence[Range]) -> list[Written]: ...


def export(spark: "SparkSession", service: anabranch.Service, request: Request, say: Say) -> Report:
    """Export what is missing. The report says how it ended; errors are in it."""
    report = Report(request.log, str(request.form), request.target)
    try:
        refuse_remote("export a log", "it commits files and tables through the session's JVM")
        _export(spark, service, request, report, say)
    except AnabranchError as error:
        report.reason = error.message
    except SPARK_FAILURES as error:
        report.reason = undecodable(error) or f"Spark couldn't do it: {cause(error)}"
        if undecodable(error):
            report.verdict = Verdict.REFUSED
    else:
        report.verdict = Verdict.DONE
    return report


def _export(
    spark: "SparkSession", service: anabranch.Service, request: Request, report: Report, say: Say
) -> None:
    log = _log(service, request.log)
    about = log.describe()
    report.log_id, report.generation, report.settled = about.id, about.generation, about.settled
    target = _target(spark, service, log, request, report)
    done = target.next()
    if done is not None and request.start not in (None, done):
        reason = f"it was exported up to {done}, and --from says {request.start}"
        raise BadRequest(f"continue the export of {request.log}", reason)
    start = done if done is not None else _or(request.start, about.start)
    if start < about.start:
        reason = f"positions [{start}..{about.start}) were trimmed before they were exported"
        raise BadRequest(f"export {request.log}", f"{reason}: export to another place")
    # Positions past what is settled may still move, and no name may say one that does.
    end = min(_or(request.end, about.settled), about.settled)
    report.start, report.end = start, max(start, end)
    ranges = _ranges(log, request, start, end)
    while batch := list(islice(ranges, target.at_once)):
        for each in target.write(batch):
            report.written.append(each)
            report.records += each.positions.records
            say(f"exported {request.log}{each.positions} to {each.where}")
    if not report.written:
        say(f"nothing to export: {request.target} has {request.log} up to {start}")


def _target(
    spark: "SparkSession",
    service: anabranch.Service,
    log: anabranch.Log,
    request: Request,
    report: Report,
) -> Target:
    read, about = reading(spark, request), log.describe()
    if request.form is Form.PARQUET:
        wanted = Manifest(about.name, about.id, about.generation, request.schema, 0, 0)
        wanted = _beginning(wanted, _or(request.start, about.start))
        return ParquetTarget(spark, HadoopFolder(spark, request.target), read, wanted)
    if request.form is Form.DELTA:
        view = View(about.name, about.id, about.generation, {})
        return DeltaTarget(spark, path=request.target, read=read, log=about.name, view=view)
    ancestors = list(_ancestors(service, about.parent))
    # Not the fork point: a promotion may have put records below it since.
    inherits: dict[int, int] = {each.id: log.diff(each).shared for each in ancestors}
    report.branch = request.branch or (MAIN if about.parent is None else about.name)
    return IcebergTarget(
        spark,
        table=request.target,
        branch=report.branch,
        read=read,
        view=View(about.name, about.id, about.generation, inherits),
        log=about.name,
        parents=[MAIN if each.describe().parent is None else each.name for each in ancestors],
    )


def _beginning(wanted: Manifest, first: int) -> Manifest:
    return Manifest(wanted.log, wanted.log_id, wanted.generation, wanted.schema, first, first)


def _log(service: anabranch.Service, name: str) -> anabranch.Log:
    return service.log(name, engine="bolt")


def _ancestors(service: anabranch.Service, name: str | None) -> Iterator[anabranch.Log]:
    """Nearest first, as far as they are there."""
    while name is not None:
        try:
            log = _log(service, name)
        except UnknownLog:
            return
        yield log
        name = log.describe().parent


def _ranges(log: anabranch.Log, request: Request, start: int, end: int) -> Iterator[Range]:
    if start >= end:
        return
    if request.bytes is None:
        records = request.records
        assert records is not None, "ranges are cut by records or by bytes"
        yield from by_records(start, end, records, full_only=request.full_only)
        return
    with log.plan_scan(start, end) as plan:
        slices = [(each.first, each.count, each.length) for page in plan.pages() for each in page]
    yield from by_bytes(start, end, slices, request.bytes, full_only=request.full_only)


def _or(given: int | None, default: int) -> int:
    return default if given is None else given
