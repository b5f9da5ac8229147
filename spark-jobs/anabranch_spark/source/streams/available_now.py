"""Run a stream until it has read what the log has now, and then end it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from anabranch.errors import BadRequest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter


NO_PYTHON = "Python worker failed to connect back"
"""Spark gives a stream's Python process 10 seconds to start, whatever its settings say. On a busy
machine that isn't enough. The query has read nothing then.
"""
STARTS_MAX = 4


def available_now(
    reader: "DataStreamReader", write: "Callable[[DataFrame], DataStreamWriter]"
) -> "StreamingQuery":
    """Read everything that is settled when the query starts, in as many micro-batches as the
    reader's options make of it, and return the query when it has ended. What failed is raised.

    `reader` is a stream reader before its `load()`; `write` makes a writer with a checkpoint of its
    frame, and doesn't start it. Repeated with the same checkpoint, it goes on where it stopped.
    """
    from pyspark.errors import StreamingQueryException
    from pyspark.sql import DataFrame

    if isinstance(reader, DataFrame):
        raise BadRequest("available_now", "it takes the reader before its load(), and loads itself")
    frame = reader.option("availableNow", "true").load()
    writer = write(frame)
    # Over Spark Connect the server's version counts.
    limited = limits_micro_batches(frame.sparkSession.version)
    if not hasattr(writer, "trigger"):
        stop = getattr(writer, "stop", None)
        if stop is not None:
            stop()
        raise BadRequest("available_now", "`write` returns a writer, and doesn't start it")
    for _ in range(STARTS_MAX - 1):
        try:
            return _ended(writer, limited=limited)
        except StreamingQueryException as error:
            if NO_PYTHON not in str(error):
                raise
    return _ended(writer, limited=limited)


def _ended(writer: "DataStreamWriter", *, limited: bool) -> "StreamingQuery":
    """The query, when it has ended. `limited`: Spark's own trigger keeps a reader's limits."""
    if limited:
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return query
    # Under Spark 4.1's own trigger a reader that limits its micro-batches reads one, and ends.
    query = writer.trigger(processingTime="0 seconds").start()
    try:
        query.processAllAvailable()
        stopped = not query.isActive
    finally:
        query.stop()
    if stopped:
        raise BadRequest("available_now", "the query was stopped before it had read everything")
    return query


def limits_micro_batches(version: str) -> bool:
    """Can a Python reader limit its micro-batches under this version of Spark's own trigger?"""
    major, minor = version.split(".")[:2]
    return (int(major), int(minor)) >= (4, 2)
