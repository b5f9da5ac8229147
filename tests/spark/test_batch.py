"""Batch queries of logs in a real session."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from signal import SIGKILL
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.server_process import Process

import anabranch
from anabranch import Record
from anabranch_spark.jobs.session import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def read(spark: "SparkSession", url: str) -> "Callable[..., DataFrame]":
    """A frame of a log, with these options."""

    def read(log: str, **options: str) -> "DataFrame":
        reader = spark.read.format("anabranch").option("service", url).option("log", log)
        return reader.options(**options).load()

    return read


def as_read(log: anabranch.Log) -> list[tuple[Any, ...]]:
    return [
        (
            record.position,
            record.timestamp,
            record.key,
            record.value,
            record.headers,
            record.origin_log,
            record.origin_position,
        )
        for record in log.read()
    ]


def as_queried(frame: "DataFrame") -> list[tuple[Any, ...]]:
    def octets(value: bytearray | None) -> bytes | None:
        return None if value is None else bytes(value)

    return [
        (
            row.position,
            round(row.timestamp.replace(tzinfo=row.timestamp.tzinfo or UTC).timestamp() * 1_000),
            octets(row.key),
            octets(row.value),
            tuple((header.name, octets(header.value)) for header in row.headers),
            row.origin,
            row.origin_position,
        )
        for row in frame.orderBy("position").collect()
    ]


def test_a_query_has_the_records_that_a_client_reads(
    read: "Callable[..., DataFrame]", log: anabranch.Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    noon = int(datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp() * 1_000)
    log.append_many(
        [
            Record(
                b"%d" % nth if nth % 7 else None,
                b"key" if nth % 3 else None,
                (("a", b"x"), ("b", None)) if nth % 5 == 0 else (),
                noon + nth,
            )
            for nth in range(5_000)
        ]
    )
    fork = log.cfork("what-if")
    fork.append(b"own")
    log.append(b"inherited later")
    for each in (log, fork):
        frame = read(each.name, partitionBytes="64k")
        partitions = frame.selectExpr("spark_partition_id() as partition").distinct()
        assert partitions.count() > 1
        assert as_queried(frame) == as_read(each)
        assert frame.count() == 5_001 + (each is fork)


def test_columns_are_those_of_the_option_or_of_the_schema(
    read: "Callable[..., DataFrame]", spark: "SparkSession", url: str, log: anabranch.Log
) -> None:
    log.append(b"v", key=b"k")
    frame = read(log.name, columns="value,position")
    assert frame.columns == ["value", "position"]
    assert [(bytes(row.value), row.position) for row in frame.collect()] == [(b"v", 0)]
    reader = spark.read.format("anabranch").option("service", url).option("log", log.name)
    (row,) = reader.schema("key binary").load().collect()
    assert bytes(row.key) == b"k"
    with pytest.raises(Exception, match="column value: its type is binary, not string"):
        reader.schema("value string").load().collect()
    with pytest.raises(Exception, match="column valeu: the log has none"):
        reader.schema("valeu binary").load().collect()


def test_several_logs_are_told_apart_by_a_column(
    read: "Callable[..., DataFrame]", service: anabranch.Service, log: anabranch.Log
) -> None:
    other = service.create(f"{log.name}-b")
    log.append_many([b"x"] * 3)
    other.append_many([b"y"] * 2)
    counts = read(f"{log.name},{other.name}").groupBy("log").count().collect()
    assert {row.log: row["count"] for row in counts} == {log.name: 3, other.name: 2}


def test_an_empty_log_is_an_empty_frame(
    read: "Callable[..., DataFrame]", log: anabranch.Log
) -> None:
    assert read(log.name).collect() == []


def test_filters_cut_the_plan_where_they_may(
    read: "Callable[..., DataFrame]",
    spark: "SparkSession",
    service: anabranch.Service,
    log: anabranch.Log,
) -> None:
    for nth in range(20):
        log.append(b"%d" % nth)
    setting = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(setting, "true")
    try:
        frame = read(log.name, pushdown="true", minPartitions="2")
        kept = frame.where("position >= 5 and position < 12 and value != cast('7' as binary)")
        assert sorted(row.position for row in kept.collect()) == [5, 6, 8, 9, 10, 11]
        plans = [plan for plan in service.plans().plans if plan.name == log.name]
        assert [(plan.start, plan.end) for plan in plans] == [(5, 12)]
        late = frame.where("timestamp > timestamp'2100-01-01'")
        assert late.count() == 0
    finally:
        spark.conf.unset(setting)
    with pytest.raises(Exception, match="filterPushdown"):
        read(log.name, pushdown="true").count()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"partitonBytes": "1"}, "did you mean partitionBytes"),
        ({"from": "yesterday"}, "a position, a time, earliest or latest"),
        ({"maxRecordsPerTrigger": "1"}, "it is for a stream only"),
        ({"planLease": "12h"}, "plan_lease_ms_max"),
        ({"from": "99"}, "99"),
    ],
)
def test_what_cannot_be_granted_is_said(
    read: "Callable[..., DataFrame]", log: anabranch.Log, options: dict[str, str], says: str
) -> None:
    with pytest.raises(Exception, match=says):
        read(log.name, **options).count()


def test_a_log_that_is_not_there_is_named(read: "Callable[..., DataFrame]") -> None:
    with pytest.raises(Exception, match="no-such-log"):
        read("no-such-log").count()


def test_a_task_that_finds_damage_names_log_positions_and_object(
    spark: "SparkSession", own_service: Callable[..., tuple[Process, str]], tmp_path: Path
) -> None:
    _, url = own_service()
    with anabranch.connect(url) as service:
        log = service.create("orders")
        log.append_many([b"precious"] * 10)
    for path in (tmp_path / "data").rglob("*"):
        if path.is_file() and "journal" not in str(path) and b"precious" in path.read_bytes():
            path.write_bytes(path.read_bytes().replace(b"precious", b"PRECIOUS"))
    _, url = own_service()
    reader = spark.read.format("anabranch").option("service", url).option("log", "orders")
    with pytest.raises(Exception, match=r"records 0 to \d of log orders.*: object [0-9a-f]{16}"):
        reader.load().write.format("noop").mode("overwrite").save()


def test_a_service_that_goes_away_fails_the_query(
    spark: "SparkSession", own_service: Callable[..., tuple[Process, str]]
) -> None:
    if is_remote():
        pytest.skip("over Spark Connect nobody can plan a query before it is run")
    process, url = own_service()
    with anabranch.connect(url) as service:
        service.create("orders").append_many([b"x"] * 10)
    reader = spark.read.format("anabranch").option("service", url).option("log", "orders")
    frame = reader.load()
    frame.rdd.getNumPartitions()  # planned
    process.end(SIGKILL)
    with pytest.raises(Exception, match=r"127\.0\.0\.1"):
        frame.collect()
