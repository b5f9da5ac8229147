"""Differences of logs by key, as Spark finds them, against a model that holds all records."""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.server_process import running

import anabranch
from anabranch import Log, Record, Service
from anabranch_spark.diff import __main__ as job
from anabranch_spark.diff.__main__ import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def put(log: Log, key: str | None, value: str | None) -> None:
    log.append(None if value is None else value.encode(), key=None if key is None else key.encode())


def told(url: str, tmp_path: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """Exit code and report."""
    path = tmp_path / "report.json"
    path.unlink(missing_ok=True)
    code = main([*words, "--service", url, "--report", str(path)])
    return code, json.loads(path.read_bytes())


def last(log: Log, start: int = 0) -> dict[bytes, bytes | None]:
    return {each.key: each.value for each in log.read(start) if each.key is not None}


def model(a: Log, b: Log) -> dict[str, int]:
    """Counts of changes, from all that readers of both logs see."""
    one, other = last(a), last(b)
    return {
        "added": len(other.keys() - one.keys()),
        "removed": len(one.keys() - other.keys()),
        "changed": sum(one[key] != other[key] for key in one.keys() & other.keys()),
    }


def counts(report: dict[str, Any]) -> dict[str, int]:
    return {name: report["keys"][name] for name in ("added", "removed", "changed")}


def test_a_fork_differs_in_what_was_appended_to_either(
    spark: SparkSession, url: str, service: Service, tmp_path: Path
) -> None:
    orders = service.create("diff-orders")
    orders.append_many([Record(b"v%d" % turn, key=b"k%d" % (turn % 40)) for turn in range(200)])
    fork = orders.sfork("what-if")
    code, report = told(url, tmp_path, orders.name, fork.name)
    assert (code, report["verdict"]) == (0, "same")
    put(fork, "k1", "other")
    put(fork, "new", "one")
    put(orders, "k2", None)
    put(orders, "gone", "in the fork")
    put(orders, "k3", "v163")  # as it was
    put(fork, None, "without a key")
    out = tmp_path / "changes"
    words = [orders.name, fork.name, "--samples", "5", "--output", str(out)]
    code, report = told(url, tmp_path, *words)
    assert (code, report["verdict"]) == (2, "different")
    assert counts(report) == model(orders, fork) == {"added": 1, "removed": 1, "changed": 2}
    keys = report["keys"]
    assert (keys["without_key_a"], keys["without_key_b"], keys["without_key_equal"]) == (
        0,
        1,
        False,
    )
    samples = {each["key"]: each for each in keys["samples"]}
    assert samples.keys() == {"k1", "k2", "new", "gone"}
    assert (samples["k1"]["value_a"], samples["k1"]["value_b"]) == ("v161", "other")
    assert (samples["k2"]["value_a"], samples["k2"]["position_b"]) == (None, 162)
    written = spark.read.parquet(str(out)).collect()
    assert {bytes(row["key"]).decode(): row["change"] for row in written} == {
        "k1": "changed",
        "k2": "changed",
        "new": "added",
        "gone": "removed",
    }
    assert report["positions"]["only_a"] == report["positions"]["only_b"] == 3


def test_logs_that_share_every_position_are_the_same_without_spark(
    url: str, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("no session is needed")

    monkeypatch.setattr(job, "job_session", refuse)
    orders = service.create("diff-alike")
    orders.append_many([b"1", b"2"])
    fork = orders.sfork("what-if")
    code, report = told(url, tmp_path, orders.name, fork.name)
    assert (code, report["verdict"]) == (0, "same")
    assert counts(report) == {"added": 0, "removed": 0, "changed": 0}


def test_random_logs_differ_as_the_model_says(
    spark: SparkSession, url: str, service: Service, tmp_path: Path
) -> None:
    chance = random.Random(14)
    for turn in range(3):
        parent = service.create(f"diff-random-{turn}")
        logs = [parent]
        for step in range(60):
            log = chance.choice(logs)
            put(log, f"k{chance.randrange(12)}", f"v{chance.randrange(4)}")
            if step in {15, 30}:
                fork = parent.cfork if step == 15 else parent.sfork
                logs.append(fork(f"fork-{step}"))
        for a, b in ((logs[0], logs[1]), (logs[2], logs[1])):
            code, report = told(url, tmp_path, a.name, b.name)
            assert counts(report) == model(a, b)
            assert code == (2 if any(model(a, b).values()) else 0)


def test_unrelated_logs_of_the_same_contents_are_the_same_by_key_alone(
    spark: SparkSession, url: str, service: Service, tmp_path: Path
) -> None:
    one, other = service.create("diff-one"), service.create("diff-other")
    for log, keys in ((one, "abc"), (other, "cab")):
        for key in keys:
            put(log, key, "the same")
        put(log, None, f"{len(keys)} without a key")
    assert told(url, tmp_path, one.name, other.name)[0] == 0
    code, report = told(url, tmp_path, one.name, other.name, "--by", "position")
    assert (code, report["positions"]["only_a"], report["keys"]) == (2, 4, None)


def test_what_one_log_may_have_trimmed_is_not_called_different(
    spark: SparkSession, url: str, service: Service, tmp_path: Path
) -> None:
    orders = service.create("diff-trimmed")
    for key in ("early", "again", "late"):
        put(orders, key, "1")
    put(orders, "again", "2")
    fork = orders.cfork("trimmed")
    fork.trim(2)
    code, report = told(url, tmp_path, orders.name, fork.name)
    assert (code, report["verdict"]) == (3, "unknown")
    assert report["keys"]["not_comparable"] == 1
    put(fork, "early", "3")
    assert told(url, tmp_path, orders.name, fork.name)[0] == 2


def test_nothing_is_concluded_where_the_logs_cannot_be_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    with running(tmp_path / "data") as process:
        url = f"anabranch://127.0.0.1:{process.port}"
        with anabranch.connect(url) as service:
            orders = service.create("orders")
            put(orders, "k", "v")
            fork = orders.sfork("fork")
            put(fork, "k", "w")
            code, report = told(url, tmp_path, orders.name, "nowhere")
            assert (code, report["verdict"]) == (3, "unknown")
            assert "nowhere" in report["obstacles"][0]
        process.end(signal.SIGKILL)
        code, report = told(url, tmp_path, orders.name, fork.name)
        assert (code, report["verdict"]) == (3, "unknown")
    assert main([]) == 3
