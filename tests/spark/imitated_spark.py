"""What Spark does with the data source, without Spark: a process for each planner, task and commit,
which may be killed at any moment, as Spark's Python workers may.

It does as pyspark's own workers do (`write_into_data_source`, `python_streaming_sink_runner`,
`commit_data_source_write`): a writer is made by a planner and pickled for the tasks; a stream's
commit has another writer, a batch's has the planner's.
"""

import os
import pickle
import random
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark import TaskContext
from pyspark.cloudpickle import dumps
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from anabranch_spark.source.datasource import AnabranchDataSource

QUERY, BATCH = "sql.streaming.queryId", "streaming.sql.batchId"
SCHEMA = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_WORKERS = get_context("forkserver")
_WORKERS.set_forkserver_preload(
    [
        __name__,
        "anabranch_spark.sink.batch_writer",
        "anabranch_spark.sink.stream_writer",
        "concurrent.futures.thread",
        "encodings.idna",
        "tests.integration.server_process",
        "uvloop",
    ]
)
"""Else each process would take a second to load them."""

Rows = Sequence[tuple[str, bytes]]


class How(Enum):
    """How a process of a worker ended."""

    DONE = auto()
    RAISED = auto()
    KILLED = auto()


class Ended(NamedTuple):
    how: How
    answer: Any
    """What it was to make, or what it raised as text."""


@dataclass(frozen=True)
class Write:
    """One execution of one batch: what Spark knows of it."""

    options: dict[str, str]
    query: str | None = None
    """Of a stream."""
    batch: int = 0

    @property
    def properties(self) -> dict[str, str]:
        if self.query is None:
            return {}
        return {QUERY: self.query, BATCH: str(self.batch)}


class Worker:
    """A process that does one thing, and gives what that made."""

    def __init__(self, what: Any, *arguments: Any, killed_after: float | None = None) -> None:
        self._answer, theirs = _WORKERS.Pipe(duplex=False)
        self._process = _WORKERS.Process(
            target=_work, args=(theirs, killed_after, what, arguments), daemon=True
        )
        self._process.start()
        theirs.close()

    def kill(self) -> None:
        self._process.kill()

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def ended(self) -> Ended:
        """Waits."""
        with self._answer:
            try:
                how, content = self._answer.recv()
            except EOFError:
                how, content = How.KILLED, None
        self._process.join()
        self._process.close()
        return Ended(how, content)


def _work(answer: Connection, killed_after: float | None, what: Any, arguments: Any) -> None:
    if killed_after is not None:
        # Nobody handles it, so it ends the process at once, as SIGKILL does.
        signal.setitimer(signal.ITIMER_REAL, max(killed_after, 1e-6))
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # it is the process's until its end
    try:
        answer.send((How.DONE, what(*arguments)))
    except Exception as error:
        with suppress(OSError):
            answer.send((How.RAISED, f"{type(error).__name__}: {error}"))
    answer.close()
    os._exit(0)


def plan(write: Write) -> bytes:
    """A writer for the tasks, pickled."""
    return dumps(_writer(write))


def run_task(write: Write, writer: bytes, part: int, attempt: int, rows: Rows) -> bytes:
    """A commit message, pickled."""
    context = TaskContext._getOrCreate()  # as Spark's worker does
    for name, value in (
        ("_stageId", 3),
        ("_partitionId", part),
        ("_attemptNumber", attempt),
        ("_taskAttemptId", part * 100 + attempt),
        ("_localProperties", write.properties),
        ("_resources", {}),
        ("_cpus", 1),
    ):
        setattr(context, name, value)
    made: Any = pickle.loads(writer)
    return pickle.dumps(made.write(_arrow(rows, random.randint(1, 60))))


def end(write: Write, writer: bytes, messages: Sequence[bytes | None], abort: bool) -> bool:
    """Commit or abort."""
    given = [pickle.loads(each) if each is not None else None for each in messages]
    if write.query is None:
        made: Any = pickle.loads(writer)
        (made.abort if abort else made.commit)(given)
    else:
        made = _writer(write)
        (made.abort if abort else made.commit)(given, write.batch)
    return True


def _writer(write: Write) -> Any:
    source = AnabranchDataSource(CaseInsensitiveDict(write.options))  # type: ignore[arg-type]
    if write.query is None:
        return source.writer(SCHEMA, overwrite=False)
    return source.streamWriter(SCHEMA, overwrite=False)


def _arrow(rows: Rows, size: int) -> Iterator[pa.RecordBatch]:
    """How rows lie in Arrow's batches is nobody's promise, so it differs from try to try."""
    for first in range(0, len(rows), size):
        some = rows[first : first + size]
        keys = pa.array([key for key, _ in some], pa.string())
        values = pa.array([value for _, value in some], pa.binary())
        yield pa.record_batch([keys, values], names=["key", "value"])
