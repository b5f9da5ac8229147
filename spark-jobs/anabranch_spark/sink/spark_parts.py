"""What both of Spark's writers need of pyspark: commit messages, schemas, a task's place."""

import secrets
from typing import Any, cast

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from anabranch.errors import BadRequest
from anabranch_spark.service import address
from anabranch_spark.sink.columns import input_columns
from anabranch_spark.sink.log_sink import LogSink
from anabranch_spark.sink.messages import PartWritten
from anabranch_spark.sink.options import WriteOptions

Messages = list[WriterCommitMessage | None]
"""Of all tasks of a write; None in the place of one that failed."""


class PartMessage(WriterCommitMessage):
    """A task's report, on its way to the driver."""

    def __init__(self, written: PartWritten) -> None:
        self.written = written


def reported(messages: Messages) -> list[PartWritten | None]:
    found: list[PartWritten | None] = []
    for message in messages:
        assert message is None or isinstance(message, PartMessage), "our tasks sent them"
        found.append(None if message is None else message.written)
    return found


def log_sink(options: WriteOptions, schema: StructType) -> LogSink:
    """For one execution of a batch."""
    fields = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    return LogSink(
        url=address(options.service),
        log=options.log,
        mode=options.mode,
        columns=input_columns(fields),
        execution=secrets.token_hex(8),
        fork_ttl_s=options.fork_ttl_s,
    )


def refuse_overwrite(overwrite: bool) -> None:
    if overwrite:
        raise BadRequest(
            "overwrite a log",
            "records that are in a log stay there: use mode 'append' ('append' is also the output "
            "mode of a stream), and trim or squash what shall go",
        )


def task() -> Any:
    """The context of the task that runs this."""
    context = TaskContext.get()
    assert context is not None, "Spark calls `write` in tasks only"
    return cast("Any", context)
