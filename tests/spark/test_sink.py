"""Logs written by a real Spark, batch and stream, in both modes."""

import re
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import anabranch

pytest.importorskip("pyspark", reason="the extra `spark` isn't installed")

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf

_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
BOTH = pytest.mark.parametrize("mode", ["direct", "fork"])
ROWS = 25_000
"""More than Spark gives to a Python worker at a time."""
_names = count()


@pytest.fixture
def log(service: anabranch.Service) -> anabranch.Log:
    return service.create(f"sink-{next(_names)}")


def values(log: anabranch.Log) -> list[bytes]:
    return [record.value or b"" for record in log.read()]


def numbers(spark: SparkSession, end: int) -> DataFrame:
    return spark.range(end).selectExpr("CAST(id AS string) AS value")


def expected(end: int) -> list[bytes]:
    return sorted(b"%d" % number for number in range(end))


def options(log: anabranch.Log, url: str, **more: str) -> dict[str, str]:
    return {"service": url, "log": log.name, **more}


def save(frame: DataFrame, given: dict[str, str]) -> None:
    frame.write.format("anabranch").mode("append").options(**given).save()


class Files:
    """A folder that a stream reads, one file a batch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "files").mkdir()
        self._written = 0

    def write(self, *values: str) -> None:
        part = self.folder / "part"
        part.write_text("".join(f"{value}\n" for value in values))
        part.rename(self.folder / "files" / f"{self._written:03}.txt")
        self._written += 1

    def read(self, spark: SparkSession) -> DataFrame:
        lines = spark.readStream.schema("value string").option("maxFilesPerTrigger", 1)
        return lines.text(str(self.folder / "files"))

    def run(self, frame: DataFrame, given: dict[str, str], source: str = "anabranch") -> str:
        """Until all files are read; the query's id."""
        writing = frame.writeStream.format(source).options(**given).trigger(availableNow=True)
        query = writing.option("checkpointLocation", str(self.folder / "checkpoint")).start()
        query.awaitTermination()
        return query.id

    def forget_last_commit(self) -> None:
        entries = [int(each.name) for each in (self.folder / "checkpoint/commits").glob("[0-9]*")]
        (self.folder / "checkpoint/commits" / str(max(entries))).unlink()
        (self.folder / "checkpoint/commits" / f".{max(entries)}.crc").unlink()


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@BOTH
def test_a_run_that_is_repeated_appends_once(
    spark: SparkSession, url: str, log: anabranch.Log, mode: str
) -> None:
    for _ in range(2):
        save(numbers(spark, 100), options(log, url, mode=mode, runId="tuesday"))
        assert sorted(values(log)) == expected(100)
    save(numbers(spark, 100), options(log, url, mode=mode))
    assert sorted(values(log)) == sorted(2 * expected(100))
    named, drawn = sorted(each.writer for each in log.writers() if each.complete == 0)[::-1]
    assert named == "run-tuesday"
    assert drawn.startswith("once-")


def test_every_column_of_a_record_is_written_and_null_is_nothing(
    spark: SparkSession, url: str, log: anabranch.Log
) -> None:
    frame = spark.sql(
        """SELECT * FROM VALUES
        (CAST('k' AS binary), 'v', array(struct('h', X'01'), struct('h', NULL)),
         timestamp_micros(1700000000123456)),
        (NULL, NULL, NULL, NULL) AS rows(key, value, headers, timestamp)"""
    ).selectExpr(
        "timestamp",
        "CAST(headers AS array<struct<name: string, value: binary>>) AS headers",
        "value",
        "key",
    )
    save(frame.coalesce(1), options(log, url, runId="columns"))
    full, empty = log.read()
    assert (full.value, full.key, full.timestamp) == (b"v", b"k", 1_700_000_000_123)
    assert full.headers == (("h", b"\x01"), ("h", None))
    assert (empty.value, empty.key, empty.headers) == (None, None, ())
    assert empty.timestamp > 1_700_000_000_123, "the time of sending"


@pytest.mark.parametrize(
    ("given", "column", "says"),
    [
        ({"mod": "fork"}, "value", "did you mean 'mode'"),
        ({"path": "/data"}, "value", "a log isn't a file"),
        ({}, "price", "column 'price'"),
        ({"log": ""}, "value", "'log' is missing"),
    ],
)
def test_what_can_not_be_written_is_refused_by_name(
    spark: SparkSession,
    url: str,
    log: anabranch.Log,
    given: dict[str, str],
    column: str,
    says: str,
) -> None:
    frame = numbers(spark, 3).withColumnRenamed("value", column)
    with pytest.raises(PySparkException, match=says):
        save(frame, {**options(log, url, runId="x"), **given})
    assert values(log) == []


def test_a_log_is_not_overwritten(spark: SparkSession, url: str, log: anabranch.Log) -> None:
    writing = numbers(spark, 3).write.format("anabranch").options(**options(log, url, runId="x"))
    with pytest.raises(PySparkException, match="overwrite a log"):
        writing.mode("overwrite").save()
    assert values(log) == []


def test_a_record_over_the_limit_is_refused_with_its_place(
    spark: SparkSession, url: str, log: anabranch.Log
) -> None:
    frame = spark.sql("SELECT repeat('x', 2000000) AS value").coalesce(1)
    with pytest.raises(PySparkException, match="row 0 of partition 0, counted from 0"):
        save(frame, options(log, url, runId="x"))


