"""Bodies of every kind become records, whole or not at all, and a request is done once."""

import json
from base64 import b64encode
from itertools import count
from typing import Any
from urllib.parse import quote_from_bytes

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.cli.records import RECORDS, Given

WITH_FIXTURES = settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
NDJSON, BYTES = "application/x-ndjson", "application/octet-stream"
_serials = count()


def fresh(http: httpx.Client) -> str:
    """The records of a new log."""
    name = f"appended-{next(_serials)}"
    assert http.post("/v1/logs", json={"name": name}).status_code == 201
    return f"/v1/logs/{name}/records"


def content(of: str | bytes, kind: str) -> dict[str, Any]:
    return {"content": of, "headers": {"Content-Type": kind}}


def stored(http: httpx.Client, path: str) -> list[dict[str, Any]]:
    return http.get(path, params={"encoding": "base64"}).json()["records"]


def coded(given: bytes | None) -> str | None:
    return None if given is None else b64encode(given).decode()


def kept(record: Given) -> dict[str, Any]:
    return {
        "value": coded(record.value),
        "key": coded(record.key),
        "headers": [{"name": name, "value": coded(value)} for name, value in record.headers],
        "timestamp": record.timestamp,
    }


@WITH_FIXTURES
@given(st.lists(RECORDS, min_size=1, max_size=5), st.booleans())
def test_every_record_comes_out_as_it_went_in(
    http: httpx.Client, records: list[Given], lines: bool
) -> None:
    path = fresh(http)
    if lines:
        body = "\n\n".join(each.line for each in records) + "\n"
        answer = http.post(path, **content(body, NDJSON))
    else:
        answer = http.post(path, json={"records": [json.loads(each.line) for each in records]})
    assert (answer.status_code, answer.json()["count"]) == (201, len(records))
    found = stored(http, path)
    assert [each["position"] for each in found] == list(range(len(records)))
    assert [{name: each[name] for name in kept(records[0])} for each in found] == [
        kept(each) for each in records
    ]


@WITH_FIXTURES
@given(st.lists(RECORDS, min_size=1, max_size=5), st.booleans())
def test_what_is_read_can_be_sent_elsewhere(
    http: httpx.Client, records: list[Given], lines: bool
) -> None:
    first, second = fresh(http), fresh(http)
    http.post(first, **content("\n".join(each.line for each in records), NDJSON))
    if lines:
        read = http.get(first, headers={"Accept": NDJSON}).content
        http.post(second, **content(read, NDJSON))
    else:
        http.post(second, json={"records": http.get(first).json()["records"]})
    for encoded in (first, second):
        for each in stored(http, encoded):
            assert each["origin"]["position"] == each["position"]
    fields = ("value", "key", "headers", "timestamp")
    assert [[each[name] for name in fields] for each in stored(http, first)] == [
        [each[name] for name in fields] for each in stored(http, second)
    ]


@WITH_FIXTURES
@given(st.binary(max_size=30), st.none() | st.binary(max_size=10))
def test_a_body_of_bytes_is_one_record_and_its_key_may_be_any_bytes(
    http: httpx.Client, value: bytes, key: bytes | None
) -> None:
    path = fresh(http)
    query = "" if key is None else f"?key={quote_from_bytes(key)}"
    answer = http.post(path + query, **content(value or b"x", BYTES))
    assert answer.status_code == 201, answer.text
    (found,) = stored(http, path)
    assert (found["value"], found["key"]) == (coded(value or b"x"), coded(key))


@pytest.mark.parametrize(
    ("body", "kind", "where", "reason"),
    [
        ("{", "application/json", None, "EOF while parsing"),
        ("[]", "application/json", "body", "object"),
        ("{}", "application/json", "body.records", "Field required"),
        ('{"records": []}', "application/json", "body.records", "at least 1 item"),
        ('{"records": [{}]}', "application/json", "body.records.0.value", "Field required"),
        ('{"records": [{"value": 1}]}', "application/json", "body.records.0.value", "string"),
        ('{"records": [{"value": "\\ud800"}]}', "application/json", None, "hex escape"),
        (
            '{"records": [{"value": "a", "vlaue": "b"}]}',
            "application/json",
            "body.records.0.vlaue",
            "Extra inputs are not permitted",
        ),
        (
            '{"records": [{"value": "?", "encoding": "base64"}]}',
            "application/json",
            "body.records.0",
            "it isn't base64",
        ),
        (
            '{"records": [{"value": "a", "timestamp": "2026-01-01T00:00:00"}]}',
            "application/json",
            "body.records.0.timestamp",
            "must say its time zone",
        ),
        (
            '{"records": [{"value": "a", "timestamp": -1}]}',
            "application/json",
            "body.records.0.timestamp",
            "a time lies between 1970 and",
        ),
        (
            '{"records": [{"value": "a", "timestamp": "-10m"}]}',
            "application/json",
            "body.records.0.timestamp",
            "'-10m' is neither a number nor a time in RFC 3339",
        ),
        (
            '{"records": [{"value": "a", "timestamp": true}]}',
            "application/json",
            "body.records.0.timestamp",
            "a time is RFC 3339 text or milliseconds",
        ),
        ("\n \n", NDJSON, "body", "it holds no records"),
        ('{"value": "a"}\n{"value": 1}', NDJSON, "body.2.value", "string"),
        ('{"value": "a"}\nnonsense', NDJSON, None, "isn't JSON"),
        ('{"value": "a"}\n\n{"value": "*", "encoding": "base64"}', NDJSON, "body.3", "base64"),
    ],
)
def test_a_body_that_can_not_be_says_where_and_nothing_of_it_is_appended(
    http: httpx.Client, body: str, kind: str, where: str | None, reason: str
) -> None:
    path = fresh(http)
    told = http.post(path, **content(body, kind)).json()
    assert told["status"] == (400 if where is None else 422)
    assert reason in told["detail"]
    if where is not None:
        assert told["facts"]["what"] == where
    assert http.get(path).json()["records"] == []


