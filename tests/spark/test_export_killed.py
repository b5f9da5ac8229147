"""An export that is killed in the middle, and run again, has written each record once."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import anabranch
from anabranch_spark.export.__main__ import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.nightly  # each starts a JVM of its own

COUNT = 400
Records = list[tuple[int, bytes]]


class Case(NamedTuple):
    """One form of export: the job's words, and how its records are read back."""

    form: str
    words: list[str]
    rows: Callable[[], Any]


@pytest.fixture(params=["parquet", "iceberg", "delta"])
def case(request: pytest.FixtureRequest, tables: "SparkSession", tmp_path: Path) -> Case:
    path = str(tmp_path / "out")
    match request.param:
        case "parquet":
            words = ["--to", "parquet", path]
            return Case("parquet", words, lambda: tables.read.parquet(path))
        case "iceberg":
            table = "lake_" + "".join(each for each in tmp_path.name if each.isalnum()) + ".db.t"
            words = ["--to", "iceberg", table, "--warehouse", path]
            return Case("iceberg", words, lambda: tables.table(table))
        case _:
            words = ["--to", "delta", path]
            return Case("delta", words, lambda: tables.read.format("delta").load(path))


@pytest.fixture
def start(url: str, tmp_path: Path) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Start the job as a process, with its JVM in a group of its own."""
    started: list[subprocess.Popen[str]] = []

    def run(log: str, *words: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "anabranch_spark.export", log, "--service", url, *words]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            cwd=tmp_path,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        )
        started.append(process)
        return process

    yield run
    for process in started:
        kill(process)


def kill(process: "subprocess.Popen[str]") -> None:
    """The driver and its JVM at once."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def wait_for(process: "subprocess.Popen[str]", ranges: int) -> list[str]:
    """Wait until the job has reported so many ranges."""
    assert process.stderr is not None
    seen: list[str] = []
    for line in process.stderr:
        if line.startswith("exported "):
            seen.append(line)
        if len(seen) == ranges:
            return seen
    raise AssertionError(f"the job ended after {len(seen)} ranges: {seen}")


def records(log: anabranch.Log) -> Records:
    return [(each.position, each.value or b"") for each in log.read(0, timeout=5)]


def rows(frame: Any) -> Records:
    found = frame.select("position", "value").orderBy("position").collect()
    return [(row["position"], bytes(row["value"])) for row in found]


@pytest.mark.parametrize("ranges", [1, 3])
def test_after_a_kill_each_record_is_there_once(
    service: anabranch.Service,
    url: str,
    tmp_path: Path,
    case: Case,
    start: Callable[..., "subprocess.Popen[str]"],
    ranges: int,
) -> None:
    report = str(tmp_path / "report.json")
    log = service.create(f"killed-{case.form}-{ranges}")
    log.append_many([b"value %d" % turn for turn in range(COUNT)])
    words = [*case.words, "--records", "20"]
    process = start(log.name, *words)
    wait_for(process, ranges)
    kill(process)
    log.append_many([b"value %d" % turn for turn in range(COUNT, COUNT + 30)])
    assert main([log.name, "--service", url, "--report", report, *words]) == 0
    assert rows(case.rows()) == records(log)
