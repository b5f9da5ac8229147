"""Idempotency-Key: one rule for everything that changes something (docs/reference/http.md)."""

from itertools import count
from typing import Any

import httpx
import pytest

KEY = {"Idempotency-Key": "k1"}
NUMBERS = count()


@pytest.fixture
def log(shared: Any) -> str:
    return shared.create(f"log-{next(NUMBERS)}")


def send(shared: Any, log: str, *values: str, **headers: str) -> httpx.Response:
    body = {"records": [{"value": value} for value in values]}
    return shared.client.post(f"/v1/logs/{log}/records", json=body, headers={**KEY, **headers})


def test_a_key_repeats_its_first_answer_after_the_name_was_given_to_another_log(
    shared: Any, log: str
) -> None:
    fork = shared.fork(log, "f")
    first = send(shared, fork, "a")
    shared.client.post(f"/v1/logs/{fork}/squash")
    gone = send(shared, fork, "a")
    shared.fork(log, "f")
    again = send(shared, fork, "a")
    assert first.status_code == 201
    assert first.json() == gone.json() == again.json()
    assert (gone.status_code, again.status_code) == (201, 201)
    assert shared.values(fork) == []


def test_a_key_repeats_its_first_answer_after_a_promotion(shared: Any, log: str) -> None:
    shared.append(log, "before")
    fork = shared.fork(log, "f", promotable=True)
    first = send(shared, fork, "a")
    shared.client.post(f"/v1/logs/{fork}/promote")
    again = send(shared, fork, "a")
    assert (again.status_code, again.json()) == (first.status_code, first.json()) != (410, None)
    assert shared.values(log) == ["before", "a"]


def test_a_key_that_came_before_its_log_is_good_once_there_is_one(shared: Any, log: str) -> None:
    late = f"{log}-late"
    for method, path, body in (
        ("POST", f"/v1/logs/{late}/records", {"records": [{"value": "a"}]}),
        ("POST", f"/v1/logs/{late}/forks", {"name": "f"}),
        ("POST", f"/v1/logs/{late}/trim", {"before": 0}),
        ("PUT", f"/v1/logs/{late}/cursors/me", {"position": 0}),
    ):
        answer = shared.client.request(method, path, json=body, headers=KEY)
        assert (answer.status_code, answer.json()["code"]) == (404, "unknown-log"), path
        assert answer.json()["facts"]["log"] == late
    shared.create(late)
    assert (
        shared.client.post(f"/v1/logs/{late}/forks", json={"name": "f"}, headers=KEY).status_code
        == 201
    )
    assert (
        shared.client.post(f"/v1/logs/{late}/trim", json={"before": 0}, headers=KEY).status_code
        == 204
    )
    assert (
        shared.client.put(
            f"/v1/logs/{late}/cursors/me", json={"position": 0}, headers=KEY
        ).status_code
        == 200
    )
    assert send(shared, late, "a").json()["position"] == 0
    assert send(shared, late, "a").json()["position"] == 0
    assert shared.values(late) == ["a"]


def test_a_key_without_its_log_and_never_used_is_told_what_became_of_the_log(
    shared: Any, log: str
) -> None:
    fork = shared.fork(log, "f")
    shared.client.post(f"/v1/logs/{fork}/squash")
    answer = send(shared, fork, "a")
    assert (answer.status_code, answer.json()["code"]) == (410, "squashed")
    shared.fork(log, "f")
    assert send(shared, fork, "a").status_code == 201


def test_a_receipt_is_repeated_as_it_was(shared: Any, log: str) -> None:
    fork = shared.fork(log, "f", promotable=True)
    first = send(shared, log, "a")
    shared.client.post(f"/v1/logs/{fork}/squash")
    again = send(shared, log, "a")
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json() == first.json()
    shared.client.post("/v1/receipts/redeem", json={"receipt": first.json()["receipt"]})
    assert shared.values(log) == ["a"]


def test_a_key_serves_both_spellings_of_a_forks_name(shared: Any, log: str) -> None:
    fork = shared.fork(log, "f")
    first = send(shared, fork, "a")
    assert send(shared, fork.replace("--", "@"), "a").json() == first.json()
    assert shared.values(fork) == ["a"]


