"""Spark's stream writer: each micro-batch is a version of the query's writer."""

from collections.abc import Iterator, Mapping

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from anabranch_spark.plain_errors import plain
from anabranch_spark.sink.identity import BATCH_ID, QUERY_ID, stream_version
from anabranch_spark.sink.log_sink import LogSink
from anabranch_spark.sink.options import stream_options
from anabranch_spark.sink.rows import ArrowBatch
from anabranch_spark.sink.spark_parts import (
    Messages,
    PartMessage,
    log_sink,
    refuse_overwrite,
    reported,
    task,
)


class StreamWriter(DataSourceStreamArrowWriter):
    """Spark makes one for each micro-batch, and another one to commit or abort it."""

    def __init__(self, sink: LogSink, writer: str | None) -> None:
        self._sink, self._writer = sink, writer

    @plain
    def write(self, iterator: Iterator[ArrowBatch]) -> WriterCommitMessage:
        """Append one partition; in a task."""
        context = task()
        version = stream_version(
            self._writer, context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
        )
        part = context.partitionId()
        return PartMessage(self._sink.write(iterator, version=version, part=part))

    @plain
    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        self._sink.commit(reported(messages), expected=batchId)

    @plain
    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        self._sink.abort(reported(messages))


def stream_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> StreamWriter:
    """Refuses options, columns and output modes that a log can't have."""
    refuse_overwrite(overwrite)
    given = stream_options(options)
    return StreamWriter(log_sink(given, schema), given.writer)
