"""Appends with writer marks over HTTP: each batch is in the log once, whoever sends it."""

from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

import anabranch

NUMBERS = count()
MARK = {"writer": "q", "version": 0}


@pytest.fixture
def log(shared: Any) -> str:
    return shared.create(f"marked-{next(NUMBERS)}")


def send(served: Any, log: str, *values: str, **query: Any) -> httpx.Response:
    body = {"records": [{"value": value} for value in values]}
    query = {**MARK, **query}
    return served.client.post(f"/v1/logs/{log}/records", json=body, params=query)


def complete(
    served: Any, log: str, version: int, parts: dict[str, int], writer: str = "q"
) -> httpx.Response:
    body = {"version": version, "parts": parts}
    return served.client.post(f"/v1/logs/{log}/writers/{writer}/complete", json=body)


def test_a_batch_that_is_sent_again_is_not_appended_again(shared: Any, log: str) -> None:
    shared.append(log, "before")
    first, again = send(shared, log, "a", "b"), send(shared, log, "a", "b")
    told = {"log": log, "count": 2, "position": 1, "receipt": None, "complete": None}
    assert (first.status_code, first.json()) == (201, {**told, "repeated": False})
    assert (again.status_code, again.json()) == (200, {**told, "repeated": True})
    second = send(shared, log, "c", batch=1)
    assert (second.status_code, second.json()["position"]) == (201, 3)
    other = send(shared, log, "x", part=7)
    assert (other.status_code, other.json()["position"]) == (201, 4)
    assert shared.values(log) == ["before", "a", "b", "c", "x"]


def test_other_records_and_gaps_are_refused(shared: Any, log: str) -> None:
    send(shared, log, "a")
    differs = send(shared, log, "b")
    assert (differs.status_code, differs.json()["code"]) == (409, "part-differs")
    path = f"/v1/logs/{log}/records"
    body, timed = {"records": [{"value": "c"}]}, {"Deadline-Ms": "300"}
    stamped = {"records": [{"value": "a", "timestamp": 1}]}
    assert shared.refusal("POST", path, json=stamped, params=MARK) == (409, "part-differs")
    gap = shared.client.post(path, json=body, params={**MARK, "batch": 2}, headers=timed)
    assert (gap.status_code, gap.json()["code"]) == (409, "part-gap")
    assert gap.json()["facts"]["expected"] == 1
    assert shared.values(log) == ["a"]


def test_a_version_is_closed_when_it_is_whole(shared: Any, log: str) -> None:
    send(shared, log, "a")
    send(shared, log, "b", batch=1)
    send(shared, log, "c", part=3)
    for wrong in ({}, {"0": 2}, {"0": 1, "3": 1}, {"0": 2, "3": 1, "4": 1}):
        refused = complete(shared, log, 0, wrong)
        assert (refused.status_code, refused.json()["code"]) == (409, "writer-conflict"), wrong
    for _ in range(2):
        assert complete(shared, log, 0, {"3": 1, "0": 2, "9": 0}).status_code == 204
    late = send(shared, log, "a")
    assert (late.status_code, late.json()["position"], late.json()["complete"]) == (200, 0, 0)
    assert send(shared, log, "z", part=5).json()["code"] == "part-differs"
    send(shared, log, "d", version=4)
    assert complete(shared, log, 4, {"0": 1}).status_code == 204
    below = send(shared, log, "whatever", version=2)
    told = {"log": log, "count": 1, "position": None, "receipt": None}
    assert (below.status_code, below.json()) == (200, {**told, "repeated": True, "complete": 4})
    assert shared.values(log) == ["a", "b", "c", "d"]


def test_writers_are_listed_looked_up_and_released(shared: Any, log: str) -> None:
    path = f"/v1/logs/{log}/writers"
    assert shared.client.get(path).json() == {"writers": []}
    assert shared.refusal("GET", f"{path}/q") == (404, "unknown-writer")
    send(shared, log, "a")
    send(shared, log, "b", version=1, part=2)
    send(shared, log, "c", writer="other")
    complete(shared, log, 0, {"0": 1})
    (other, mine) = shared.client.get(path).json()["writers"]
    assert mine.pop("at_ms") > 0
    told = {"name": "q", "complete": 0, "parts": {"0": 1}, "open": {"1": {"2": 1}}}
    assert mine == told
    assert (other["name"], other["complete"]) == ("other", None)
    assert shared.client.get(f"{path}/other").json() == other
    for _ in range(2):
        assert shared.client.delete(f"{path}/q").status_code == 204
    assert shared.client.get(path).json() == {"writers": [other]}
    assert send(shared, log, "a").json()["repeated"] is False


