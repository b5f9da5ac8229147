"""A log's records as tables of Iceberg and Delta: one commit a range, a fork as a branch."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import anabranch
from anabranch.errors import Unavailable
from anabranch_spark.export.__main__ import main
from anabranch_spark.export.iceberg import IcebergTarget, warehouse
from anabranch_spark.export.lineage import View
from anabranch_spark.export.ranges import Range

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Export = Callable[..., tuple[int, Any]]
Records = list[tuple[int, bytes]]


@pytest.fixture
def export(tables: "SparkSession", url: str, tmp_path: Path) -> Export:
    """Run the job in this process' session; its exit code and report."""

    def run(log: str, *words: str) -> tuple[int, Any]:
        report = tmp_path / "report.json"
        code = main([log, "--service", url, "--report", str(report), *words])
        return code, msgspec.json.decode(report.read_bytes()) if report.exists() else None

    return run


@pytest.fixture
def lake(tables: "SparkSession", tmp_path: Path) -> list[str]:
    """A catalog of the test's own, as the job is given it."""
    catalog = "lake_" + "".join(each for each in tmp_path.name if each.isalnum())
    return ["--to", "iceberg", f"{catalog}.db.events", "--warehouse", str(tmp_path / "warehouse")]


def fill(log: anabranch.Log, first: int, count: int) -> None:
    log.append_many([b"value %d" % turn for turn in range(first, first + count)])


def test_a_catalog_that_nobody_set_is_named(export: Export, log: anabranch.Log) -> None:
    fill(log, 0, 3)
    code, report = export(log.name, "--to", "iceberg", "nowhere.db.events")
    assert code == 3
    assert "spark.sql.catalog.nowhere isn't set" in report["reason"]


def records(log: anabranch.Log) -> Records:
    return [(each.position, each.value or b"") for each in log.read(0, timeout=5)]


def rows(frame: Any) -> Records:
    found = frame.select("position", "value").orderBy("position").collect()
    return [(row["position"], bytes(row["value"])) for row in found]


def branch(spark: "SparkSession", table: str, name: str = "main") -> Records:
    return rows(spark.sql(f"SELECT * FROM {table} VERSION AS OF '{name}'"))


def commits(spark: "SparkSession", table: str) -> list[dict[str, str]]:
    """Summaries of what exports committed; the first snapshot of a table is empty."""
    found = spark.sql(f"SELECT summary FROM {table}.snapshots ORDER BY committed_at").collect()
    return [dict(row["summary"]) for row in found if "anabranch.end" in row["summary"]]


def test_iceberg_has_a_commit_for_each_range_and_none_twice(
    tables: "SparkSession", service: anabranch.Service, export: Export, lake: list[str]
) -> None:
    log, table = service.create("iced"), lake[2]
    fill(log, 0, 250)
    code, report = export("iced", *lake, "--records", "100")
    assert (code, report["records"], report["branch"]) == (0, 250, "main")
    assert branch(tables, table) == records(log)
    before = commits(tables, table)
    assert [(each["anabranch.start"], each["anabranch.end"]) for each in before] == [
        ("0", "100"),
        ("100", "200"),
        ("200", "250"),
    ]
    assert {each["anabranch.log-id"] for each in before} == {str(log.id)}
    assert export("iced", *lake, "--records", "100")[0] == 0
    assert commits(tables, table) == before
    fill(log, 250, 10)
    assert export("iced", *lake, "--records", "100")[1]["records"] == 10
    assert branch(tables, table) == records(log)
    refs = tables.sql(f"SELECT name FROM {table}.refs").collect()
    assert [row["name"] for row in refs] == ["main"], "no staging branch is left"


def test_a_fork_is_a_branch_and_its_promotion_is_written_anew_on_main(
    tables: "SparkSession", service: anabranch.Service, export: Export, lake: list[str]
) -> None:
    log, table = service.create("forked"), lake[2]
    fill(log, 0, 100)
    assert export("forked", *lake)[0] == 0
    fork = log.cfork("plan", promotable=True)
    fill(fork, 1_000, 20)
    fill(log, 100, 30)
    code, report = export(fork.name, *lake)
    assert (code, report["branch"], report["start"]) == (0, fork.name, 100)
    judged = records(fork)
    assert branch(tables, table, fork.name) == judged
    assert export("forked", *lake)[1]["records"] == 0, "the rest may still move"
    fork.promote()
    code, report = export("forked", *lake)
    assert (code, report["start"], report["records"]) == (0, 100, 50)
    assert branch(tables, table) == records(log)
    assert branch(tables, table, fork.name) == judged, "what was judged stays"


