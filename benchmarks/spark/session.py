"""A Spark session of two cores, and what all of it takes of the processor."""

import os
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from anabranch_spark.jobs.session import session
from benchmarks.report import SCRATCH
from benchmarks.spark.processes import cpu_s


class Cost(NamedTuple):
    """Time that one query takes."""

    clock_s: float
    cpu_s: float
    """Processor time of the JVM and its Python workers."""


@contextmanager
def running(jars: Sequence[Path] = ()) -> Generator[SparkSession]:
    """A session on both cores."""
    settings = {
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.local.dir": str(SCRATCH / "spark"),
        "spark.sql.warehouse.dir": str(SCRATCH / "warehouse"),
    }
    spark = session("benchmark", master="local[2]", jars=[*map(str, jars)], settings=settings)
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


def jvm(spark: SparkSession) -> int:
    """The process id of the session's JVM, whose children are the Python workers."""
    process = getattr(spark.sparkContext._gateway, "proc", None)
    if process is None:
        raise AssertionError("the session's JVM was started by somebody else")
    return process.pid


def touched(frame: DataFrame) -> int:
    """Bytes of all keys and values: each is brought into the JVM."""
    (found,) = frame.selectExpr("sum(length(key) + length(value))").collect()
    total: int = found[0]
    return total


def cost(work: Callable[[], object]) -> Cost:
    began, busy = time.perf_counter(), cpu_s(os.getpid())
    work()
    return Cost(time.perf_counter() - began, cpu_s(os.getpid()) - busy)
