"""The gate on a real service: what it judges, what it promotes, and what it leaves behind."""

import json
import signal
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.integration.server_process import Process, running

import anabranch
from anabranch.errors import Promoted, Squashed
from anabranch_spark.expectations import Report, Status, Suite, parsed
from anabranch_spark.gate.__main__ import main
from anabranch_spark.gate.rounds import rounds
from anabranch_spark.gate.task import Task

ORDERS = """\
version: 1
value: {format: json, schema: "id bigint, price double, state string"}
expectations:
  - {name: some records, expect: row_count, min: 1}
  - {name: prices, expect: range, column: price, min: 0, max: 100}
  - {name: ids, expect: unique, columns: [id]}
"""
NUMBERS = count()


def order(number: int, price: float = 5.0) -> bytes:
    return json.dumps({"id": number, "price": price, "state": "new"}).encode()


def forked(service: anabranch.Service, *, own: int = 3) -> tuple[anabranch.Log, anabranch.Log]:
    """A log with two orders, and a promotable fork with some more."""
    parent = service.create(f"gated-{next(NUMBERS)}")
    parent.append_many([order(0), order(1)])
    fork = parent.cfork("try", promotable=True)
    if own:
        fork.append_many([order(10 + number) for number in range(own)])
    return parent, fork


@pytest.fixture
def gate(spark: Any, service: anabranch.Service, url: str) -> Callable[..., Any]:
    from anabranch_spark.gate.reading import Reader
    from anabranch_spark.gate.run import Gate

    def build(fork: anabranch.Log, text: str = ORDERS) -> Gate:
        wanted: Suite = parsed(text.encode(), "it.yaml")
        task = Task(log=fork.name, shown=fork.name)
        return Gate(service, Reader(spark, url), task, wanted, lambda _: None)

    return build


@pytest.fixture
def orders(tmp_path: Path) -> str:
    path = tmp_path / "orders.yaml"
    path.write_text(ORDERS)
    return str(path)


