"""Ask a question of a log, and report the answer."""

from typing import TYPE_CHECKING

import msgspec

from anabranch_spark.analytics.question import Findings, Question
from anabranch_spark.jobs.values import parsed, schema_of
from anabranch_spark.jobs.verdict import Verdict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FINITE_MAX = 1.7976931348623157e308


class Report(msgspec.Struct):
    """The report of one run."""

    question: str
    log: str
    verdict: Verdict = Verdict.UNKNOWN
    reason: str = ""
    """Why there is no answer."""
    records: int = 0
    malformed: int = 0
    """Records whose values aren't JSON of the question's schema. They are in no finding."""
    first_malformed: int | None = None
    findings: Findings | None = None


def events(records: "DataFrame", question: Question) -> "DataFrame":
    """Records with the question's columns, `position`, and whether the value is `malformed`.

    A value that lacks a field is malformed too, as is a number that is none, and a record without
    a value: it would fall out of every sum.
    """
    from pyspark.sql import functions as sql

    value, wrong = parsed(schema_of(question.schema))
    read = records.select("position", value.alias("event"), wrong.alias("wrong"))
    columns = [column.split() for column in question.schema.split(", ")]
    fields = [sql.col(f"event.{name}") for name, _ in columns]
    lacks = sql.col("event").isNull()
    for field, (_, kind) in zip(fields, columns, strict=True):
        lacks = lacks | field.isNull()
        if kind == "DOUBLE":
            # JSON has no infinity, but 1e999 is read as one, and hides everything in a mean.
            lacks = lacks | (sql.abs(field) > _FINITE_MAX)
    return read.select("position", (sql.col("wrong") | lacks).alias("malformed"), *fields)


def ask(records: "DataFrame", question: Question, log: str, level: float | None) -> Report:
    """Compute the answer from records with the columns `position` and `value`."""
    from pyspark.sql import functions as sql

    found = events(records, question).persist()
    malformed = sql.col("malformed")
    counts = found.agg(
        sql.count(sql.lit(1)).alias("records"),
        sql.count_if(malformed).alias("malformed"),
        sql.min(sql.when(malformed, sql.col("position"))).alias("first"),
    ).first()
    assert counts is not None, "an aggregate has a row"
    report = Report(question.name, log, Verdict.DONE)
    report.records, report.malformed = counts["records"], counts["malformed"]
    report.first_malformed = counts["first"]
    report.findings = question.answer(found.where(~malformed).drop("malformed"), level)
    found.unpersist()
    return report


def records(spark: "SparkSession", service: str, log: str) -> "DataFrame":
    """What is settled of a log or fork."""
    frame = spark.read.format("anabranch").options(service=service, log=log)
    return frame.option("columns", "position,value").load()
