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
REMOTE = "SPARK_REMOTE"
"""The URL of a Spark Connect server, as pyspark takes it."""

_OF_A_SESSION = "spark.sql."
"""Other settings are a Connect server's own."""

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


def is_remote() -> bool:
    """Spark runs in a server, and this process reaches it by Spark Connect."""
    from pyspark.sql import utils

    return REMOTE in os.environ or utils.is_remote()


def session(
    name: str,
    *,
    master: str | None = None,
    jars: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> "SparkSession":
    """The session that runs already, or a new one; `anabranch` is registered in it.

    Without a `master`, `spark-submit` says it, by its arguments or its configuration; a program
    that was started by itself runs on this machine. Where SPARK_REMOTE names a Connect server, the
    session is that server's. BadRequest if there is no Java for Spark.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from anabranch_spark import register

    if is_remote():
        spark = _remote(name, master, jars, {**_SETTINGS, **(settings or {})})
        register(spark)
        return spark
    # What the JVM starts to plan and to read; its own choice is the system's Python, where this
    # package isn't.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if master is None and not is_submitted():
        master = "local[*]"
    if master is not None:
        builder = builder.master(master)
    wanted = {**_SETTINGS, "spark.pyspark.python": sys.executable}
    if master is not None and master.startswith("local"):
        # All workers run in this environment, where this package is.
        wanted["spark.python.daemon.module"] = "anabranch_spark.jobs.daemon"
    wanted |= settings or {}
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


def refuse_remote(what: str, why: str) -> None:
    """BadRequest if Spark is reached by Spark Connect, where there is no JVM to speak to."""
    if is_remote():
        raise BadRequest(
            f"{what} over Spark Connect",
            f"{why}: run it with spark-submit, or without SPARK_REMOTE",
        )


def _remote(
    name: str, master: str | None, jars: Sequence[str], settings: Mapping[str, str]
) -> "SparkSession":
    """A session of a Connect server, which has its master, jars and Python by itself."""
    from pyspark.sql import SparkSession

    if master is not None or jars:
        what = f"Spark's master {master}" if master is not None else "jars of a session"
        reason = "Spark runs in a Connect server (SPARK_REMOTE), which has its own: leave them out"
        raise BadRequest(what, reason)
    builder = SparkSession.builder.appName(name)
    for key, value in settings.items():
        if key.startswith(_OF_A_SESSION):
            builder = builder.config(key, value)
    return builder.getOrCreate()