def test_a_mark_stands_in_the_place_of_a_key(shared: Any, log: str) -> None:
    path, body = f"/v1/logs/{log}/records", {"records": [{"value": "a"}]}
    for headers in (
        {"Idempotency-Key": "k"},
        {"Producer-Id": "1", "Producer-Sequence": "0"},
    ):
        refused = shared.refusal("POST", path, json=body, params=MARK, headers=headers)
        assert refused == (422, "bad-request")
    for query in (
        {"writer": "q"},
        {"version": 0},
        {"part": 0},
        {"batch": 0},
        {**MARK, "version": -1},
        {**MARK, "version": 1 << 53},
        {**MARK, "part": 1 << 31},
        {**MARK, "batch": 1 << 31},
        {**MARK, "shard": "s"},
        {**MARK, "writer": ""},
        {**MARK, "writer": "x" * 201},
        {**MARK, "writer": "a\nb"},
    ):
        assert shared.refusal("POST", path, json=body, params=query) == (422, "bad-request"), query
    for parts in ({"00": 1}, {"-1": 1}, {"٣": 1}, {"": 1}, {str(1 << 31): 1}, {"0": 1 << 31}):
        assert complete(shared, log, 0, parts).status_code == 422, parts
    assert shared.values(log) == []
    assert shared.client.get(f"/v1/logs/{log}/writers").json() == {"writers": []}


def test_a_large_version_can_be_completed(shared: Any, log: str) -> None:
    """As many parts as a log remembers fit into a request."""
    parts = {str(2_000_000_000 + part): 1_000_000 for part in range(20_000)}
    answer = complete(shared, log, 0, parts)
    assert (answer.status_code, answer.json()["code"]) == (409, "writer-conflict")
    parts["0"] = 1
    answer = complete(shared, log, 0, parts)
    assert (answer.status_code, answer.json()["code"]) == (409, "too-many")


def test_a_withheld_position_is_a_receipt_the_second_time_as_well(shared: Any, log: str) -> None:
    fork = shared.fork(log, "try", promotable=True)
    first, again = send(shared, log, "a"), send(shared, log, "a")
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json()["receipt"] == again.json()["receipt"] is not None
    assert (again.json()["position"], again.json()["repeated"]) == (None, True)
    inside = send(shared, fork, "b", writer="w")
    assert inside.json()["position"] == 1
    complete(shared, fork, 0, {"0": 1}, "w")
    shared.client.post(f"/v1/logs/{fork}/promote", json={"expect_own": 1})
    known = send(shared, log, "b", writer="w").json()
    assert (known["repeated"], known["position"], known["complete"]) == (True, 1, 0)
    assert shared.values(log) == ["a", "b"]


def test_http_and_the_client_are_one_writer(embedded: Any) -> None:
    embedded.create("orders")
    send(embedded, "orders", "a", "b")
    with anabranch.connect(f"anabranch://{embedded.embedded.frames}") as service:
        writer = service.log("orders", engine="bolt").writer("q")
        assert writer.append([b"a", b"b"], version=0).repeated == 1
        writer.append([b"c"], version=0, part=1)
        assert send(embedded, "orders", "c", part=1).json()["repeated"] is True
        complete(embedded, "orders", 0, {"0": 1, "1": 1})
        state = writer.state()
        assert state is not None
        assert state.complete == 0
    assert embedded.values("orders") == ["a", "b", "c"]


def test_a_writer_is_remembered_over_a_restart(embedding: Any, tmp_path: Path) -> None:
    with embedding(data=tmp_path / "log") as served:
        served.create("orders")
        send(served, "orders", "a")
    with embedding(data=tmp_path / "log") as served:
        assert send(served, "orders", "a").json()["repeated"] is True
        assert served.values("orders") == ["a"]


def test_a_marked_append_that_is_not_answered_may_have_been_done_and_is_to_be_repeated(
    embedded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer waits for an object that is never stored."""
    embedded.create("orders")
    monkeypatch.setattr(embedded.embedded.host.storing, "_put", lambda *_: None)
    path, body = "/v1/logs/orders/records", {"records": [{"value": "a"}]}
    late = embedded.client.post(
        path, json=body, params=MARK, headers={"Deadline-Ms": "2000"}
    ).json()
    assert (late["code"], late["advice"]) == ("deadline-exceeded", "retry")
    assert "may or may not have happened: repeat it" in late["detail"]


def test_logs_that_keep_no_marks_say_so_and_append_nothing(shared: Any) -> None:
    settings = {"shards": 1, "addresses": ["far:7440"], "cluster": "far"}
    name = f"far-{next(NUMBERS)}"
    asked = {"name": name, "engine": "belfast", "settings": settings}
    shared.client.post("/v1/logs", json=asked)
    refused = send(shared, name, "a")
    assert (refused.status_code, refused.json()["code"]) == (409, "no-writer-marks")
    for method, path in (("GET", ""), ("GET", "/q"), ("DELETE", "/q")):
        answer = shared.client.request(method, f"/v1/logs/{name}/writers{path}").json()
        assert answer["code"] == "wrong-engine"
        assert "these have no writers" in answer["detail"]
    assert "these have no writers" in complete(shared, name, 0, {"0": 1}).json()["detail"]


def test_a_batch_that_no_broker_takes_is_refused_and_others_go_on(shared: Any, log: str) -> None:
    """Its frame would have a broker hang up on a gateway, and on all that this asks for others."""
    path = f"/v1/logs/{log}/records"
    headers = {"Content-Type": "application/octet-stream", "Deadline-Ms": "5000"}
    large = {"content": bytes(7 << 20), "params": MARK, "headers": headers}
    status, code = shared.refusal("POST", path, **large)
    assert (status, code.endswith("too-large")) == (413, True), code
    assert send(shared, log, "a").status_code == 201
