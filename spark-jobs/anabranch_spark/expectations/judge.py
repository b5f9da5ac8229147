"""Judges a fork: one aggregate pass over its own records, then what goes across records."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec.structs import replace
from pyspark.sql import Column, DataFrame

from anabranch_spark.expectations.decode import OWN, decoded
from anabranch_spark.expectations.outcome import OfSuite, Result, conclude, unknown
from anabranch_spark.expectations.passes import GOOD, ROWS, Check, Row, checks, totals
from anabranch_spark.expectations.relations import Judge, Logs, relations
from anabranch_spark.expectations.samples import samples
from anabranch_spark.expectations.suite import Suite
from anabranch_spark.expectations.words import count, shown
from anabranch_spark.jobs.session import described
from anabranch_spark.spark_failures import SPARK_FAILURES, cause


@dataclass(frozen=True, kw_only=True)
class Records:
    """What is judged, as records with the columns of `source.schema`."""

    recent: DataFrame
    """All from the fork point on: the fork's own records are among them."""
    whole: DataFrame
    """These, and what the fork inherited before."""
    own: Column
    """Which of them are the fork's own."""
    logs: Logs
    """Other logs by name, for references."""


@dataclass(frozen=True)
class Judgement:
    own_records: int
    """How many of the fork's own were found."""
    of_suite: OfSuite


def judge(suite: Suite, records: Records, *, now: datetime) -> Judgement:
    """BadRequest, before anything is read, if the suite asks for what the columns can't answer."""
    recent = decoded(records.recent, suite.value, own=records.own)
    whole = decoded(records.whole, suite.value, own=records.own)
    own = recent.where(OWN)
    passed = checks(suite, own, now)
    across = relations(suite, whole, records.logs)
    spark = recent.sparkSession
    with described(spark, f"judge {count(len(passed), 'expectation')} in one pass"):
        row, results = _pass(own, passed)
    with described(spark, "find samples of records that miss"):
        results = _with_samples(own, passed, results, suite.samples)
    for name, each in across.items():
        with described(spark, f"judge: {shown(name)}"):
            results.append(_across(suite, name, each, row[GOOD]))
    return Judgement(row[ROWS], conclude(suite, results))


def _pass(own: DataFrame, passed: Sequence[Check]) -> tuple[Row, list[Result]]:
    """One aggregate for all. If one of them fails, as by an overflow, each is judged by itself, so
    that the report says which.
    """
    all_of_them = {alias: each for check in passed for alias, each in check.aggregates.items()}
    try:
        row = _aggregate(own, totals() | all_of_them)
    except SPARK_FAILURES:
        return _one_by_one(own, passed)
    return row, [check.result(row) for check in passed]


def _one_by_one(own: DataFrame, passed: Sequence[Check]) -> tuple[Row, list[Result]]:
    row = _aggregate(own, totals())
    results: list[Result] = []
    for check in passed:
        try:
            found = {**row, **_aggregate(own, check.aggregates)} if check.aggregates else row
            results.append(check.result(found))
        except SPARK_FAILURES as error:
            results.append(unknown(check.name, check.kind, cause(error)))
    return row, results


def _aggregate(own: DataFrame, aggregates: Any) -> Row:
    row = own.agg(*(each.alias(alias) for alias, each in aggregates.items())).head()
    assert row is not None
    return row.asDict()


def _across(suite: Suite, name: str, each: Judge, judged: int) -> Result:
    try:
        return each(judged)
    except SPARK_FAILURES as error:
        kinds = {one.name: str(one.__struct_config__.tag) for one in suite.expectations}
        return unknown(name, kinds[name], cause(error))


def _with_samples(
    own: DataFrame, passed: Sequence[Check], results: Sequence[Result], at_most: int
) -> list[Result]:
    """No verdict hangs on samples: without them it is the same."""
    try:
        found = samples(own, passed, results, at_most)
    except SPARK_FAILURES:
        found = {}
    return [replace(each, samples=found.get(index, ())) for index, each in enumerate(results)]