def test_an_append_that_is_blocked_says_so_before_its_deadline(shared: Any, log: str) -> None:
    """Also under a key, which is as good as new once the fork is decided."""
    view = shared.fork(log, "view")
    winner = shared.fork(log, "try", promotable=True)
    for headers in ({}, {"Idempotency-Key": "blocked"}):
        body = {"records": [{"value": "b"}]}
        path, timed = f"/v1/logs/{view}/records", {"Deadline-Ms": "1500", **headers}
        answer = shared.client.post(path, json=body, headers=timed).json()
        assert (answer["code"], answer["facts"]["fork"]) == ("append-blocked", winner)
        assert "nothing was appended" in answer["detail"]
    shared.append(winner, "won")
    shared.client.post(f"/v1/logs/{winner}/promote")
    for _ in range(2):
        send(shared, view, "b", **{"Idempotency-Key": "blocked"})
    assert shared.values(view) == ["won", "b"]


def test_an_append_without_a_key_whose_outcome_nobody_knows_is_not_to_be_repeated(
    embedded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer waits for an object that is never stored."""
    embedded.create("orders")
    monkeypatch.setattr(embedded.embedded.host.storing, "_put", lambda *_: None)
    path, body = "/v1/logs/orders/records", {"records": [{"value": "a"}]}
    for headers, code, advice in (
        ({}, "outcome-unknown", "refresh"),
        (KEY, "deadline-exceeded", "retry"),
    ):
        timed = {"Deadline-Ms": "50", **headers}
        answer = embedded.client.post(path, json=body, headers=timed)
        assert (answer.status_code, answer.json()["code"]) == (504, code)
        assert answer.json()["advice"] == advice
        assert "Idempotency-Key" in answer.json()["detail"]
        assert ("Retry-After" in answer.headers) == (advice == "retry")


def refused_as_reused(answer: httpx.Response) -> bool:
    return (answer.status_code, answer.json()["code"]) == (422, "request-reused")


def test_a_key_that_is_used_again_for_other_records_is_refused(shared: Any, log: str) -> None:
    first = send(shared, log, "a")
    assert refused_as_reused(send(shared, log, "b"))
    assert refused_as_reused(send(shared, log, "a", "a"))
    path = f"/v1/logs/{log}/records"
    with_key = {"records": [{"value": "a", "key": "k"}]}
    assert refused_as_reused(shared.client.post(path, json=with_key, headers=KEY))
    as_base64 = {"records": [{"value": "YQ==", "encoding": "base64"}]}
    again = shared.client.post(path, json=as_base64, headers=KEY)
    assert (again.status_code, again.json()) == (201, first.json())
    lines = {**KEY, "content-type": "application/x-ndjson"}
    again = shared.client.post(path, content='{"value": "a"}\n', headers=lines)
    assert (again.status_code, again.json()) == (201, first.json())
    assert shared.values(log) == ["a"]


def test_a_key_that_is_used_again_for_another_change_is_refused(shared: Any, log: str) -> None:
    forks, body = f"/v1/logs/{log}/forks", {"name": "f", "why": "a reason"}
    first = shared.client.post(forks, json=body, headers=KEY)
    assert refused_as_reused(shared.client.post(forks, json={"name": "g"}, headers=KEY))
    spelled = {**KEY, "content-type": "application/json"}
    otherwise = '{ "why": "a\\u0020reason", "name": "f" }'
    again = shared.client.post(forks, content=otherwise, headers=spelled)
    assert (again.status_code, again.json()) == (201, first.json())
    shared.append(log, "a")
    trim = f"/v1/logs/{log}/trim"
    assert shared.client.post(trim, json={"before": 0}, headers=KEY).status_code == 204
    assert refused_as_reused(shared.client.post(trim, json={"before": 1}, headers=KEY))
    path = f"/v1/logs/{log}"
    refused = shared.client.delete(path, headers=KEY).json()["code"]
    assert refused == "log-has-forks"
    assert refused_as_reused(shared.client.delete(path, params={"force": True}, headers=KEY))


def test_a_key_has_at_most_two_hundred_characters(shared: Any, log: str) -> None:
    forks = f"/v1/logs/{log}/forks"
    longest, too_long = "ü" * 200, "ü" * 201
    for key, status in ((longest, 201), (too_long, 422)):
        header: Any = {"Idempotency-Key": key.encode()}
        assert shared.client.post(forks, json={"name": "f"}, headers=header).status_code == status
        assert send(shared, log, "a", **header).status_code == status
