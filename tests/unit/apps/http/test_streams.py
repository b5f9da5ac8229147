"""Server-sent events: how they are framed, what they hold, and where a reader resumes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.cli.records import fresh_name


@contextmanager
def subscribed(
    http: httpx.Client, log: str, headers: dict[str, str] | None = None, start: int | None = None
) -> Iterator[Iterator[dict[str, Any]]]:
    path = f"/v1/logs/{log}/subscribe"
    query = {} if start is None else {"from": start}
    with http.stream("GET", path, params=query, headers=headers) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["Cache-Control"] == "no-store"
        yield events(answer.iter_raw())


def events(parts: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    """A reader by the letter of the specification, for fields of one line."""
    rest = b""
    for part in parts:
        rest += part
        *whole, rest = rest.split(b"\n\n")
        for each in whole:
            fields = dict(line.split(b": ", 1) for line in each.split(b"\n"))
            if b"data" in fields:
                yield {
                    "event": fields[b"event"].decode(),
                    "id": fields[b"id"].decode() if b"id" in fields else None,
                    "data": json.loads(fields[b"data"]),
                }


def log_of(http: httpx.Client, *values: str) -> str:
    name = fresh_name()
    http.post("/v1/logs", json={"name": name})
    if values:
        append(http, name, *values)
    return name


def append(http: httpx.Client, log: str, *values: str) -> None:
    body = {"records": [{"value": value} for value in values]}
    assert http.post(f"/v1/logs/{log}/records", json=body).is_success


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(max_size=8), min_size=1, max_size=5))
def test_no_value_breaks_the_framing(http: httpx.Client, values: list[str]) -> None:
    """Newlines, colons, separators of Unicode and whatever else a stranger wrote."""
    values = [value.encode("utf-8", "replace").decode() for value in values]
    log = log_of(http, *values)
    with subscribed(http, log, start=0) as found:
        got = [next(found) for _ in values]
    assert [each["data"]["value"] for each in got] == values
    assert [each["data"]["position"] for each in got] == list(range(len(values)))
    assert all(each["event"] == "deliver" for each in got)


def test_an_id_is_the_logs_number_and_where_to_resume(http: httpx.Client) -> None:
    log = log_of(http, "a", "b", "c")
    number = http.get(f"/v1/logs/{log}").json()["id"]
    with subscribed(http, log, start=1) as found:
        first, second = next(found), next(found)
    assert (first["id"], second["id"]) == (f"{number}:2", f"{number}:3")
    with subscribed(http, log, {"Last-Event-ID": first["id"]}) as found:
        again, resumed = next(found), next(found)
    assert (again["event"], again["data"]) == ("fail", {"since": 2})
    assert resumed == second


def test_an_event_id_goes_before_a_position(http: httpx.Client) -> None:
    log = log_of(http, "a", "b", "c")
    number = http.get(f"/v1/logs/{log}").json()["id"]
    with subscribed(http, log, {"Last-Event-ID": f"{number}:2"}, start=0) as found:
        next(found)
        assert next(found)["data"]["value"] == "c"


def test_by_default_a_subscription_begins_with_what_comes(http: httpx.Client) -> None:
    log = log_of(http, "before")
    with subscribed(http, log) as found:
        append(http, log, "after")
        assert next(found)["data"]["value"] == "after"


def test_what_is_not_final_has_no_id_to_resume_after(http: httpx.Client) -> None:
    log = log_of(http, "a")
    http.post(f"/v1/logs/{log}/forks", json={"name": "plan", "promotable": True})
    append(http, f"{log}--plan", "planned")
    append(http, log, "held")
    with subscribed(http, log, start=0) as found:
        final, guess = next(found), next(found)
        assert (final["data"]["speculative"], guess["data"]["speculative"]) == (False, True)
        assert guess["id"] is None
        http.post(f"/v1/logs/{log}--plan/promote")
        failed = next(found)
        assert (failed["event"], failed["data"]) == ("fail", {"since": 1})
        anew = [next(found)["data"]["value"] for _ in range(2)]
    assert anew == ["planned", "held"]


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ("", "bad-request"),
        ("5", "bad-request"),
        ("x:5", "bad-request"),
        ("1:-5", "bad-request"),
        ("1:5:6", "bad-request"),
        ("9" * 16 + ":1", "bad-request"),
        ("9" * 100, "bad-request"),
        ("999999999:1", "event-of-another-log"),
    ],
)
def test_an_event_id_that_can_not_be_is_refused_before_the_stream(
    http: httpx.Client, event: str, code: str
) -> None:
    log = log_of(http)
    answer = http.get(f"/v1/logs/{log}/subscribe", headers={"Last-Event-ID": event})
    assert answer.json()["code"] == code
    assert answer.status_code in {422, 410}


def test_what_lies_outside_of_the_log_is_refused_before_the_stream(http: httpx.Client) -> None:
    log = log_of(http, "a")
    told = http.get(f"/v1/logs/{log}/subscribe", params={"from": 2}).json()
    assert (told["code"], told["facts"]["last"]) == ("out-of-range", 1)
    assert http.get("/v1/logs/nowhere/subscribe").status_code == 404


def test_the_end_of_the_log_ends_its_stream_with_the_reason(http: httpx.Client) -> None:
    log = log_of(http, "a")
    http.post(f"/v1/logs/{log}/forks", json={"name": "f"})
    with subscribed(http, f"{log}--f", start=0) as found:
        next(found)
        http.request("DELETE", f"/v1/logs/{log}--f")
        last = next(found)
        assert last["event"] == "ended"
        assert last["data"]["code"] == "squashed"
        assert list(found) == []