@pytest.mark.usefixtures("spark")
def test_a_fork_that_passes_is_reported_in_every_form(
    service: anabranch.Service,
    url: str,
    orders: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In the environment of a Job; what the parent gets is not the fork's own."""
    parent, fork = forked(service)
    parent.append(order(2, price=-7))
    for name, value in {
        "ANABRANCH_URL": url,
        "ANABRANCH_LOG": fork.name,
        "ANABRANCH_FORK": "repriced",
        "ANABRANCH_PARENT": parent.name,
        "ANABRANCH_FORK_POINT": "2",
        "ANABRANCH_OWN_RECORDS": "3",
    }.items():
        monkeypatch.setenv(name, value)
    left = tmp_path / "termination-log"
    files = ["--report", str(tmp_path / "report.json"), "--html", str(tmp_path / "report.html")]
    assert main([orders, *files, "--termination-log", str(left)]) == 0
    assert left.read_text() == '{"ownRecords":3}'
    report = msgspec.json.decode((tmp_path / "report.json").read_bytes(), type=Report)
    assert (report.own_records, report.fork_point, report.end) == (3, 2, 6)
    assert [each.judged for each in report.results] == [3, None, 3, 3]
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    assert capsys.readouterr().err.endswith("passed: all 4 expectations pass\n")
    assert fork.describe().own_records == 3


@pytest.mark.usefixtures("spark")
def test_a_fork_that_fails_is_refused_and_not_promoted(
    service: anabranch.Service,
    url: str,
    orders: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    parent, fork = forked(service)
    fork.append_many([order(1), order(20, price=-1)])
    left = tmp_path / "termination-log"
    words = [orders, "--service", url, "--log", fork.name, "--termination-log", str(left)]
    assert main([*words, "--promote"]) == 2
    message = json.loads(left.read_text())
    assert (message["ownRecords"], message["verdict"]) == (5, "failed")
    assert message["reason"] == (
        "2 of 4 expectations fail: prices (1 of 5 records misses it); "
        "ids (1 of 5 records misses it)"
    )
    shown = capsys.readouterr().err
    assert "at position 6: -1.0" in shown
    assert shown.endswith(f"failed: {message['reason']}\n")
    assert parent.describe().own_records == 2
    assert fork.describe().own_records == 5


@pytest.mark.usefixtures("spark")
def test_what_was_judged_is_promoted(service: anabranch.Service, url: str, orders: str) -> None:
    parent, fork = forked(service)
    assert main([orders, "--service", url, "--log", fork.name, "--promote"]) == 0
    with pytest.raises(Promoted):
        fork.describe()
    assert len(list(parent.read(0))) == 5


@pytest.mark.parametrize(("price", "promoted"), [(7.0, 4), (-7.0, None)])
def test_a_fork_that_moved_after_it_was_judged_is_judged_again(
    service: anabranch.Service, gate: Callable[..., Any], price: float, promoted: int | None
) -> None:
    parent, fork = forked(service)
    judge, asked = gate(fork), list[int]()

    def promote(own_records: int) -> None:
        asked.append(own_records)
        if len(asked) == 1:
            fork.append(order(30, price))
        judge.promote(own_records)

    report = rounds(judge.judge, promote)
    assert report.attempt == 2
    if promoted is None:
        assert (report.verdict, report.promoted, asked) == (Status.FAILED, False, [3])
        assert parent.describe().own_records == 2
        assert fork.describe().own_records == 4
    else:
        assert (report.promoted, report.own_records, asked) == (True, 4, [3, 4])


def test_a_fork_that_got_the_name_of_the_one_that_was_judged_is_not_promoted(
    service: anabranch.Service, gate: Callable[..., Any]
) -> None:
    """It has as many records, so only its id tells it from the other."""
    parent, fork = forked(service)
    judging = gate(fork)
    report = judging.judge(1)
    assert (report.verdict, report.own_records) == (Status.PASSED, 3)
    fork.squash()
    another = parent.cfork("try", promotable=True)
    another.append_many([order(70, price=-1)] * 3)
    with pytest.raises(Squashed):
        judging.promote(report.own_records)
    assert parent.describe().own_records == 2
    assert another.describe().own_records == 3


def test_records_of_forks_that_were_promoted_into_it_are_its_own(
    service: anabranch.Service, gate: Callable[..., Any]
) -> None:
    """They keep their origin. And of a fork's fork, what it inherited isn't its own."""
    parent, fork = forked(service, own=1)
    child = fork.cfork("child", promotable=True)
    child.append_many([order(40), order(41, price=1000)])
    judge = gate(child).judge(1)
    assert (judge.own_records, judge.verdict) == (2, Status.FAILED)
    child.promote()
    grandchild = fork.cfork("grandchild", promotable=True)
    grandchild.append(order(50))
    report = gate(fork).judge(1)
    assert (report.own_records, report.verdict) == (3, Status.FAILED)
    assert {each.name: each.misses for each in report.results}["prices"] == 1
    fork.promote()
    report = gate(grandchild).judge(1)
    assert (report.parent, report.own_records) == (parent.name, 1)
    assert report.verdict is Status.PASSED


def test_an_empty_fork_and_a_log_that_is_none_are_judged_as_such(
    service: anabranch.Service, gate: Callable[..., Any]
) -> None:
    parent, fork = forked(service, own=0)
    report = gate(fork).judge(1)
    assert (report.verdict, report.own_records) == (Status.FAILED, 0)
    assert "some records (0 records of its own" in report.reason
    report = gate(parent).judge(1)
    assert (report.verdict, report.results) == (Status.UNKNOWN, ())
    assert "is no fork" in report.reason
    fork.squash()
    report = gate(fork).judge(1)
    assert report.verdict is Status.UNKNOWN
    assert "squashed" in report.reason


def test_a_reference_leads_to_another_log(
    service: anabranch.Service, gate: Callable[..., Any]
) -> None:
    _, fork = forked(service)
    states = service.create(f"states-{next(NUMBERS)}")
    states.append(b'{"state": "new"}')
    text = ORDERS + (
        "  - {name: states, expect: references, columns: [state], among: log, "
        f"log: {states.name}, value: {{format: json, schema: state string}}}}\n"
    )
    assert gate(fork, text).judge(1).verdict is Status.PASSED
    fork.append(b'{"id": 60, "price": 1, "state": "odd"}')
    report = gate(fork, text).judge(1)
    assert (report.verdict, report.results[-1].misses) == (Status.FAILED, 1)
    gone = gate(fork, text.replace(states.name, "nowhere")).judge(1)
    assert gone.verdict is Status.UNKNOWN
    assert "nowhere" in gone.reason


def test_a_service_that_goes_away_leaves_the_verdict_unknown(
    spark: Any, tmp_path: Path, url: str
) -> None:
    """While Spark is about to read: nothing is concluded from what was there."""

    def end(process: Process) -> None:
        process.end(signal.SIGKILL)

    from anabranch_spark.gate.reading import Reader
    from anabranch_spark.gate.run import Gate

    with running(tmp_path) as process:
        there = f"anabranch://127.0.0.1:{process.port}"
        settings = anabranch.Settings(timeout_ms=3_000)
        with anabranch.connect(there, settings=settings) as service:
            _, fork = forked(service)
            task = Task(log=fork.name, shown=fork.name)
            suite = parsed(ORDERS.encode(), "it.yaml")
            gate = Gate(service, Reader(spark, there), task, suite, lambda _: end(process))
            report = gate.judge(1)
    assert report.verdict is Status.UNKNOWN
    assert report.reason
