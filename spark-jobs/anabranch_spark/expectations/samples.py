"""A few of the records that miss, for each expectation that failed: one job for all."""

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # as everybody does

from anabranch_spark.expectations.outcome import Result, Sample, Status
from anabranch_spark.expectations.passes import Check, sample


def samples(
    own: DataFrame, passed: Sequence[Check], results: Sequence[Result], at_most: int
) -> dict[int, tuple[Sample, ...]]:
    """By the index of the result, in order of position."""
    hits = [
        F.when(check.misses, F.struct(F.lit(index).alias("check"), check.shows.alias("shows")))
        for index, (check, result) in enumerate(zip(passed, results, strict=True))
        if result.status is Status.FAILED and check.misses is not None and check.shows is not None
    ]
    if not hits or not at_most:
        return {}
    rows = _numbered(own, hits).where(F.col("n") <= at_most).orderBy("check", "n").collect()
    found: dict[int, tuple[Sample, ...]] = {}
    for row in rows:
        index = int(row["check"])
        found[index] = (*found.get(index, ()), sample(row["position"], row["shows"]))
    return found


def _numbered(own: DataFrame, hits: Iterable[Column]) -> DataFrame:
    """A row for each miss, numbered within its expectation; Spark keeps the first ones only."""
    each = own.select(
        F.col("record.position").alias("position"),
        F.explode(F.filter(F.array(*hits), lambda hit: hit.isNotNull())).alias("hit"),
    )
    order = Window.partitionBy("hit.check").orderBy("position")
    number = F.row_number().over(order).alias("n")
    return each.select("position", "hit.check", "hit.shows", number)
