"""What is judged across records: uniqueness over prefix and fork, references by anti-joins."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody does
from pyspark.sql.types import DataType, NumericType

from anabranch.errors import BadRequest
from anabranch_spark.expectations.decode import OWN, PARSED, column, decoded, same_type, type_of
from anabranch_spark.expectations.outcome import Result, Sample
from anabranch_spark.expectations.passes import SHOWN_BYTES_MAX, of_records, sample
from anabranch_spark.expectations.row_checks import where
from anabranch_spark.expectations.suite import References, Suite, Unique, Value

Logs = Callable[[str], DataFrame]
"""Gives a log's records by its name, with the columns of `source.schema`."""
Judge = Callable[[int], Result]
"""Runs Spark's jobs for one expectation, with the number of records that it is held against."""

_POSITION = "_anabranch_position"


def relations(suite: Suite, whole: DataFrame, logs: Logs) -> dict[str, Judge]:
    """How to judge each such expectation, by name; nothing runs here. BadRequest says everything
    that can't be asked of the columns.
    """
    found: dict[str, Judge] = {}
    troubles: list[str] = []
    for each in suite.expectations:
        try:
            if isinstance(each, Unique):
                found[each.name] = _unique(each, whole, suite.samples)
            elif isinstance(each, References):
                found[each.name] = _references(each, whole, suite, logs)
        except BadRequest as error:
            troubles.append(f"{each.name!r}: {error}")
    if troubles:
        raise BadRequest("judge these columns", "; ".join(troubles))
    return found


def _unique(each: Unique, whole: DataFrame, samples: int) -> Judge:
    for name in each.columns:
        type_of(whole.schema, name)
    names = _names(each.columns)
    keys = _keys(whole, each.columns)

    def judge(judged: int) -> Result:
        groups = (
            keys.where(_there(names))
            .groupBy(*names)
            .agg(
                F.count_if(F.col(OWN)).alias("own"),
                F.count_if(~F.col(OWN)).alias("inherited"),
                F.max(F.when(F.col(OWN), F.col(_POSITION))).alias(_POSITION),
            )
        )
        surplus = F.when(F.col("inherited") > 0, F.col("own")).otherwise(F.col("own") - 1)
        repeated = groups.where("own > 0").withColumn("surplus", surplus).where("surplus > 0")
        nulls = keys.where(F.col(OWN) & ~_there(names))
        total: Any = repeated.agg(F.sum("surplus")).head()
        misses = int(total[0] or 0)
        found = _samples(repeated, names, samples) if misses else []
        if each.nulls == "miss" and (without := nulls.count()):
            misses += without
            found += _samples(nulls, names, samples - len(found))
        return of_records(each, judged=judged, misses=misses, samples=tuple(found))

    return judge


def _references(each: References, whole: DataFrame, suite: Suite, logs: Logs) -> Judge:
    there = _referenced(each, whole, suite.value, logs)
    to = each.to or each.columns
    for mine, its in zip(each.columns, to, strict=True):
        _check_types(mine, type_of(whole.schema, mine), its, type_of(there.schema, its))
    names, targets = _names(each.columns), [f"t{index}" for index in range(len(to))]
    own = _keys(whole, each.columns).where(OWN)
    known = there.select(
        *(column(its).alias(name) for its, name in zip(to, targets, strict=True))
    ).distinct()
    same = _all([F.col(a) == F.col(b) for a, b in zip(names, targets, strict=True)])

    def judge(judged: int) -> Result:
        lost = own.where(_there(names)).join(known, same, "left_anti")
        if each.nulls == "miss":
            lost = lost.unionByName(own.where(~_there(names)))
        misses = lost.count()
        found = _samples(lost, names, suite.samples) if misses else []
        return of_records(each, judged=judged, misses=misses, samples=tuple(found))

    return judge


def _referenced(each: References, whole: DataFrame, value: Value, logs: Logs) -> DataFrame:
    if each.among == "log":
        assert each.log is not None
        other = logs(each.log)
        there = decoded(other, each.value or value, own=F.lit(False))
    else:
        there = whole if each.among == "fork" else whole.where(~F.col(OWN))
    return where(there.where(PARSED), each.where)


def _check_types(mine: str, kind: DataType, its: str, other: DataType) -> None:
    """Spark would cast one to the other, and fail at the first text that is no number."""
    if same_type(kind, other) or (isinstance(kind, NumericType) and isinstance(other, NumericType)):
        return
    types = f"{kind.simpleString()}, and that of {its!r} is {other.simpleString()}"
    raise BadRequest(f"look for {mine!r} in {its!r}", f"its type is {types}")


def _keys(whole: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The columns of the records that parse, under names that are no words of SQL."""
    wanted = [column(each).alias(name) for each, name in zip(columns, _names(columns), strict=True)]
    position = F.col("record.position").alias(_POSITION)
    return whole.where(PARSED).select(OWN, position, *wanted)


def _all(conditions: Sequence[Column]) -> Column:
    return reduce(lambda one, other: one & other, conditions)


def _names(columns: Sequence[str]) -> list[str]:
    return [f"k{index}" for index in range(len(columns))]


def _there(names: Sequence[str]) -> Column:
    return _all([F.col(name).isNotNull() for name in names])


def _samples(frame: DataFrame, names: Sequence[str], at_most: int) -> list[Sample]:
    if at_most <= 0:
        return []
    key: Any = (
        F.col(names[0]) if len(names) == 1 else F.array(*(F.col(n).cast("string") for n in names))
    )
    text = F.substring(F.to_json(F.struct(key.alias("c"))), 1, SHOWN_BYTES_MAX).cast("binary")
    rows = frame.select(_POSITION, text.alias("shows")).orderBy(_POSITION).limit(at_most).collect()
    return [sample(row[0], row[1]) for row in rows]
