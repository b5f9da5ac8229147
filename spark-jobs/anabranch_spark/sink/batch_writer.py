"""Spark's batch writer: the whole write is one version."""

import logging
from collections.abc import Iterator, Mapping

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from anabranch.errors import BadRequest
from anabranch_spark.plain_errors import plain
from anabranch_spark.sink.identity import BATCH_ID, Version, batch_version
from anabranch_spark.sink.log_sink import LogSink
from anabranch_spark.sink.options import batch_options
from anabranch_spark.sink.rows import ArrowBatch
from anabranch_spark.sink.spark_parts import (
    Messages,
    PartMessage,
    log_sink,
    refuse_overwrite,
    reported,
    task,
)

_logger = logging.getLogger(__name__)


class BatchWriter(DataSourceArrowWriter):
    """One for the whole write, in tasks and driver."""

    def __init__(self, sink: LogSink, version: Version, *, repeatable: bool) -> None:
        self._sink, self._version, self._repeatable = sink, version, repeatable

    @plain
    def write(self, iterator: Iterator[ArrowBatch]) -> WriterCommitMessage:
        """Append one partition; in a task."""
        context = task()
        if not self._repeatable and context.getLocalProperty(BATCH_ID) is not None:
            raise BadRequest(
                "write to a log under foreachBatch without the options 'writer' and 'version'",
                "a batch that Spark repeats would be appended twice: give them a name of this "
                "write's own, and the batch id",
            )
        part = context.partitionId()
        return PartMessage(self._sink.write(iterator, version=self._version, part=part))

    @plain
    def commit(self, messages: Messages) -> None:
        self._sink.commit(reported(messages))

    @plain
    def abort(self, messages: Messages) -> None:
        self._sink.abort(reported(messages), version=self._version)


def batch_writer(options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> BatchWriter:
    """Refuses options, columns and modes that a log can't have."""
    refuse_overwrite(overwrite)
    given = batch_options(options)
    sink = log_sink(given, schema)
    version = batch_version(given, sink.execution)
    repeatable = given.run is not None or given.writer is not None
    if not repeatable:
        _logger.warning(
            "this write to %s has no option 'runId': if the job is run again, its records are "
            "appended again. It is writer %s, which a later write of this kind releases",
            given.log,
            version.writer,
        )
    return BatchWriter(sink, version, repeatable=repeatable)
