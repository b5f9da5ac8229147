"""The gate ends with 3 whenever it can't tell, and says why where the operator looks."""

import json
from pathlib import Path

import pytest
from py4j.protocol import Py4JNetworkError  # pyright: ignore[reportMissingTypeStubs]

import anabranch
import anabranch.testing
from anabranch_spark.gate.__main__ import main

ORDERS = """\
version: 1
value: {format: text}
expectations:
  - {name: some records, expect: row_count, min: 1}
"""


@pytest.fixture
def left(tmp_path: Path) -> Path:
    return tmp_path / "termination-log"


@pytest.fixture
def orders(tmp_path: Path) -> str:
    path = tmp_path / "orders.yaml"
    path.write_text(ORDERS)
    return str(path)


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("URL", "LOG", "FORK", "PARENT", "FORK_POINT", "OWN_RECORDS"):
        monkeypatch.delenv(f"ANABRANCH_{name}", raising=False)


def reason(left: Path) -> str:
    found = json.loads(left.read_text())
    assert "ownRecords" not in found
    assert found["verdict"] == "unknown"
    return str(found["reason"])


def test_a_bad_file_of_expectations_is_no_verdict(tmp_path: Path, left: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(ORDERS.replace("row_count", "rowcount"))
    words = ["--log", "a--b", "--service", "anabranch://127.0.0.1:1"]
    assert main([str(bad), *words, "--termination-log", str(left)]) == 3
    assert "line 4" in reason(left)
    assert "did you mean 'row_count'" in reason(left)


def test_a_fork_that_nobody_named_is_no_verdict(orders: str, left: Path) -> None:
    assert main([orders, "--termination-log", str(left)]) == 3
    assert "ANABRANCH_LOG" in reason(left)


def test_a_service_that_nobody_named_is_no_verdict(orders: str, left: Path) -> None:
    assert main([orders, "--log", "a--b", "--termination-log", str(left)]) == 3
    assert "ANABRANCH_URL" in reason(left)


@pytest.mark.nightly
def test_a_service_that_is_away_is_no_verdict(
    orders: str, left: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was there, so that nobody else has its port."""
    with anabranch.testing.server() as server:
        url = server.url
    monkeypatch.setenv("ANABRANCH_URL", url)
    assert main([orders, "--log", "a--b", "--termination-log", str(left)]) == 3
    assert reason(left)


@pytest.mark.parametrize("words", [[], ["--nonsense"], ["a.yaml", "--tries", "0"], ["a", "b"]])
def test_a_mistake_in_the_arguments_says_nothing_of_the_data(words: list[str]) -> None:
    """The code 2, which click has for it, would be a refusal."""
    assert main(words) == 3


def test_a_report_that_cant_be_written_is_no_verdict(
    orders: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loop = tmp_path / "termination-log"
    loop.symlink_to(loop)
    assert main([orders, "--termination-log", str(loop)]) == 3
    assert "the report can't be written" in capsys.readouterr().err


def test_a_jvm_that_dies_while_it_judges_is_no_verdict(
    orders: str, left: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a pattern that takes all of its stack for some value."""

    class Dead:
        def stop(self) -> None:
            raise ConnectionRefusedError("[Errno 111] Connection refused")

    def gone(_: object) -> None:
        raise Py4JNetworkError("Answer from Java side is empty")

    session = "anabranch_spark.jobs.session"
    monkeypatch.setattr("anabranch_spark.gate.run.appended_to", gone)
    monkeypatch.setattr(f"{session}.is_running", lambda: False)
    monkeypatch.setattr(f"{session}.session", lambda *_, **__: Dead())
    with anabranch.testing.server() as server, anabranch.connect(server.url) as service:
        service.create("a").cfork("b", promotable=True)
        words = ["--log", "a--b", "--service", server.url, "--termination-log", str(left)]
        assert main([orders, *words]) == 3
    assert "Answer from Java side is empty" in reason(left)
