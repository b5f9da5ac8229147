"""A log's records as Parquet files: each once, whatever the runs were."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import anabranch
from anabranch_spark.export.__main__ import main
from anabranch_spark.export.names import MANIFEST, file_name, range_of
from anabranch_spark.export.ranges import Range

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Export = Callable[..., tuple[int, Any]]


@pytest.fixture
def export(spark: "SparkSession", url: str, tmp_path: Path) -> Export:
    """Run the job in this process' session; its exit code and report."""

    def run(log: str, *words: str) -> tuple[int, Any]:
        report = tmp_path / "report.json"
        code = main([log, "--service", url, "--report", str(report), *words])
        return code, msgspec.json.decode(report.read_bytes()) if report.exists() else None

    return run


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def ranges(folder: Path) -> list[Range]:
    return sorted(each for path in folder.iterdir() if (each := range_of(path.name)))


def rows(spark: "SparkSession", folder: Path) -> list[tuple[int, bytes]]:
    frame = spark.read.parquet(str(folder)).select("position", "value").orderBy("position")
    return [(row["position"], bytes(row["value"])) for row in frame.collect()]


def records(log: anabranch.Log) -> list[tuple[int, bytes]]:
    return [(each.position, each.value or b"") for each in log.read(0, timeout=5)]


def fill(log: anabranch.Log, first: int, count: int) -> None:
    log.append_many([b"value %d" % turn for turn in range(first, first + count)])


def test_runs_write_each_record_once_and_name_files_by_positions(
    spark: "SparkSession", service: anabranch.Service, export: Export, out: Path
) -> None:
    log = service.create("exported")
    fill(log, 0, 250)
    code, report = export("exported", "--to", "parquet", str(out), "--records", "100")
    assert (code, report["records"], report["settled"]) == (0, 250, 250)
    first = [Range(0, 100), Range(100, 200), Range(200, 250)]
    assert ranges(out) == first
    assert [each["where"] for each in report["written"]] == list(map(file_name, first))

    code, report = export("exported", "--to", "parquet", str(out), "--records", "100")
    assert (code, report["written"], report["start"], report["end"]) == (0, [], 250, 250)

    fill(log, 250, 120)
    code, report = export("exported", "--to", "parquet", str(out), "--records", "100")
    assert (code, report["records"]) == (0, 120)
    assert ranges(out) == [*first, Range(250, 300), Range(300, 370)]
    assert rows(spark, out) == records(log)
    assert {path.name for path in out.iterdir() if path.name.startswith("_")} == {MANIFEST}


def test_nothing_past_the_settled_position_is_exported(
    spark: "SparkSession", service: anabranch.Service, export: Export, out: Path
) -> None:
    log = service.create("withheld")
    fill(log, 0, 30)
    fork = log.cfork("plan", promotable=True)
    log.append(b"may still move")
    fork.append(b"first")
    code, report = export("withheld", "--to", "parquet", str(out))
    assert (code, report["records"], report["end"]) == (0, 30, 30)
    fork.promote()
    code, report = export("withheld", "--to", "parquet", str(out))
    assert (code, report["records"]) == (0, 2)
    assert rows(spark, out) == records(log)


def test_ranges_by_bytes_have_each_record_once(
    spark: "SparkSession", service: anabranch.Service, export: Export, out: Path
) -> None:
    log = service.create("by-bytes")
    for first in range(0, 100, 20):
        fill(log, first, 20)
    code, _ = export("by-bytes", "--to", "parquet", str(out), "--bytes", "400")
    assert code == 0
    assert len(ranges(out)) > 1
    assert rows(spark, out) == records(log)


def test_values_are_decoded_and_one_that_cant_be_is_named(
    spark: "SparkSession", service: anabranch.Service, export: Export, out: Path
) -> None:
    log = service.create("decoded")
    log.append_many([b'{"order":%d,"amount":2.5}' % turn for turn in range(10)])
    words = "--to", "parquet", str(out), "--schema", "order BIGINT, amount DOUBLE"
    code, _ = export("decoded", *words)
    assert code == 0
    found = spark.read.parquet(str(out)).orderBy("position").select("value.order", "value.amount")
    assert [(row["order"], row["amount"]) for row in found.collect()] == [
        (turn, 2.5) for turn in range(10)
    ]
    before = sorted(path.name for path in out.iterdir())
    log.append(b'{"order":10,"amount":1.5} {"order":11')
    code, report = export("decoded", *words)
    assert (code, report["verdict"]) == (2, 2)
    assert "the value at position 10" in report["reason"]
    assert sorted(path.name for path in out.iterdir()) == before


def test_a_folder_of_another_log_is_refused(
    service: anabranch.Service, export: Export, out: Path
) -> None:
    for name in ("mine", "yours"):
        fill(service.create(name), 0, 5)
    assert export("mine", "--to", "parquet", str(out))[0] == 0
    code, report = export("yours", "--to", "parquet", str(out))
    assert code == 3
    assert "another folder" in report["reason"]


def test_positions_that_were_trimmed_before_they_were_exported_are_missed(
    service: anabranch.Service, export: Export, out: Path
) -> None:
    log = service.create("trimmed")
    fill(log, 0, 20)
    assert export("trimmed", "--to", "parquet", str(out))[0] == 0
    fill(log, 20, 20)
    log.trim(30)
    code, report = export("trimmed", "--to", "parquet", str(out))
    assert code == 3
    assert "[20..30)" in report["reason"]


@pytest.mark.parametrize(
    "words",
    [
        ["--to", "parquet"],
        ["--to", "avro", "out"],
        ["--to", "parquet", "out", "--records", "0"],
        ["--to", "parquet", "out", "--records", "5", "--bytes", "5"],
        ["--to", "parquet", "out", "--branch", "b"],
        ["--to", "parquet", "out", "--warehouse", "w"],
        ["--to", "parquet", "out", "--conf", "hello"],
        ["--to", "iceberg", "orders"],
        ["--to", "parquet", "out", "--schema", "no schema"],
        ["--to", "parquet", "nosuchscheme://out"],
    ],
)
def test_what_cant_be_done_ends_with_3(
    service: anabranch.Service,
    export: Export,
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    service.ensure("small").append(b"one")
    code, _ = export("small", *words)
    assert code == 3
    assert not (tmp_path / "out").exists()


def test_an_unknown_log_ends_with_3(export: Export, out: Path) -> None:
    code, report = export("nosuch", "--to", "parquet", str(out))
    assert code == 3
    assert "nosuch" in report["reason"]
