"""The contents of two logs by key, as Spark reads them: only counts and samples are collected.

What both logs share at the same positions is read once, and only for keys that occur where they
differ.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sql

from anabranch_spark.diff.ranges import Range, Reads
from anabranch_spark.diff.report import TEXT_CHARS, Keys, Sample, text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

CHANGES = ("added", "removed", "changed", "not_comparable")
_A, _B, _BOTH = "a", "b", "both"


class Contents:
    """Two logs, read in the ranges where they have to be."""

    def __init__(
        self, spark: "SparkSession", service: str, logs: tuple[str, str], ranges: Reads
    ) -> None:
        self._spark, self._service = spark, service
        self._a, self._b = logs
        self._ranges = ranges

    def keys(self, *, samples: int, output: str | None) -> Keys:
        """Count the differences, and write all of them as Parquet to `output`, if it is given."""
        with _kept(self._last_own()) as own, _kept(self._changes(own)) as changes:
            if output is not None:
                changes.write.parquet(output)
            counts = {row["change"]: row["count"] for row in _counted(changes)}
            shown = [
                _sample(row)
                for change in CHANGES
                if counts.get(change)
                for row in _shown(changes.where(sql.col("change") == change).limit(samples))
            ]
        without_a, without_b = self._without_key(self._a, 0), self._without_key(self._b, 1)
        return Keys(
            added=counts.get("added", 0),
            removed=counts.get("removed", 0),
            changed=counts.get("changed", 0),
            not_comparable=counts.get("not_comparable", 0),
            without_key_a=without_a[0],
            without_key_b=without_b[0],
            without_key_equal=without_a == without_b,
            samples=shown,
        )

    def _last_own(self) -> "DataFrame":
        """The last record of each key in what each side has for itself."""
        ranges = self._ranges
        sides = [
            (_A, self._a, ranges.head_a),
            (_A, self._a, ranges.tail_a),
            (_B, self._b, ranges.head_b),
            (_B, self._b, ranges.tail_b),
        ]
        frames = [
            self._read(log, each).withColumn("side", sql.lit(side)) for side, log, each in sides
        ]
        rows = reduce(_union, frames).where(sql.col("key").isNotNull())
        last = sql.max(sql.struct("position", "value"))
        return rows.groupBy("side", "key").agg(last.alias("last"))

    def _changes(self, own: "DataFrame") -> "DataFrame":
        keys = own.select("key").distinct()
        middle = self._read(self._a, self._ranges.middle).join(keys, "key", "left_semi")
        shared = middle.select(
            sql.lit(_BOTH).alias("side"), "key", sql.struct("position", "value").alias("last")
        )
        side, last = sql.col("side"), sql.col("last")
        ends = _union(own, shared).groupBy("key")
        both = ends.agg(
            sql.max(sql.when(side != _B, last)).alias("a"),
            sql.max(sql.when(side != _A, last)).alias("b"),
        )
        return both.select(
            "key",
            self._change().alias("change"),
            sql.col("a.position").alias("position_a"),
            sql.col("a.value").alias("value_a"),
            sql.col("b.position").alias("position_b"),
            sql.col("b.value").alias("value_b"),
        ).where(sql.col("change").isNotNull())

    def _change(self) -> "Column":
        """Of a key whose last records are `a` and `b`; null if it didn't change.

        Where the other log may have had the record, and trimmed it, its key says nothing.
        """
        a, b = sql.col("a"), sql.col("b")
        unsure_a = _lies_in(sql.col("a.position"), self._ranges.unsure_a)
        unsure_b = _lies_in(sql.col("b.position"), self._ranges.unsure_b)
        return (
            sql.when(b.isNull(), sql.when(unsure_a, "not_comparable").otherwise("removed"))
            .when(a.isNull(), sql.when(unsure_b, "not_comparable").otherwise("added"))
            .when(~sql.col("a.value").eqNullSafe(sql.col("b.value")), "changed")
        )

    def _without_key(self, log: str, side: int) -> tuple[int, int]:
        """How many records there are without a key, and a sum that doesn't depend on their order:
        where the logs differ, the same records may lie at other positions.
        """
        tail = (self._ranges.tail_a, self._ranges.tail_b)[side]
        if tail[0] >= tail[1]:
            return 0, 0
        rows = self._read(log, tail).where(sql.col("key").isNull())
        # ANSI's bigint would overflow.
        hashed = sql.xxhash64("value").cast("decimal(20,0)")
        (found,) = rows.agg(sql.count("*").alias("count"), sql.sum(hashed).alias("sum")).collect()
        return found["count"], int(found["sum"] or 0)

    def _read(self, log: str, positions: Range) -> "DataFrame":
        first, end = positions
        if first >= end:
            spark: Any = self._spark  # its types aren't complete
            return spark.createDataFrame([], "position bigint, key binary, value binary")
        reader = self._spark.read.format("anabranch").option("service", self._service)
        reader = reader.option("log", log).option("from", first).option("to", end)
        return reader.option("columns", "position,key,value").load()


def _lies_in(position: "Column", ranges: Sequence[Range]) -> "Column":
    held = [(position >= first) & (position < end) for first, end in ranges]
    return reduce(lambda one, other: one | other, held, sql.lit(False))


def _union(one: "DataFrame", other: "DataFrame") -> "DataFrame":
    return one.unionByName(other)


@contextmanager
def _kept(frame: "DataFrame") -> "Generator[DataFrame]":
    """Computed once, and used several times."""
    kept = frame.persist()
    try:
        yield kept
    finally:
        kept.unpersist()


def _counted(changes: "DataFrame") -> list[Any]:
    return changes.groupBy("change").count().collect()


def _shown(changes: "DataFrame") -> list[Any]:
    """Without the rest of large values, of which a report shows nothing."""
    cut = {name: sql.substring(name, 1, TEXT_CHARS + 1) for name in ("key", "value_a", "value_b")}
    return changes.withColumns(cut).collect()


def _sample(row: Any) -> Sample:
    return Sample(
        change=row["change"],
        key=text(row["key"]) or "",
        position_a=row["position_a"],
        value_a=text(row["value_a"]),
        position_b=row["position_b"],
        value_b=text(row["value_b"]),
    )
