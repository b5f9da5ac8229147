"""The job's surroundings: a Spark session with the jars of its target, and a service."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, cast

from py4j.java_gateway import JavaClass  # pyright: ignore[reportMissingTypeStubs]

from anabranch.errors import BadRequest
from anabranch_spark.companions.fetch import find
from anabranch_spark.export import delta, iceberg
from anabranch_spark.export.report import Report
from anabranch_spark.export.request import Form, Request
from anabranch_spark.export.run import Say, export
from anabranch_spark.jobs.session import is_remote, is_running, is_submitted, job_session
from anabranch_spark.service import connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(
    request: Request,
    given: Mapping[str, str],
    *,
    warehouse: str | None,
    master: str | None,
    say: Say,
) -> Report:
    """Export in the session that runs already, or in one that ends with the job."""
    if warehouse is not None and request.form is not Form.ICEBERG:
        raise BadRequest("export a log", "--warehouse is where an Iceberg catalog keeps its tables")
    catalog = iceberg.warehouse(request.target, warehouse) if warehouse is not None else {}
    with connect(request.service) as service:
        # Spark takes its time to start, and isn't needed to say that there is no such log.
        service.log(request.log, engine="bolt")
        with _session(request, {**given, **catalog}, master, say) as spark:
            check_session(spark, request)
            return export(spark, service, request, say)


def _session(
    request: Request, settings: Mapping[str, str], master: str | None, say: Say
) -> "AbstractContextManager[SparkSession]":
    name = f"anabranch export {request.log} to {request.form}"
    extensions = {Form.ICEBERG: iceberg.SETTINGS, Form.DELTA: delta.SETTINGS}.get(request.form, {})
    wanted = {**extensions, **settings}
    if is_running() or is_submitted() or is_remote():
        # It has the jars that it will ever have.
        return job_session(name, master=master, settings=wanted)
    groups = {Form.ICEBERG: ["iceberg"], Form.DELTA: ["delta"]}.get(request.form, [])
    if "s3a:" in request.target or any("s3a:" in value for value in settings.values()):
        groups = [*groups, "s3a"]
    return job_session(name, master=master, jars=find(groups, say=say), settings=wanted)


def check_session(spark: "SparkSession", request: Request) -> None:
    """BadRequest if the session lacks what the target needs: Spark would only fail somewhere."""
    needs = {Form.ICEBERG: iceberg.NEEDS, Form.DELTA: delta.NEEDS}.get(request.form)
    if needs is None:
        return
    what = f"export to {request.form}"
    if not _has_class(spark, needs):
        reason = (
            "this session of Spark doesn't have the jars: name those that `python -m "
            f"anabranch_spark.companions {request.form}` prints to spark-submit's --jars"
        )
        raise BadRequest(what, reason)
    catalog = f"spark.sql.catalog.{request.target.partition('.')[0]}"
    if request.form is Form.ICEBERG and not spark.conf.get(catalog, ""):
        reason = (
            f"{catalog} isn't set, so Spark doesn't know the table's catalog: keep one in a folder "
            "with --warehouse, or give the settings of another one with --conf"
        )
        raise BadRequest(what, reason)


def _has_class(spark: "SparkSession", name: str) -> bool:
    found = cast(Any, spark)._jvm
    for part in name.split("."):
        found = getattr(found, part)
    return isinstance(found, JavaClass)
