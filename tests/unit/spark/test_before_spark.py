"""Spark takes long to start: what is wrong with the log is said before."""

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import anabranch
from anabranch import testing

EXPECTATIONS = "version: 1\nvalue: {format: text}\nexpectations: [{name: a, expect: row_count}]\n"
STARTS = {
    "gate": "anabranch_spark.jobs.session",
    "analytics": "anabranch_spark.analytics.__main__",
    "export": "anabranch_spark.export.program",
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with testing.server() as server:
        with anabranch.connect(server.url) as service:
            service.create("orders")
        yield server.url


@pytest.fixture
def words(tmp_path: Path) -> dict[str, list[str]]:
    """What each job is given beside the log."""
    file = tmp_path / "a.yaml"
    file.write_text(EXPECTATIONS.replace("row_count", "row_count, min: 1"))
    return {
        "gate": [str(file), "--log"],
        "analytics": ["supply"],
        "export": ["--to", "parquet", str(tmp_path / "out")],
    }


@pytest.mark.parametrize("job", [*STARTS])
def test_a_log_that_is_not_there_is_said_before_spark_starts(
    job: str,
    words: dict[str, list[str]],
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("no session is needed")

    monkeypatch.setattr(f"{STARTS[job]}.job_session", refuse)
    report = tmp_path / "report.json"
    more = ["orders--nope", "--service", url, "--report", str(report)]
    main = import_module(f"anabranch_spark.{job}.__main__").main
    assert main([*words[job], *more]) == 3
    assert "there is no log orders--nope" in json.loads(report.read_bytes())["reason"]


def test_a_log_that_is_no_fork_is_said_before_spark_starts(
    words: dict[str, list[str]], url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from anabranch_spark.gate.__main__ import main

    assert main([*words["gate"], "orders", "--service", url]) == 3
    said = capsys.readouterr().err
    assert "orders is no fork" in said
    assert "starting Spark" not in said
