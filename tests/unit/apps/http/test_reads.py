"""Pages and lines of a log, against a naive model of it, and how each may end early."""

import json
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

NDJSON = {"Accept": "application/x-ndjson"}
COUNT, START = 30, 5
VALUES = [f"{number} " + "apples" * (number % 7) for number in range(COUNT)]


@pytest.fixture(scope="session")
def numbered(http: httpx.Client) -> str:
    """The records of a log that keeps those from 5 to 29."""
    http.post("/v1/logs", json={"name": "numbered"})
    path = "/v1/logs/numbered/records"
    for first in range(0, COUNT, 4):
        batch = [{"value": value} for value in VALUES[first : first + 4]]
        assert http.post(path, json={"records": batch}).status_code == 201
    assert http.post("/v1/logs/numbered/trim", json={"before": START}).is_success
    return path


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.none() | st.integers(0, COUNT + 3),
    st.none() | st.integers(1, COUNT + 5),
    st.none() | st.integers(1, 400),
)
def test_a_page_holds_what_fits_and_says_where_to_read_on(
    http: httpx.Client, numbered: str, start: int | None, limit: int | None, size: int | None
) -> None:
    query = {"from": start, "limit": limit, "bytes": size}
    answer = http.get(numbered, params={k: v for k, v in query.items() if v is not None})
    if start is not None and not START <= start <= COUNT:
        told = answer.json()
        assert (told["code"], told["facts"]["start"], told["facts"]["last"]) == (
            "out-of-range",
            START,
            COUNT,
        )
        return
    first = START if start is None else start
    expected: list[int] = []
    used = 0
    for position in range(first, COUNT):
        if (limit is not None and len(expected) == limit) or (size is not None and used >= size):
            break
        expected.append(position)
        used += len(VALUES[position])
    page = answer.json()
    assert [each["position"] for each in page["records"]] == expected
    assert [each["value"] for each in page["records"]] == [VALUES[each] for each in expected]
    assert page["next"] == (expected[-1] + 1 if expected else first)
    assert (page["start"], page["settled"], page["tail"]) == (START, COUNT, COUNT)


@pytest.mark.parametrize("step", [1, 3, 7, 100])
def test_pages_that_go_on_where_the_last_ended_hold_each_record_once(
    http: httpx.Client, numbered: str, step: int
) -> None:
    found: list[str] = []
    at = START
    while True:
        page = http.get(numbered, params={"from": at, "limit": step}).json()
        found += [each["value"] for each in page["records"]]
        if page["next"] == at:
            break
        at = page["next"]
    assert found == VALUES[START:]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(START, COUNT), st.none() | st.integers(1, COUNT))
def test_lines_are_all_that_is_settled_one_a_line(
    http: httpx.Client, numbered: str, start: int, limit: int | None
) -> None:
    query = {"from": start} | ({} if limit is None else {"limit": limit})
    answer = http.get(numbered, params=query, headers=NDJSON)
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    assert answer.content.endswith(b"\n") or not answer.content
    found = [json.loads(line) for line in answer.content.splitlines()]
    assert [each["value"] for each in found] == VALUES[start:][:limit]


@pytest.mark.parametrize(
    ("accept", "lines"),
    [
        ("application/x-ndjson", True),
        ("application/json, application/x-ndjson;q=0.5", True),
        ("*/*", False),
        ("application/json", False),
        ("application/x-ndjson2", False),
    ],
)
def test_lines_are_given_to_who_accepts_them(
    http: httpx.Client, numbered: str, accept: str, lines: bool
) -> None:
    answer = http.get(numbered, headers={"Accept": accept})
    assert (answer.headers["Content-Type"] == "application/x-ndjson") == lines


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ({"limit": "0"}, "query.limit"),
        ({"limit": "many"}, "query.limit"),
        ({"bytes": "0"}, "query.bytes"),
        ({"from": "-1"}, "query.from"),
        ({"from": str(1 << 53)}, "query.from"),
        ({"from": "9" * 5_000}, "query.from"),
        ({"from": "yesterday"}, "query.from"),
        ({"from": "2026-01-31T12:00:00"}, "query.from"),
        ({"from": "1969-12-31T23:59:59Z"}, "query.from"),
        ({"wait_ms": "-1"}, "query.wait_ms"),
        ({"wait_ms": "600001"}, "query.wait_ms"),
        ({"encoding": "hex"}, "query.encoding"),
        ({"form": "5"}, "query.form"),
    ],
)
def test_a_parameter_that_can_not_be_is_named(
    http: httpx.Client, numbered: str, query: dict[str, str], where: str
) -> None:
    told: Any = http.get(numbered, params=query).json()
    assert (told["status"], told["code"]) == (422, "bad-request")
    assert told["facts"]["what"] == where


def test_an_unknown_parameter_lists_the_known_ones(http: httpx.Client, numbered: str) -> None:
    told = http.get(numbered, params={"form": "5"}).json()
    assert "only bytes, encoding, from, limit, wait_ms" in told["detail"]


@pytest.mark.parametrize(
    ("time", "count"),
    [("2000-01-01T00:00:00Z", COUNT - START), ("2999-01-01T00:00:00+01:00", 0)],
)
def test_reading_begins_at_a_time(http: httpx.Client, numbered: str, time: str, count: int) -> None:
    assert len(http.get(numbered, params={"from": time}).json()["records"]) == count


def test_a_read_at_the_end_comes_back_empty_after_its_wait(
    http: httpx.Client, numbered: str
) -> None:
    page = http.get(numbered, params={"from": COUNT, "wait_ms": 1}).json()
    assert (page["records"], page["next"]) == ([], COUNT)


def test_text_and_bytes_are_told_apart_record_by_record(http: httpx.Client) -> None:
    http.post("/v1/logs", json={"name": "mixed"})
    path = "/v1/logs/mixed/records"
    for value in (b"text", b"\xff"):
        headers = {"Content-Type": "application/octet-stream"}
        http.post(path, content=value, headers=headers)
    found = http.get(path).json()["records"]
    assert [(each["encoding"], each["value"]) for each in found] == [
        ("text", "text"),
        ("base64", "/w=="),
    ]
    found = http.get(path, params={"encoding": "base64"}).json()["records"]
    assert [each["value"] for each in found] == ["dGV4dA==", "/w=="]
