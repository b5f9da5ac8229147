"""Spark reads logs and forks from the object store, and writes them exactly once.

`register(spark)` makes the data source `anabranch` known to a session. Plans, cuts, offsets,
options and expectations are plain modules that import no pyspark; the classes that Spark calls
are above them. This package imports `anabranch` and is imported by nothing in it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: "SparkSession") -> None:
    """Make `spark.read.format("anabranch")` and its siblings available in this session."""
    from anabranch_spark.source.datasource import AnabranchDataSource

    spark.dataSource.register(AnabranchDataSource)
