"""Each analysis finds what a plain computation over the same records finds."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import anabranch
from anabranch_spark.analytics import fraud, iot, supply
from anabranch_spark.analytics.__main__ import QUESTIONS, main
from anabranch_spark.analytics.events import orders, payments, readings
from anabranch_spark.analytics.run import ask

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Ask = Callable[..., tuple[int, Any]]
Event = dict[str, Any]


@pytest.fixture
def job(spark: "SparkSession", url: str, tmp_path: Path) -> Ask:
    """Run the job in this process' session; its exit code and report."""

    def run(question: str, log: str, *words: str) -> tuple[int, Any]:
        report = tmp_path / "report.json"
        code = main([question, log, "--service", url, "--report", str(report), *words])
        return code, msgspec.json.decode(report.read_bytes())

    return run


def filled(service: anabranch.Service, name: str, records: Iterator[bytes]) -> list[Event]:
    """A log of these records, and the records with their positions."""
    values = list(records)
    service.create(name).append_many(values)
    return [{"position": at, **json.loads(value)} for at, value in enumerate(values)]


def plain_iot(events: list[Event], sigmas: float) -> list[Event]:
    groups = defaultdict[tuple[str, str], list[Event]](list)
    for each in events:
        groups[each["sensor"], each["metric"]].append(each)
    rows = list[Event]()
    for (sensor, metric), own in groups.items():
        mean = fmean(each["value"] for each in own)
        limit = sigmas * pstdev([each["value"] for each in own])
        odd = [each for each in own if abs(each["value"] - mean) > limit]
        if odd:
            rows.append(
                {
                    "sensor": sensor,
                    "metric": metric,
                    "anomalies": len(odd),
                    "not_ok": sum(each["status"] != "ok" for each in odd),
                    "first": min(each["position"] for each in odd),
                    "furthest": pytest.approx(max(abs(each["value"] - mean) for each in odd)),
                }
            )
    return sorted(rows, key=lambda row: (-row["anomalies"], row["sensor"], row["metric"]))


def plain_fraud(events: list[Event], times: float) -> list[Event]:
    earlier = defaultdict[str, list[Event]](list)
    rows = dict[str, Event]()
    for each in events:
        own = earlier[each["user"]]
        row = rows.setdefault(
            each["user"],
            {"user": each["user"], "payments": 0, "total": 0, "largest": 0}
            | {"too_many": 0, "too_large": 0},
        )
        row["payments"] += 1
        row["total"] += each["amount"]
        row["largest"] = max(row["largest"], each["amount"])
        large = own and each["amount"] > times * fmean(other["amount"] for other in own)
        row["too_large"] += bool(large)
        own.append(each)
    for each in events:
        lately = sum(
            each["at"] - fraud.WITHIN_MS <= other["at"] <= each["at"]
            for other in earlier[each["user"]]
        )
        rows[each["user"]]["too_many"] += lately >= fraud.MANY
    found = [row for row in rows.values() if row["too_many"] + row["too_large"]]
    return sorted(found, key=lambda row: (-row["too_many"] - row["too_large"], row["user"]))


def plain_supply(events: list[Event], stock: int) -> list[Event]:
    left = defaultdict[str, int](lambda: stock)
    rows = dict[str, Event]()
    for each in events:
        item, sign = each["item"], 1 if each["kind"] == "restock" else -1
        left[item] += sign * each["quantity"]
        row = rows.setdefault(
            item,
            {"item": item, "ordered": 0, "lowest": left[item]}
            | {"first_short": None, "events_short": 0},
        )
        row["ordered"] += each["quantity"] if sign < 0 else 0
        row["lowest"] = min(row["lowest"], left[item])
        if left[item] < 0:
            row["events_short"] += 1
            row["first_short"] = (
                each["position"] if row["first_short"] is None else row["first_short"]
            )
    found = [row for row in rows.values() if row["lowest"] < 0]
    return sorted(found, key=lambda row: (row["lowest"], row["item"]))


