"""Records over HTTP: appended once, whole or not at all; read by pages or by lines."""

import json
import threading
from base64 import b64encode
from itertools import count
from typing import Any

import httpx
import pytest

from anabranch.core.limits import Limits

NUMBERS = count()
LINES = {"Content-Type": "application/x-ndjson"}
BYTES = {"Content-Type": "application/octet-stream"}


@pytest.fixture
def log(shared: Any) -> str:
    return shared.create(f"log-{next(NUMBERS)}")


def get(shared: Any, log: str, **query: Any) -> dict[str, Any]:
    answer = shared.client.get(f"/v1/logs/{log}/records", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_what_is_appended_is_read_in_full(shared: Any, log: str) -> None:
    records = [
        {"value": "text", "key": "k", "timestamp": 1_700_000_000_000},
        {"value": b64encode(b"\xff\x00").decode(), "encoding": "base64", "key": "aw=="},
        {"value": None, "timestamp": "2026-07-01T12:00:00+02:00"},
        {"value": "", "headers": [{"name": "h", "value": "1"}, {"name": "h", "value": None}]},
        {"value": "line\nand\r\u2028 \U0001f600", "timestamp": "1700000000001"},
    ]
    answer = shared.client.post(f"/v1/logs/{log}/records", json={"records": records})
    assert answer.status_code == 201
    assert answer.json() == {"log": log, "count": 5, "position": 0, "receipt": None}
    page = get(shared, log)
    assert {name: page[name] for name in ("next", "start", "tail", "settled")} == {
        "next": 5,
        "start": 0,
        "tail": 5,
        "settled": 5,
    }
    text, raw, nothing, empty, odd = page["records"]
    assert text == {
        "position": 0,
        "value": "text",
        "key": "k",
        "headers": [],
        "timestamp": 1_700_000_000_000,
        "encoding": "text",
        "origin": {"log": log, "position": 0},
        "id": f"{shared.client.get(f'/v1/logs/{log}').json()['id']}-0",
    }
    assert (raw["value"], raw["key"], raw["encoding"]) == ("/wA=", "aw==", "base64")
    assert (nothing["value"], nothing["timestamp"]) == (None, 1_782_900_000_000)
    assert (empty["value"], empty["headers"]) == ("", records[3]["headers"])
    assert (odd["value"], odd["timestamp"]) == (records[4]["value"], 1_700_000_000_001)
    base64 = get(shared, log, encoding="base64")["records"][0]
    assert (base64["value"], base64["encoding"]) == ("dGV4dA==", "base64")


def test_lines_and_bytes_are_appended_too(shared: Any, log: str) -> None:
    path = f"/v1/logs/{log}/records"
    lines = b'{"value": "a"}\n\n{"value": "b", "key": "k"}\r\n'
    assert shared.client.post(path, content=lines, headers=LINES).json()["count"] == 2
    raw = shared.client.post(path, content=b"\xff\xfe", headers=BYTES, params={"key": "k"})
    assert raw.json()["position"] == 2
    assert [record["value"] for record in get(shared, log)["records"]] == ["a", "b", "//4="]
    assert get(shared, log)["records"][2]["key"] == "aw=="


def test_of_a_body_with_a_fault_nothing_is_appended(shared: Any, log: str) -> None:
    path = f"/v1/logs/{log}/records"
    for content, headers, where in (
        (b'{"value": "a"}\n{"value": 1}\n', LINES, "body.2.value"),
        (b'{"records": [{"value": "a"}, {"valu": "b"}]}', None, "body.records.1.value"),
        (b'{"records": [{"value": "%", "encoding": "base64"}]}', None, "body.records.0"),
        (b'{"records": []}', None, "body.records"),
        (b"\n", LINES, "body"),
        (b'{"records": [{"value": "a", "timestamp": -1}]}', None, "body.records.0.timestamp"),
        (b'{"records": [{"value": "a", "timestamp": true}]}', None, "body.records.0.timestamp"),
        (b'{"records": [{"value": "a", "timestamp": "noon"}]}', None, "body.records.0.timestamp"),
    ):
        given = headers or {"Content-Type": "application/json"}
        answer = shared.client.post(path, content=content, headers=given)
        assert (answer.status_code, answer.json()["code"]) == (422, "bad-request")
        assert answer.json()["facts"]["what"] == where
    for content in (b"", b"{", b'{"records": [{"value": "\\ud800"}]}', b"\xff", b"[" * 10_000):
        headers = {"Content-Type": "application/json"}
        answer = shared.client.post(path, content=content, headers=headers)
        assert answer.status_code in (400, 422)
    assert shared.refusal("POST", path, content=b"{", headers=LINES) == (400, "malformed-body")
    keyed = {"json": {"records": [{"value": "a"}]}, "params": {"key": "k"}}
    assert shared.refusal("POST", path, **keyed) == (422, "bad-request")
    assert get(shared, log)["tail"] == 0


def test_an_append_repeated_with_its_key_is_appended_once(shared: Any, log: str) -> None:
    first = shared.append(log, "a", "b", **{"Idempotency-Key": "1"})
    shared.append(log, "c")
    assert shared.append(log, "a", "b", **{"Idempotency-Key": "1"}) == first
    shared.append(log, "a", "b", **{"Idempotency-Key": "2"})
    assert shared.values(log) == ["a", "b", "c", "a", "b"]


def test_a_producer_appends_in_order_and_once(shared: Any, log: str) -> None:
    def numbered(sequence: int) -> dict[str, str]:
        return {"Producer-Id": "7", "Producer-Sequence": str(sequence)}

    shared.append(log, "a", "b", **numbered(0))
    assert shared.append(log, "c", **numbered(2))["position"] == 2
    assert shared.append(log, "a", "b", **numbered(0))["position"] == 0
    path, body = f"/v1/logs/{log}/records", {"records": [{"value": "e"}]}
    gap = shared.client.post(path, json=body, headers=numbered(9)).json()
    assert (gap["code"], gap["facts"]["expected"]) == ("sequence-gap", 3)
    for headers in (
        {"Producer-Id": "7"},
        {"Producer-Sequence": "7"},
        {**numbered(3), "Idempotency-Key": "x"},
        {**numbered(3), "Producer-Epoch": "-1"},
        {"Producer-Id": "x", "Producer-Sequence": "0"},
    ):
        refusal = shared.refusal("POST", path, json=body, headers=headers)
        assert refusal == (422, "bad-request")
    assert shared.values(log) == ["a", "b", "c"]


def test_positions_are_withheld_as_receipts_until_the_decision(shared: Any, log: str) -> None:
    shared.append(log, "a")
    fork = shared.fork(log, "try", promotable=True)
    body = {"records": [{"value": "b"}, {"value": "c"}]}
    answer = shared.client.post(f"/v1/logs/{log}/records", json=body)
    assert answer.status_code == 202
    receipt = answer.json()["receipt"]
    assert answer.json() == {"log": log, "count": 2, "position": None, "receipt": receipt}
    redeem = "/v1/receipts/redeem"
    pending = shared.refusal("POST", redeem, json={"receipt": receipt})
    assert pending == (409, "receipt-pending")
    shared.append(fork, "won")
    waiting: list[httpx.Response] = []

    def wait() -> None:
        with httpx.Client(base_url=shared.url, timeout=30) as patient:
            body = {"receipt": receipt, "wait_ms": 30_000}
            waiting.append(patient.post(redeem, json=body))

    waiter = threading.Thread(target=wait)
    waiter.start()
    shared.client.post(f"/v1/logs/{fork}/promote")
    waiter.join()
    assert waiting[0].json() == {"log": log, "position": 1}
    assert shared.values(log) == ["a", "b", "c", "won"]
    for receipt in ("", "1.2", "a.b.c", "1.2.-3", f"{1 << 60}.0.0", "٣.٣.٣"):
        refusal = shared.refusal("POST", redeem, json={"receipt": receipt})
        assert refusal == (422, "bad-request")
    assert shared.refusal("POST", redeem, json={"receipt": "999999.0.0"}) == (404, "unknown-log")


def test_reads_and_appends_behind_an_undecided_fork_are_refused(shared: Any, log: str) -> None:
    shared.append(log, "a")
    view = shared.fork(log, "view")
    shared.fork(log, "try", promotable=True)
    shared.append(log, "b")
    path = f"/v1/logs/{log}/records"
    blocked = shared.client.get(path, params={"from": 1})
    assert (blocked.status_code, blocked.json()["code"]) == (409, "read-blocked")
    assert blocked.json()["facts"]["fork"] == f"{log}--try"
    body = {"json": {"records": [{"value": "c"}]}, "params": {"wait_ms": 0}}
    assert shared.refusal("POST", f"/v1/logs/{view}/records", **body) == (409, "append-blocked")


def test_a_page_ends_at_its_limits(shared: Any, log: str) -> None:
    shared.append(log, *("x" * 1_000 for _ in range(200)))
    assert get(shared, log)["next"] == 100
    page = get(shared, log, **{"from": 100, "limit": 7})
    assert [record["position"] for record in page["records"]] == list(range(100, 107))
    assert page["next"] == 107
    assert get(shared, log, bytes=2_500)["next"] == 3
    assert get(shared, log, bytes=1)["next"] == 1
    assert get(shared, log, **{"from": 200})["records"] == []
    assert get(shared, log, limit=1 << 30)["next"] == 200
    path = f"/v1/logs/{log}/records"
    assert shared.refusal("GET", path, params={"from": 201}) == (416, "out-of-range")


def test_a_page_goes_on_over_many_small_batches(shared: Any, log: str) -> None:
    other = shared.create(f"{log}.other")
    for number in range(300):
        shared.append(log, str(number))
        shared.append(other, "between")
    assert shared.values(log) == [str(number) for number in range(300)]


def test_lines_are_streamed_up_to_where_the_log_was_settled(shared: Any, log: str) -> None:
    shared.append(log, *(str(number) for number in range(1_000)))
    shared.append(log, "\0")
    path, accept = f"/v1/logs/{log}/records", {"Accept": "text/html, application/x-ndjson;q=0.9"}
    with shared.client.stream("GET", path, headers=accept) as answer:
        assert answer.headers["Content-Type"] == "application/x-ndjson"
        lines = [json.loads(line) for line in answer.iter_lines()]
    assert [line["position"] for line in lines] == list(range(1_001))
    some = shared.client.get(path, headers=accept, params={"from": 5, "limit": 300}).text
    assert [json.loads(line)["value"] for line in some.splitlines()] == [
        str(number) for number in range(5, 305)
    ]
    none = shared.client.get(path, headers=accept, params={"from": 1_001})
    assert (none.status_code, none.content) == (200, b"")
    beyond = shared.refusal("GET", path, headers=accept, params={"from": 1_002})
    assert beyond == (416, "out-of-range")


def test_a_read_at_the_end_waits_for_the_next_record(shared: Any, log: str) -> None:
    found: list[list[str]] = []

    def wait() -> None:
        with httpx.Client(base_url=shared.url, timeout=40) as patient:
            query = {"from": 0, "wait_ms": 30_000}
            page = patient.get(f"/v1/logs/{log}/records", params=query).json()
            found.append([record["value"] for record in page["records"]])

    waiter = threading.Thread(target=wait)
    waiter.start()
    shared.append(log, "at last")
    waiter.join()
    assert found == [["at last"]]
    assert get(shared, log, **{"from": 1, "wait_ms": 1})["records"] == []


def test_a_reader_that_hangs_up_no_longer_waits(embedded: Any) -> None:
    log = embedded.create()

    path, query = f"{embedded.url}/v1/logs/{log}/records", {"wait_ms": 60_000}
    with httpx.Client(timeout=0.2) as hasty, pytest.raises(httpx.ReadTimeout):
        hasty.get(path, params=query)
    while embedded.gauge("waits") > 0:
        pass


def test_records_and_batches_over_the_limits_are_refused_with_nothing_appended(
    serving: Any,
) -> None:
    limits = Limits(
        record_bytes_max=1_000, batch_bytes_max=3_000, batch_records_max=10, frame_bytes_max=4_000
    )
    with serving(limits) as served:
        log = served.create()
        path = f"/v1/logs/{log}/records"

        def refusal(*values: str) -> tuple[int, str]:
            body = {"records": [{"value": value} for value in values]}
            return served.refusal("POST", path, json=body)

        served.append(log, "x" * 1_000)
        assert refusal("x" * 1_001) == (413, "record-too-large")
        assert refusal(*("x" * 900 for _ in range(4))) == (413, "batch-too-large")
        assert refusal(*("x" for _ in range(11))) == (413, "batch-too-large")
        assert refusal("x" * 6_001) == (413, "body-too-large")
        assert served.values(log) == ["x" * 1_000]


@pytest.mark.parametrize(
    "body",
    [
        '{"records":[{"value":"x","headers":[' + '{"name":""},' * 200_000 + '{"name":""}]}]}',
        '{"records":[' + '{"value":""},' * 200_000 + '{"value":""}]}',
        '{"records":[{"value":"x","headers":[' + "[]," * 1_000_000 + "[]]}]}",
        '{"records":[{"value":"x","headers":[' + "0," * 2_000_000 + "0]}]}",
        '{"records":[{"value":"' + r"\"" * 10 + '","headers":[' + "[" * 1_000_000,
    ],
    ids=["headers", "records", "lists", "numbers", "nested"],
)
def test_a_body_of_more_objects_than_a_batch_has_records_is_refused_unread(
    shared: Any, log: str, body: str
) -> None:
    for media in ("application/json", "application/x-ndjson"):
        answer = shared.client.post(
            f"/v1/logs/{log}/records", content=body, headers={"Content-Type": media}
        )
        assert (answer.status_code, answer.json()["code"]) == (413, "batch-too-large")


def test_lines_that_are_blank_are_counted_too(shared: Any, log: str) -> None:
    answer = shared.client.post(f"/v1/logs/{log}/records", content="\n" * 200_001, headers=LINES)
    assert (answer.status_code, answer.json()["code"]) == (413, "batch-too-large")


def test_brackets_and_commas_inside_of_texts_cost_nothing(shared: Any, log: str) -> None:
    value = '{"a": [1, 2]}, \\' * 120_000
    body = {"records": [{"value": value, "headers": [{"name": value[:50], "value": "{,["}]}]}
    limits = shared.client.post(f"/v1/logs/{log}/records", json=body)
    # Over the limit of a record, but it was read.
    assert limits.json()["code"] == "record-too-large"
    small = {"records": [{"value": value[: 1 << 19]}]}
    assert shared.client.post(f"/v1/logs/{log}/records", json=small).status_code == 201


def test_headers_of_a_record_are_bounded(shared: Any, log: str) -> None:
    headers = [{"name": "h"}] * 5_001
    body = {"records": [{"value": "x", "headers": headers}]}
    answer = shared.client.post(f"/v1/logs/{log}/records", json=body)
    assert (answer.status_code, answer.json()["code"]) == (413, "too-many-headers")
    body = {"records": [{"value": "x", "headers": headers[1:]}]}
    assert shared.client.post(f"/v1/logs/{log}/records", json=body).status_code == 201
    page = get(shared, log, bytes=1)
    assert len(page["records"][0]["headers"]) == 5_000


def test_reading_begins_at_a_time(shared: Any, log: str) -> None:
    shared.append(log, "a", "b")
    path = f"/v1/logs/{log}/records"

    def values(start: str) -> list[str]:
        found = shared.client.get(path, params={"from": start})
        return [each["value"] for each in found.json()["records"]]

    assert values("2020-01-01T00:00:00Z") == ["a", "b"]
    assert values("2999-01-01T00:00:00+01:00") == []
    assert values("1") == ["b"]
    for start in ("soon", "-1", "2020-01-01T00:00:00", str(1 << 53)):
        assert shared.refusal("GET", path, params={"from": start}) == (422, "bad-request")


def test_what_is_read_can_be_appended(shared: Any, log: str) -> None:
    path, lines = f"/v1/logs/{log}/records", "application/x-ndjson"
    made = [
        {"value": None, "key": ""},
        {"value": "/wA=", "encoding": "base64", "headers": [{"name": "h", "value": None}]},
        {"value": "", "timestamp": 5},
    ]
    shared.client.post(path, json={"records": made})
    read = shared.client.get(path, headers={"Accept": lines})
    appended = shared.client.post(path, content=read.content, headers={"content-type": lines})
    assert appended.json()["count"] == 3
    records = shared.client.get(path).json()["records"]
    kept = ("value", "key", "headers", "encoding", "timestamp")
    assert [[each[name] for name in kept] for each in records[:3]] == [
        [each[name] for name in kept] for each in records[3:]
    ]