@BOTH
def test_a_stream_appends_each_batch_once_under_its_querys_id(
    spark: SparkSession, url: str, log: anabranch.Log, files: Files, mode: str
) -> None:
    frame, given = files.read(spark), options(log, url, mode=mode)
    files.write("a", "b")
    files.write("c")
    query = files.run(frame, given)
    assert values(log) == [b"a", b"b", b"c"]
    (writer,) = log.writers()
    assert (writer.writer, writer.complete, writer.open) == (f"spark-{query}", 1, [])
    files.forget_last_commit()
    files.write("d")
    files.run(frame, given)
    assert values(log) == [b"a", b"b", b"c", b"d"]
    assert log.describe().forks == 0


def harmed(once: Path) -> Any:
    """A data source whose first commit is called twice, and fails after that."""
    from anabranch_spark.sink.stream_writer import StreamWriter
    from anabranch_spark.source.datasource import AnabranchDataSource

    class Harmed(StreamWriter):
        def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803
            super().commit(messages, batchId)
            super().commit(messages, batchId)
            if not once.exists():
                once.touch()
                raise RuntimeError("its answer was lost")

    class Source(AnabranchDataSource):
        @classmethod
        def name(cls) -> str:
            return "harmed"

        def streamWriter(self, schema: Any, overwrite: bool) -> Any:  # noqa: N802
            made: Any = super().streamWriter(schema, overwrite)
            return Harmed(made._sink, made._writer)

    return Source


@BOTH
def test_a_commit_that_is_repeated_and_whose_answer_is_lost_is_done_once(
    spark: SparkSession, url: str, log: anabranch.Log, files: Files, mode: str
) -> None:
    spark.dataSource.register(harmed(files.folder / "once"))
    frame, given = files.read(spark), options(log, url, mode=mode)
    files.write("a", "b")
    with pytest.raises(PySparkException, match="its answer was lost"):
        files.run(frame, given, "harmed")
    assert values(log) == [b"a", b"b"], "the abort took nothing back"
    files.write("c")
    files.run(frame, given, "harmed")
    assert values(log) == [b"a", b"b", b"c"]
    assert log.describe().forks == 0


@BOTH
def test_a_batch_whose_task_fails_is_written_once_when_it_is_run_again(
    spark: SparkSession, url: str, log: anabranch.Log, files: Files, mode: str
) -> None:
    once = files.folder / "once"

    def broken(value):  # without types: of these Spark would infer a kind that needs pandas
        if value == str(ROWS - 1) and not once.exists():
            once.touch()
            raise RuntimeError("a task that fails at its last row")
        return value

    frame, given = files.read(spark), options(log, url, mode=mode, writer="mine")
    frame = frame.select(udf(broken)("value").alias("value"))
    files.write(*map(str, range(ROWS)))
    with pytest.raises(PySparkException, match="fails at its last row"):
        files.run(frame, given)
    files.run(frame, given)
    assert values(log) == [b"%d" % number for number in range(ROWS)]
    assert [each.writer for each in log.writers()] == ["mine"]


def test_a_stream_that_replaces_its_result_is_refused(
    spark: SparkSession, url: str, log: anabranch.Log, files: Files
) -> None:
    files.write("a")
    counted = files.read(spark).groupBy("value").count().select("value")
    writing = counted.writeStream.format("anabranch").options(**options(log, url))
    writing = writing.outputMode("complete").trigger(availableNow=True)
    query = writing.option("checkpointLocation", str(files.folder / "checkpoint")).start()
    with pytest.raises(PySparkException, match="overwrite a log"):
        query.awaitTermination()


def test_under_foreach_batch_a_write_is_identified_or_refused(
    spark: SparkSession, url: str, log: anabranch.Log, files: Files
) -> None:
    files.write("a", "b")

    def run(**more: str) -> None:
        def write(frame: DataFrame, batch: int) -> None:
            number = {"version": str(batch)} if more else {}
            for _ in range(2):
                save(frame, options(log, url, **more, **number))

        writing = files.read(spark).writeStream.foreachBatch(write).trigger(availableNow=True)
        query = writing.option("checkpointLocation", str(files.folder / "checkpoint")).start()
        query.awaitTermination()

    with pytest.raises(PySparkException, match="'writer' and 'version'"):
        run()
    run(writer="mine")
    files.write("c")
    run(writer="mine")
    assert values(log) == [b"a", b"b", b"c"]
    (writer,) = log.writers()
    assert (writer.writer, writer.complete) == ("mine", 1)


def test_the_page_on_writing_runs(
    spark: SparkSession, url: str, service: anabranch.Service, root: Path
) -> None:
    (program,) = _BLOCK.findall((root / "docs/howto/spark-write.md").read_text())
    exec(program.replace("anabranch://127.0.0.1:7420", url), {})
    first, *stream = values(service.log("orders", engine="bolt"))
    assert first == b"3 apples"
    assert sorted(stream, key=int) == [b"%d" % number for number in range(len(stream))]
    assert len(stream) >= 10
    assert spark.conf.get("spark.master") == "local[2]"
