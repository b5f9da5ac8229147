"""The Spark session of a job."""

import logging
import os
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from anabranch.errors import BadRequest
from anabranch_spark.jobs.java import obstacle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GATEWAY = "PYSPARK_GATEWAY_PORT"
"""Set where the JVM is there before Python. `SparkConf` doesn't yet know its settings then."""

_PAGES = "DataFrameQueryContextLogger"
_DESCRIPTION = "spark.job.description"

_SETTINGS = {
    # With the default, Python workers of a busy machine failed to sign in.
    "spark.python.authenticate.socketTimeout": "60s",
    "spark.python.unix.domain.socket.enabled": "true",
    # A speculative attempt whose commit is denied counts as a failure of the write.
    "spark.speculation": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
}


def is_submitted() -> bool:
    """`spark-submit` started this program, and has said which jars and settings there are."""
    return _GATEWAY in os.environ


def is_running() -> bool:
    """A session runs already, which a job uses and doesn't end."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() is not None


def session(
    name: str,
    *,
    master: str | None = None,
    jars: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> "SparkSession":
    """The session that runs already, or a new one; `anabranch` is registered in it.

    Without a `master`, `spark-submit` says it, by its arguments or its configuration; a program
    that was started by itself runs on this machine. BadRequest if there is no Java for Spark.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from anabranch_spark import register

    # What the JVM starts to plan and to read; its own choice is the system's Python, where this
    # package isn't.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if master is not None or not is_submitted():
        builder = builder.master(master or "local[*]")
    wanted = {**_SETTINGS, "spark.pyspark.python": sys.executable, **(settings or {})}
    if jars:
        wanted["spark.jars"] = ",".join(jars)
    for key, value in wanted.items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except PySparkException:
        if (reason := obstacle()) is None:
            raise
        raise BadRequest("start Spark", reason) from None
    register(spark)
    return spark


@contextmanager
def job_session(
    name: str,
    *,
    master: str | None = None,
    jars: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> "Generator[SparkSession]":
    """The session of a job: one that the job had to start ends with it, another one goes on."""
    from pyspark.logger import PySparkLogger

    from anabranch_spark.spark_failures import SPARK_FAILURES

    ours = not is_running()
    spark = session(name, master=master, jars=jars, settings=settings)
    # For a wrong column or an overflow it writes a page of JSON, of which the job says one line.
    pages = PySparkLogger.getLogger(_PAGES)
    level = pages.level
    pages.setLevel(logging.CRITICAL)
    try:
        yield spark
    finally:
        pages.setLevel(level)
        if ours:
            # If the JVM has died, what it died of is the job's reason, and not that it can't stop.
            with suppress(OSError, *SPARK_FAILURES):
                spark.stop()


@contextmanager
def described(spark: "SparkSession", what: str) -> Generator[None]:
    """Spark's UI shows these words for the jobs, stages and queries of the block."""
    # Spark Connect has no context. Its server names what it runs.
    context = getattr(spark, "sparkContext", None)
    if context is None:
        yield
        return
    before = context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, what)
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, before)