@pytest.mark.parametrize(
    ("name", "records", "plain", "level"),
    [
        ("iot", readings(4_000), plain_iot, iot.SIGMAS),
        ("fraud", payments(2_000), plain_fraud, fraud.TIMES),
        ("supply", orders(2_000), plain_supply, float(supply.STOCK)),
    ],
)
def test_it_finds_what_a_plain_computation_finds(
    service: anabranch.Service,
    job: Ask,
    name: str,
    records: Iterator[bytes],
    plain: Callable[[list[Event], Any], list[Event]],
    level: float,
) -> None:
    events = filled(service, f"examples-{name}", records)
    code, report = job(name, f"examples-{name}", "--level", str(level))
    assert (code, report["records"], report["malformed"]) == (0, len(events), 0)
    wanted = plain(events, int(level) if name == "supply" else level)
    assert wanted, "there is something to find"
    assert report["findings"]["rows"] == wanted
    assert report["findings"]["found"] == len(wanted)


def test_a_plan_on_a_fork_is_judged_before_it_is_promoted(
    service: anabranch.Service, job: Ask
) -> None:
    log = service.create("stock")
    log.append_many([b'{"kind":"order","item":"a","quantity":%d}' % each for each in (60, 50)])
    assert job("supply", "stock", "--refuse")[1]["findings"]["rows"][0]["first_short"] == 1
    plan = log.cfork("plan", promotable=True)
    plan.append(b'{"kind":"restock","item":"a","quantity":100}')
    plan.append(b'{"kind":"order","item":"a","quantity":"many"}')
    code, report = job("supply", plan.name, "--refuse")
    assert (code, report["malformed"], report["first_malformed"]) == (2, 1, 3)


def test_a_fork_reads_what_its_parent_has_and_its_own(service: anabranch.Service, job: Ask) -> None:
    log = service.create("what-if")
    log.append(b'{"kind":"order","item":"a","quantity":90}')
    fork = log.cfork("rush")
    fork.append(b'{"kind":"order","item":"a","quantity":90}')
    assert job("supply", "what-if")[1]["findings"]["found"] == 0
    assert job("supply", fork.name)[1]["findings"]["rows"] == [
        {"item": "a", "ordered": 180, "lowest": -80, "first_short": 1, "events_short": 1}
    ]


GOOD = b'{"kind":"order","item":"a","quantity":1}'


@pytest.mark.parametrize(
    "value",
    [
        *(b"no json", b"[1]", b"7", b"{}", b"", b'{"kind":"order","item":"a"}', None),
        GOOD + b' {"kind":',
        GOOD + GOOD,
        GOOD.replace(b'"', b"'"),
        b"\xff" + GOOD,
        GOOD.replace(b'"a"', b'"\xff"'),
    ],
)
def test_a_record_that_isnt_such_an_event_is_counted(
    spark: "SparkSession", value: bytes | None
) -> None:
    rows = [(0, value), (1, b'{"kind":"order","item":"a","quantity":150}')]
    frame = spark.createDataFrame(rows, "position BIGINT, value BINARY")
    report = ask(frame, QUESTIONS["supply"], "made", None)
    assert (report.records, report.malformed, report.first_malformed) == (2, 1, 0)
    assert report.findings is not None
    assert report.findings.found == 1


@pytest.mark.parametrize("reading", ["NaN", "Infinity", "1e999", "-1e999"])
def test_a_reading_that_is_no_number_hides_no_anomaly(spark: "SparkSession", reading: str) -> None:
    """The mean of all would be none either, and nothing is further from that."""
    made = '{"sensor":"s","metric":"m","value":%s,"status":"ok"}'
    values = ["1"] * 30 + ["900", reading]
    rows = [(nth, (made % value).encode()) for nth, value in enumerate(values)]
    report = ask(
        spark.createDataFrame(rows, "position BIGINT, value BINARY"), iot.QUESTION, "made", None
    )
    assert (report.malformed, report.first_malformed) == (1, 31)
    assert report.findings is not None
    assert report.findings.found == 1


@pytest.mark.parametrize(
    "words",
    [
        *(["weather", "orders"], ["iot"], ["iot", "nosuch"]),
        *(["iot", "orders", "--level", level] for level in ("nan", "inf", "-inf", "1e999")),
    ],
)
def test_what_cant_be_asked_ends_with_3(spark: "SparkSession", url: str, words: list[str]) -> None:
    assert main([*words, "--service", url]) == 3
