"""Under which writer and version a part is appended, and what a batch's fork is called."""

import re
from hashlib import blake2b

import msgspec

from anabranch.errors import BadRequest
from anabranch_spark.sink.options import UNNAMED, WriteOptions

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
"""Local properties that Spark gives to the tasks of a stream."""
_SLUG_CHARS = 40
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9]+", re.ASCII)


class Version(msgspec.Struct, frozen=True):
    """A batch, by the name of who writes it and its number there."""

    writer: str
    number: int


def stream_version(given: str | None, query: str | None, batch: str | None) -> Version:
    """Of a micro-batch: the option `writer`, else the query's id, which outlives restarts."""
    if batch is None or not batch.isdecimal():
        raise BadRequest(
            "a micro-batch to be written to a log",
            f"Spark gave its task no batch id ({BATCH_ID} is {batch!r}); under foreachBatch use "
            "frame.write with the options 'writer' and 'version'",
        )
    if given is None and not query:
        raise BadRequest(
            "a micro-batch to be written to a log",
            f"Spark gave its task no query id ({QUERY_ID}): name the query with option 'writer'",
        )
    return Version(given or f"spark-{query}", int(batch))


def batch_version(options: WriteOptions, drawn: str) -> Version:
    """Of a batch write; `drawn`: what identifies it if the options don't."""
    if options.writer is not None:
        assert options.version is not None, "the options were checked"
        return Version(options.writer, options.version)
    return Version(f"{UNNAMED}{drawn}" if options.run is None else f"run-{options.run}", 0)


def fork_name(version: Version, execution: str) -> str:
    """Of the fork of one execution of a batch. People read it, so the writer's name is in it as
    far as names allow; the digest tells writers apart whose names look alike.
    """
    slug = _NOT_IN_NAMES.sub("-", version.writer)[:_SLUG_CHARS].strip("-")
    digest = blake2b(version.writer.encode(), digest_size=4).hexdigest()
    return "-".join(filter(None, ("spark", slug, digest, str(version.number), execution)))


def fork_owner(version: Version, execution: str) -> str:
    """Under which the first task creates the fork and the others find it."""
    return f"anabranch_spark {execution} {version.number} {version.writer}"