def test_a_severed_forks_branch_begins_at_a_commit_that_it_inherits_whole(
    tables: "SparkSession", service: anabranch.Service, export: Export, lake: list[str]
) -> None:
    log, table = service.create("severed"), lake[2]
    fill(log, 0, 300)
    assert export("severed", *lake, "--records", "100")[0] == 0
    fork = log.sfork("past", past=249)
    fill(fork, 5_000, 10)
    code, report = export(fork.name, *lake)
    assert (code, report["start"], report["records"]) == (0, 200, 60)
    assert branch(tables, table, fork.name) == records(fork)
    assert branch(tables, table) == records(log)


def test_a_table_whose_history_is_gone_is_refused_and_not_written_twice(
    tables: "SparkSession", service: anabranch.Service, export: Export, lake: list[str]
) -> None:
    log, table = service.create("expired"), lake[2]
    fill(log, 0, 50)
    assert export("expired", *lake)[0] == 0
    tables.sql(f"INSERT INTO {table} SELECT * FROM {table} LIMIT 1")
    catalog = table.partition(".")[0]
    tables.sql(
        f"CALL {catalog}.system.expire_snapshots(table => '{table.partition('.')[2]}', "
        "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)"
    ).collect()
    code, report = export("expired", *lake)
    assert code == 3
    assert "expired" in report["reason"]
    assert tables.table(table).count() == 51


def test_another_logs_table_is_refused(
    tables: "SparkSession", service: anabranch.Service, export: Export, lake: list[str]
) -> None:
    for name in ("theirs", "ours"):
        fill(service.create(name), 0, 5)
    assert export("theirs", *lake)[0] == 0
    code, report = export("ours", *lake)
    assert code == 3
    assert "theirs[0..5)" in report["reason"]
    assert tables.table(lake[2]).count() == 5


def test_delta_has_a_commit_for_each_range_and_none_twice(
    tables: "SparkSession", service: anabranch.Service, export: Export, tmp_path: Path
) -> None:
    log, path = service.create("deltaed"), str(tmp_path / "delta")
    fill(log, 0, 250)
    words = "--to", "delta", path, "--records", "100"
    code, report = export("deltaed", *words)
    assert (code, report["records"], len(report["written"])) == (0, 250, 3)
    assert export("deltaed", *words)[1]["written"] == []
    fill(log, 250, 10)
    assert export("deltaed", *words)[1]["records"] == 10
    assert rows(tables.read.format("delta").load(path)) == records(log)
    versions = [each["where"] for each in report["written"]]
    assert versions == ["0", "1", "2"]


def test_another_logs_delta_table_is_refused(
    tables: "SparkSession", service: anabranch.Service, export: Export, tmp_path: Path
) -> None:
    path = str(tmp_path / "delta")
    for name in ("delta-one", "delta-two"):
        fill(service.create(name), 0, 5)
    assert export("delta-one", "--to", "delta", path)[0] == 0
    code, report = export("delta-two", "--to", "delta", path)
    assert code == 3
    assert "another table" in report["reason"]


class Raced(IcebergTarget):
    """Another program adds a row to the branch before this export's range is published."""

    def _advance(self, stage: str) -> int:
        self._spark.sql(f"INSERT INTO {self._table} VALUES (-1)")
        return super()._advance(stage)


def test_a_range_is_not_added_to_a_branch_that_has_moved_meanwhile(
    tables: "SparkSession", lake: list[str]
) -> None:
    for name, value in warehouse(lake[2], lake[4]).items():
        tables.conf.set(name, value)
    words: Any = {
        "table": lake[2],
        "branch": "main",
        "read": lambda each: tables.range(each.start, each.end).selectExpr("id AS position"),
        "log": "orders",
        "view": View("orders", 7, 0, {}),
        "parents": [],
    }
    IcebergTarget(tables, **words).write([Range(0, 10)])
    with pytest.raises(Unavailable, match="another program"):
        Raced(tables, **words).write([Range(10, 20)])
    assert tables.table(lake[2]).count() == 11
    IcebergTarget(tables, **words).write([Range(10, 20)])
    assert tables.table(lake[2]).count() == 21
    refs = tables.sql(f"SELECT name FROM {lake[2]}.refs").collect()
    assert [row["name"] for row in refs] == ["main"]