@pytest.mark.parametrize(
    "kind",
    [
        "application/json; charset=UTF-8",
        'application/json;charset="utf-8"',
        "application/json; charset=us-ascii",
        "application/octet-stream; charset=latin-1",
    ],
)
def test_text_is_utf_8_and_bytes_are_what_they_are(http: httpx.Client, kind: str) -> None:
    answer = http.post(fresh(http), **content(b'{"records": [{"value": "a"}]}', kind))
    assert answer.status_code == 201


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Content-Type": "text/plain"}, "unsupported-media"),
        ({"Content-Type": ""}, "unsupported-media"),
        ({"Content-Type": "application/json; charset=latin-1"}, "unsupported-media"),
        ({"Content-Type": 'application/json;a=b; CHARSET="utf-16"'}, "unsupported-media"),
        ({"Content-Type": NDJSON, "Content-Encoding": "gzip"}, "unsupported-media"),
        ({"Content-Type": "application/json", "Producer-Id": "1"}, "bad-request"),
        ({"Content-Type": "application/json", "Producer-Sequence": "0"}, "bad-request"),
        (
            {
                "Content-Type": "application/json",
                "Producer-Id": "1",
                "Producer-Sequence": "0",
                "Idempotency-Key": "k",
            },
            "bad-request",
        ),
        ({"Content-Type": "application/json", "Idempotency-Key": "k" * 201}, "bad-request"),
        ({"Content-Type": "application/json", "Deadline-Ms": "0"}, "bad-request"),
        ({"Content-Type": "application/json", "Deadline-Ms": "soon"}, "bad-request"),
    ],
)
def test_headers_that_can_not_be_are_told(
    http: httpx.Client, headers: dict[str, str], code: str
) -> None:
    path = fresh(http)
    answer = http.post(path, content=b'{"records": [{"value": "a"}]}', headers=headers)
    assert answer.json()["code"] == code
    assert http.get(path).json()["records"] == []


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON"])
def test_a_media_type_may_have_parameters_and_any_case(http: httpx.Client, kind: str) -> None:
    path = fresh(http)
    answer = http.post(path, **content('{"records": [{"value": "a"}]}', kind))
    assert answer.status_code == 201


@WITH_FIXTURES
@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz")), max_size=6))
def test_a_key_is_good_for_one_request_and_repeats_its_answer(
    http: httpx.Client, requests: list[tuple[str, str]]
) -> None:
    """A naive server keeps the value and the answer of each key."""
    path = fresh(http)
    known: dict[str, tuple[str, int]] = {}
    tail = 0
    for key, value in requests:
        body = {"records": [{"value": value}]}
        answer = http.post(path, json=body, headers={"Idempotency-Key": key})
        if key not in known:
            known[key] = (value, tail)
            tail += 1
        first, position = known[key]
        if first == value:
            assert (answer.status_code, answer.json()["position"]) == (201, position)
        else:
            assert (answer.status_code, answer.json()["code"]) == (422, "request-reused")
    assert len(stored(http, path)) == tail


def test_a_key_outside_of_the_body_is_for_bytes_only(http: httpx.Client) -> None:
    path = fresh(http)
    told = http.post(path, params={"key": "k"}, json={"records": [{"value": "a"}]}).json()
    assert told["facts"]["what"] == "query.key"
    assert http.get(path).json()["records"] == []


def test_a_withheld_position_is_an_accepted_append_with_a_receipt(http: httpx.Client) -> None:
    path = fresh(http)
    log = path.split("/")[3]
    http.post(f"/v1/logs/{log}/forks", json={"name": "plan", "promotable": True})
    answer = http.post(path, json={"records": [{"value": "a"}]})
    assert (answer.status_code, answer.json()["position"]) == (202, None)
    receipt = answer.json()["receipt"]
    pending = http.post("/v1/receipts/redeem", json={"receipt": receipt}).json()
    assert pending["code"] == "receipt-pending"
    http.post(f"/v1/logs/{log}--plan/promote")
    redeemed = http.post("/v1/receipts/redeem", json={"receipt": receipt})
    assert redeemed.json() == {"log": log, "position": 0}
