"""Payments unlike the user's earlier ones: many within a short time, or one of a large amount."""

from typing import TYPE_CHECKING

from anabranch_spark.analytics.question import Findings, Question

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WITHIN_MS = 10_000
MANY = 5
"""So many payments of a user within WITHIN_MS are too many."""
TIMES = 10.0
"""A payment is large if it is more than so many times the mean of the user's earlier ones."""


def statistics(payments: "DataFrame") -> "DataFrame":
    """Each payment with the user's number of payments within WITHIN_MS up to it, and the mean of
    those before it in the log; null for a user's first.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    user = Window.partitionBy("user")
    lately = user.orderBy("at").rangeBetween(-WITHIN_MS, Window.currentRow)
    before = user.orderBy("position").rowsBetween(Window.unboundedPreceding, -1)
    return payments.withColumn("lately", sql.count(sql.lit(1)).over(lately)).withColumn(
        "mean_before", sql.avg("amount").over(before)
    )


def answer(payments: "DataFrame", level: float | None) -> Findings:
    """One row for each user with suspicious payments, the most suspicious first."""
    from pyspark.sql import functions as sql

    many = sql.col("lately") >= MANY
    limit = sql.col("mean_before") * (TIMES if level is None else level)
    # A user's first payment has no mean before it, and can't be compared.
    large = sql.coalesce(sql.col("amount") > limit, sql.lit(False))
    found = (
        statistics(payments)
        .groupBy("user")
        .agg(
            sql.count(sql.lit(1)).alias("payments"),
            sql.sum("amount").alias("total"),
            sql.max("amount").alias("largest"),
            sql.count_if(many).alias("too_many"),
            sql.count_if(large).alias("too_large"),
        )
        .where("too_many + too_large > 0")
        .orderBy(sql.expr("too_many + too_large").desc(), "user")
    )
    return Findings.of(found)


QUESTION = Question(
    name="fraud",
    schema="user STRING, amount BIGINT, at BIGINT",
    asks="which users pay unlike before?",
    level=f"times the mean of the user's earlier payments, {TIMES:g} by default",
    answer=answer,
)
