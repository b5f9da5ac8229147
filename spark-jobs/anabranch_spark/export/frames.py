"""Records of a range as a Spark frame, with values decoded if a schema is given."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from anabranch_spark.export.ranges import Range
from anabranch_spark.export.request import Request
from anabranch_spark.jobs.values import decoded, schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Read = Callable[[Range], "DataFrame"]
"""The records of a range, in order of position within each partition."""


def reading(spark: "SparkSession", request: Request) -> Read:
    """Read ranges of the request's log. BadRequest if the schema can't be understood."""
    # Once: a range may be read in another thread, which has no active session to ask.
    schema = None if request.schema is None else schema_of(request.schema)

    def read(positions: Range) -> "DataFrame":
        frame = spark.read.format("anabranch").options(
            service=request.service, log=request.log, to=str(positions.end)
        )
        records = frame.option("from", str(positions.start)).load()
        return records if schema is None else decoded(records, schema)

    return read
