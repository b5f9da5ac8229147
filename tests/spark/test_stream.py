"""Streams of logs in a real session: micro-batches, restarts, and what ends a query."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import anabranch
from anabranch_spark import available_now
from anabranch_spark.source.streams.available_now import limits_micro_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter


@pytest.fixture
def stream(spark: "SparkSession", url: str) -> "Callable[..., DataStreamReader]":
    """A stream reader of a log, with these options."""

    def stream(log: str, **options: str) -> "DataStreamReader":
        reader = spark.readStream.format("anabranch").option("service", url).option("log", log)
        return reader.options(columns="position", **options)

    return stream


class Sink:
    """Collects the positions of each micro-batch."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint = checkpoint
        self.batches: dict[int, list[int]] = {}
        self.fails_at = -1

    def __call__(self, frame: "DataFrame") -> "DataStreamWriter":
        writer = frame.writeStream.foreachBatch(self._take)
        return writer.option("checkpointLocation", str(self.checkpoint))

    def _take(self, frame: "DataFrame", batch: int) -> None:
        rows = sorted(row.position for row in frame.collect())
        if batch == self.fails_at:
            raise RuntimeError("killed here")
        self.batches[batch] = rows

    @property
    def sizes(self) -> list[int]:
        return [len(self.batches[each]) for each in sorted(self.batches) if self.batches[each]]

    @property
    def positions(self) -> list[int]:
        return [each for batch in sorted(self.batches) for each in self.batches[batch]]


def test_available_now_reads_all_there_is_in_limited_micro_batches_over_restarts(
    stream: "Callable[..., DataStreamReader]", log: anabranch.Log, tmp_path: Path
) -> None:
    log.append_many([b"x"] * 350)
    sink = Sink(tmp_path / "checkpoint")
    available_now(stream(log.name, maxRecordsPerTrigger="100"), sink)
    assert sink.sizes == [100, 100, 100, 50]
    log.append_many([b"x"] * 120)
    again = Sink(tmp_path / "checkpoint")
    query = available_now(stream(log.name, maxRecordsPerTrigger="100"), again)
    assert again.sizes == [100, 20]
    assert not query.isActive
    assert sink.positions + again.positions == [*range(470)]
    nothing = Sink(tmp_path / "checkpoint")
    available_now(stream(log.name, maxRecordsPerTrigger="100"), nothing)
    assert nothing.sizes == []


def test_available_now_ends_where_the_reader_is_to_end(
    stream: "Callable[..., DataStreamReader]", log: anabranch.Log, tmp_path: Path
) -> None:
    log.append_many([b"x"] * 30)
    sink = Sink(tmp_path / "checkpoint")
    available_now(stream(log.name, maxRecordsPerTrigger="10", to="25"), sink)
    assert sink.sizes == [10, 10, 5]
    available_now(stream(log.name, to="99"), sink)
    assert sink.positions == [*range(30)]


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({"maxRecordsPerTrigger": "100"}, [100, 100, 100, 50]),
        ({"maxBytesPerTrigger": "1"}, None),  # each slice by itself
        ({"minRecordsPerTrigger": "1000"}, [350]),
        ({"to": "120", "maxRecordsPerTrigger": "100"}, [100, 20]),
    ],
)
def test_sparks_own_trigger_keeps_the_limits_and_reads_what_there_is(
    spark: "SparkSession",
    stream: "Callable[..., DataStreamReader]",
    log: anabranch.Log,
    tmp_path: Path,
    options: dict[str, str],
    sizes: list[int] | None,
) -> None:
    if not limits_micro_batches(spark.version):
        pytest.skip(f"under this trigger Spark {spark.version} reads one limited micro-batch")
    log.append_many([b"x"] * 350)
    with log.plan_scan() as plan:
        slices = [each.count for page in plan.pages() for each in page]
    sink = Sink(tmp_path / "checkpoint")
    query = sink(stream(log.name, **options).load()).trigger(availableNow=True).start()
    query.awaitTermination()
    assert sink.sizes == (sizes or slices)
    latest = [progress.sources[0].latestOffset for progress in query.recentProgress]
    assert '"position": 350' in str(latest[0]).replace("'", '"')


def test_once_reads_everything_in_one_micro_batch(
    spark: "SparkSession",
    stream: "Callable[..., DataStreamReader]",
    log: anabranch.Log,
    tmp_path: Path,
) -> None:
    if not limits_micro_batches(spark.version):
        pytest.skip(f"Spark {spark.version} doesn't tell a Python reader of this trigger")
    log.append_many([b"x"] * 350)
    sink = Sink(tmp_path / "checkpoint")
    query = sink(stream(log.name, maxRecordsPerTrigger="100").load()).trigger(once=True).start()
    query.awaitTermination()
    assert sink.sizes == [350]


def test_a_micro_batch_that_failed_comes_again_as_it_was(
    stream: "Callable[..., DataStreamReader]", log: anabranch.Log, tmp_path: Path
) -> None:
    log.append_many([b"x"] * 250)
    sink = Sink(tmp_path / "checkpoint")
    sink.fails_at = 1
    with pytest.raises(Exception, match="killed here"):
        available_now(stream(log.name, maxRecordsPerTrigger="100"), sink)
    log.append_many([b"x"] * 30)
    again = Sink(tmp_path / "checkpoint")
    # The limit is another one now, and the range of the batch that failed is not.
    available_now(stream(log.name, maxRecordsPerTrigger="70"), again)
    assert again.batches[1] == [*range(100, 200)]
    assert sink.positions + again.positions == [*range(280)]


def test_a_promoted_fork_ends_the_query_with_the_services_words(
    stream: "Callable[..., DataStreamReader]", log: anabranch.Log, tmp_path: Path
) -> None:
    log.append_many([b"x"] * 3)
    fork = log.cfork("better", promotable=True)
    sink = Sink(tmp_path / "checkpoint")
    query = sink(stream(fork.name).load()).start()
    try:
        query.processAllAvailable()
        assert sink.positions == [0, 1, 2]
        fork.promote()
        with pytest.raises(Exception, match=f"{fork.name} was promoted.*use {log.name}"):
            query.awaitTermination(60)
    finally:
        query.stop()


def test_a_stream_that_cannot_be_is_refused(
    stream: "Callable[..., DataStreamReader]", log: anabranch.Log, tmp_path: Path
) -> None:
    sink = Sink(tmp_path / "checkpoint")
    with pytest.raises(Exception, match="speculative: it is for a batch only"):
        available_now(stream(log.name, speculative="true"), sink)
