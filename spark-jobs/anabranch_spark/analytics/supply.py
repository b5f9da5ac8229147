"""Items that run out, as the orders and restocks of a log take them from stock and bring them."""

from typing import TYPE_CHECKING

from anabranch_spark.analytics.question import Findings, Question

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STOCK = 100
"""Of each item, before the first event."""
ORDER, RESTOCK = "order", "restock"


def levels(events: "DataFrame", stock: int = STOCK) -> "DataFrame":
    """Each event with the stock of its item after it, in the log's order."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    so_far = (
        Window.partitionBy("item")
        .orderBy("position")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    sign = sql.when(sql.col("kind") == RESTOCK, 1).otherwise(-1)
    change = sql.sum(sign * sql.col("quantity")).over(so_far)
    return events.withColumn("stock", sql.lit(stock) + change)


def answer(events: "DataFrame", level: float | None) -> Findings:
    """One row for each item that ran out, the emptiest first."""
    from pyspark.sql import functions as sql

    short = sql.col("stock") < 0
    known = events.where(sql.col("kind").isin(ORDER, RESTOCK))
    found = (
        levels(known, STOCK if level is None else int(level))
        .groupBy("item")
        .agg(
            sql.sum(sql.when(sql.col("kind") == ORDER, sql.col("quantity")).otherwise(0)).alias(
                "ordered"
            ),
            sql.min("stock").alias("lowest"),
            sql.min(sql.when(short, sql.col("position"))).alias("first_short"),
            sql.count_if(short).alias("events_short"),
        )
        .where("lowest < 0")
        .orderBy("lowest", "item")
    )
    return Findings.of(found)


QUESTION = Question(
    name="supply",
    schema="kind STRING, item STRING, quantity BIGINT",
    asks="which items run out?",
    level=f"stock of each item before the first event, {STOCK} by default",
    answer=answer,
)
