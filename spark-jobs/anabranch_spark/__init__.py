"""Spark reads logs and forks from the object store, and writes them exactly once.

`register(spark)` makes the data source `anabranch` known to a session. Plans, cuts, offsets,
options and expectations are plain modules that import no pyspark; the classes that Spark calls
are above them. This package imports `anabranch` and is imported by nothing in it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

__all__ = ["available_now", "register"]


def register(spark: "SparkSession") -> None:
    """Make `spark.read.format("anabranch")` and its siblings available in this session."""
    from anabranch_spark.source.datasource import AnabranchDataSource

    spark.dataSource.register(AnabranchDataSource)


def available_now(
    reader: "DataStreamReader", write: "Callable[[DataFrame], DataStreamWriter]"
) -> "StreamingQuery":
    """Read everything that is settled now, in micro-batches as limited as the reader's options say,
    and return the query when it has ended.

    `reader` is a stream reader before its `load()`; `write` makes a writer of its frame, with a
    checkpoint, and doesn't start it. On Spark 4.1 this does what its own trigger can't.
    """
    from anabranch_spark.source.streams.available_now import available_now as run

    return run(reader, write)
