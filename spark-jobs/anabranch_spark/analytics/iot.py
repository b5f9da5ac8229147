"""Readings unlike the others of their sensor, and which status these sensors had."""

from typing import TYPE_CHECKING

from anabranch_spark.analytics.question import Findings, Question

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SIGMAS = 4.0
"""A reading is an anomaly if it is further than so many standard deviations from the mean."""


def anomalies(readings: "DataFrame", sigmas: float = SIGMAS) -> "DataFrame":
    """Readings further than `sigmas` standard deviations from the mean of sensor and metric.

    The mean is that of all readings, so one spike in few readings hides itself: of n readings none
    is further than (n - 1) / sqrt(n) deviations away.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    same = Window.partitionBy("sensor", "metric")
    away = sql.abs(sql.col("value") - sql.avg("value").over(same))
    return (
        readings.withColumn("away", away)
        .withColumn("deviation", sql.stddev_pop("value").over(same))
        .where(sql.col("away") > sql.col("deviation") * sigmas)
    )


def answer(readings: "DataFrame", level: float | None) -> Findings:
    """One row for each sensor and metric with anomalies, those with most first."""
    from pyspark.sql import functions as sql

    found = (
        anomalies(readings, SIGMAS if level is None else level)
        .groupBy("sensor", "metric")
        .agg(
            sql.count(sql.lit(1)).alias("anomalies"),
            sql.count_if(sql.col("status") != "ok").alias("not_ok"),
            sql.min("position").alias("first"),
            sql.max("away").alias("furthest"),
        )
        .orderBy(sql.desc("anomalies"), "sensor", "metric")
    )
    return Findings.of(found)


QUESTION = Question(
    name="iot",
    schema="sensor STRING, metric STRING, value DOUBLE, status STRING",
    asks="which readings are unlike the others of their sensor?",
    level=f"standard deviations from the mean, {SIGMAS:g} by default",
    answer=answer,
)
