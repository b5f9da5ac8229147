"""What Spark says over pages is one line in a report."""

import pytest
from pyspark.errors import PySparkException

from anabranch.errors import BadRequest
from anabranch_spark.spark_failures import cause

WORKER = """[PYTHON_DATA_SOURCE_ERROR] Failed to plan: Traceback (most recent call last):
  File "planning.py", line 24, in planned
    raise UnknownLog(name)
anabranch.core.errors.logs.UnknownLog: there is no log shop
 SQLSTATE: 38000
"""
JAVA = """An error occurred while calling o57.save.
: org.apache.spark.SparkException: Job aborted
due to a full disk
\tat org.apache.spark.scheduler.DAG.fail(DAG.scala:7)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: java.io.IOException: No space left
"""
TASK = """An error occurred while calling o7.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 125.0 failed 1
times, most recent failure: Lost task 0.0 in stage 125.0 (TID 2508) (10.1.0.2 executor driver):
java.io.IOException: Mkdirs failed to create file:/proc/nope
\tat org.apache.spark.Write.write(Write.scala:7)
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (WORKER, "there is no log shop"),
        (JAVA, "org.apache.spark.SparkException: Job aborted due to a full disk"),
        (TASK, "java.io.IOException: Mkdirs failed to create file:/proc/nope"),
        ("Arithmetic overflow. SQLSTATE: 22003\n== SQL ==\nprice * 2", "Arithmetic overflow."),
        ("Traceback (most recent call last):\nValueError: 7\n", "ValueError: 7"),
        ("one\x1b[2Jtwo", "one\\x1b[2Jtwo"),
        ("", "PySparkException"),
        ("x" * 1_000, "x" * 299 + "…"),
    ],
)
def test_a_failure_is_one_line(text: str, line: str) -> None:
    assert cause(PySparkException(text)) == line


def test_an_error_of_the_service_is_its_message() -> None:
    assert cause(BadRequest("option from", "it must be a number")) == (
        "option from: it must be a number"
    )
