"""Subscriptions as server-sent events: speculation, decisions, resuming, and their end."""

from itertools import count
from typing import Any

import httpx
import pytest

from anabranch.apps.http.context import FrontSettings
from anabranch.core.limits import Limits

NUMBERS = count()


@pytest.fixture
def log(shared: Any) -> str:
    return shared.create(f"log-{next(NUMBERS)}", "a", "b")


def test_records_are_delivered_as_they_come(shared: Any, subscribing: Any, log: str) -> None:
    with subscribing(shared, log, **{"from": 1}) as events:
        assert events.take(1) == [("final", "2", (1, "b"))]
        shared.append(log, "c", "d\n")
        assert events.take(2) == [("final", "3", (2, "c")), ("final", "4", (3, "d\n"))]
    with subscribing(shared, log) as events:
        shared.append(log, "new")
        event = events.next()
    id = shared.client.get(f"/v1/logs/{log}").json()["id"]
    assert (event.name, event.id) == ("deliver", f"{id}:5")
    assert event.data["origin"] == {"log": log, "position": 4}
    with subscribing(shared, log, encoding="base64", **{"from": 0}) as events:
        assert events.next().data["value"] == "YQ=="


def test_a_fork_that_is_squashed_confirms_what_was_speculative(
    shared: Any, subscribing: Any, log: str
) -> None:
    fork = shared.fork(log, "try", promotable=True)
    with subscribing(shared, log, **{"from": 1}) as events:
        shared.append(log, "c")
        assert events.take(2) == [("final", "2", (1, "b")), ("guess", None, (2, "c"))]
        shared.client.post(f"/v1/logs/{fork}/squash")
        assert events.take(1) == [("confirm", "3", 3)]
        shared.append(log, "d")
        assert events.take(1) == [("final", "4", (3, "d"))]


def test_a_fork_that_is_promoted_fails_what_was_speculative_and_it_comes_anew(
    shared: Any, subscribing: Any, log: str
) -> None:
    fork = shared.fork(log, "try", promotable=True)
    with subscribing(shared, log, **{"from": 2}) as events:
        shared.append(fork, "won")
        shared.append(log, "c")
        assert events.take(1) == [("guess", None, (2, "c"))]
        shared.client.post(f"/v1/logs/{fork}/promote")
        assert events.take(3) == [
            ("fail", "2", 2),
            ("final", "3", (2, "won")),
            ("final", "4", (3, "c")),
        ]


def test_without_speculation_a_subscriber_waits_for_the_decision(
    shared: Any, subscribing: Any, log: str
) -> None:
    fork = shared.fork(log, "try", promotable=True)
    shared.append(log, "c")
    with subscribing(shared, log, speculative="false", **{"from": 1}) as events:
        assert events.take(1) == [("final", "2", (1, "b"))]
        shared.client.post(f"/v1/logs/{fork}/squash")
        assert events.take(1) == [("final", "3", (2, "c"))]


def test_a_subscriber_resumes_at_the_last_event_id_having_forgotten_what_was_open(
    shared: Any, subscribing: Any, log: str
) -> None:
    fork = shared.fork(log, "try", promotable=True)
    shared.append(log, "c")
    with subscribing(shared, log, **{"from": 0}) as events:
        *_, final, guess = events.take(3)
        assert (final[1], guess) == ("2", ("guess", None, (2, "c")))
    shared.append(fork, "won")
    shared.client.post(f"/v1/logs/{fork}/promote")
    id = shared.client.get(f"/v1/logs/{log}").json()["id"]
    with subscribing(shared, log, {"Last-Event-ID": f"{id}:2"}, **{"from": 0}) as events:
        assert events.take(3) == [
            ("fail", "2", 2),
            ("final", "3", (2, "c")),
            ("final", "4", (3, "won")),
        ]


def test_what_cannot_be_subscribed_to_is_refused_before_the_stream(shared: Any, log: str) -> None:
    path = f"/v1/logs/{log}/subscribe"
    assert shared.refusal("GET", path, params={"from": 3}) == (416, "out-of-range")
    assert shared.refusal("GET", "/v1/logs/none/subscribe") == (404, "unknown-log")
    for id in ("x", "-1", "2", "1:", "1:-1", "1:1.5", "1:2:3", f"1:{1 << 53}0", "x" * 81):
        refusal = shared.refusal("GET", path, headers={"Last-Event-ID": id})
        assert refusal == (422, "bad-request")


def test_an_event_of_a_log_that_is_gone_is_not_resumed_in_another_of_its_name(
    shared: Any, subscribing: Any, log: str
) -> None:
    fork = shared.fork(log, "try")
    with subscribing(shared, fork, **{"from": 0}) as events:
        event = events.next()
    resume = {"Last-Event-ID": event.id}
    with subscribing(shared, fork, resume) as events:
        assert events.next().id == event.id
    shared.client.post(f"/v1/logs/{fork}/squash")
    path = f"/v1/logs/{fork}/subscribe"
    assert shared.refusal("GET", path, headers=resume) == (410, "squashed")
    shared.fork(log, "try")
    assert shared.refusal("GET", path, headers=resume) == (410, "event-of-another-log")
    with subscribing(shared, fork, **{"from": 1}) as events:
        assert events.next().data["position"] == 1


def test_the_end_of_a_log_ends_its_subscriptions_and_says_why(
    shared: Any, subscribing: Any, log: str
) -> None:
    fork = shared.fork(log, "try", promotable=True)
    with subscribing(shared, fork, **{"from": 1}) as events:
        assert events.take(1) == [("final", "2", (1, "b"))]
        shared.client.post(f"/v1/logs/{fork}/promote")
        event = events.next()
        assert (event.name, event.data["code"]) == ("ended", "promoted")
        assert event.data["facts"]["into"] == log
        with pytest.raises(EOFError):
            events.next()


def test_a_subscription_over_the_limit_ends_with_the_reason(
    embedding: Any, subscribing: Any
) -> None:
    with embedding(Limits(subscriptions_max=1)) as served:
        log = served.create("orders", "a")
        with subscribing(served, log, **{"from": 0}) as first:
            first.next()
            with subscribing(served, log) as second:
                event = second.next()
    assert (event.name, event.data["code"]) == ("ended", "overloaded")


def test_a_silent_subscription_says_that_it_is_alive(serving: Any, subscribing: Any) -> None:
    with serving(front=FrontSettings(heartbeat_ms=20)) as served:
        log = served.create()
        path = f"/v1/logs/{log}/subscribe"
        with served.client.stream("GET", path) as answer:
            lines = answer.iter_lines()
            assert [next(lines) for _ in range(4)] == [": alive", "", ": alive", ""]
        with subscribing(served, log) as events:
            for value in ("x", "y"):
                served.append(log, value)
                assert events.next().data["value"] == value
                events.pass_comment()


def test_a_subscriber_that_goes_leaves_nothing_behind(embedded: Any) -> None:
    log = embedded.create("orders", "a")

    path = f"{embedded.url}/v1/logs/{log}/subscribe?from=0"
    with httpx.stream("GET", path) as answer:
        lines = answer.iter_lines()
        next(lines)
        assert embedded.gauge("subscriptions") == 1
    while embedded.gauge("subscriptions") > 0:
        pass
