"""What only Spark Connect does: streams whose functions run in the server, and what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import anabranch
from anabranch.errors import BadRequest
from anabranch_spark import available_now
from anabranch_spark.export.__main__ import main as export
from anabranch_spark.jobs.session import REMOTE, is_remote, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

Write = Callable[["DataFrame"], "DataStreamWriter"]


@pytest.fixture(autouse=True)
def connected(spark: "SparkSession") -> None:
    if not is_remote():
        pytest.skip(f"{REMOTE} names no Connect server")
    assert type(spark).__module__.startswith("pyspark.sql.connect")


@pytest.fixture
def reader(spark: "SparkSession", url: str, log: anabranch.Log) -> "DataStreamReader":
    reader = spark.readStream.format("anabranch").option("service", url).option("log", log.name)
    return reader.option("maxRecordsPerTrigger", "100")


def to_parquet(folder: Path) -> Write:
    def write(frame: "DataFrame") -> "DataStreamWriter":
        writer = frame.writeStream.format("parquet").option("path", str(folder / "data"))
        return writer.option("checkpointLocation", str(folder / "checkpoint"))

    return write


def positions(spark: "SparkSession", folder: Path) -> list[int]:
    return sorted(row.position for row in spark.read.parquet(str(folder / "data")).collect())


def test_available_now_reads_all_there_is_over_restarts(
    spark: "SparkSession", reader: "DataStreamReader", log: anabranch.Log, tmp_path: Path
) -> None:
    for end, batches in ((350, 4), (470, 2)):
        log.append_many([b"x"] * (end - log.describe().tail))
        query = available_now(reader, to_parquet(tmp_path))
        assert positions(spark, tmp_path) == [*range(end)]
        assert sum(each.numInputRows > 0 for each in query.recentProgress) == batches
        assert not query.isActive


def test_a_stream_from_log_to_log_appends_each_record_once(
    reader: "DataStreamReader",
    service: anabranch.Service,
    url: str,
    log: anabranch.Log,
    tmp_path: Path,
) -> None:
    log.append_many([b"%d" % nth for nth in range(250)])
    copy = service.create(f"{log.name}-copy")

    def write(frame: "DataFrame") -> "DataStreamWriter":
        writer = frame.select("value").writeStream.format("anabranch").option("service", url)
        writer = writer.option("log", copy.name).option("mode", "fork")
        return writer.option("checkpointLocation", str(tmp_path / "checkpoint"))

    for _ in range(2):
        available_now(reader, write)
        assert [each.value for each in copy.read()] == [each.value for each in log.read()]
    assert copy.describe().forks == 0


def test_a_promoted_fork_ends_the_query_with_the_services_words(
    spark: "SparkSession", url: str, log: anabranch.Log, tmp_path: Path
) -> None:
    fork = log.cfork("better", promotable=True)
    fork.append(b"x")
    reader = spark.readStream.format("anabranch").option("service", url).option("log", fork.name)
    query = to_parquet(tmp_path)(reader.load()).start()
    try:
        query.processAllAvailable()
        fork.promote()
        with pytest.raises(Exception, match=f"{fork.name} was promoted.*use {log.name}"):
            query.awaitTermination(60)
    finally:
        query.stop()


def test_what_needs_a_jvm_is_refused(
    url: str, log: anabranch.Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log.append(b"x")
    assert export([log.name, "--to", "parquet", str(tmp_path / "out"), "--service", url]) == 3
    assert "export a log over Spark Connect" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    with pytest.raises(BadRequest, match="leave them out"):
        session("tests", master="local[2]")
