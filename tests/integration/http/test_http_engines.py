"""Records of Belfast and Erwin logs, and appends to lazy Bolt logs, over HTTP (decision 70)."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from anabranch import aio
from anabranch.core.limits import Limits

ENGINES = ["belfast", "erwin", "lazy"]


def created(served: Any, engine: str, name: str = "ticks", **settings: Any) -> str:
    """A log of one shard, or a Bolt log with lazy appends."""
    body = {"name": name, "engine": engine, "settings": settings}
    if engine == "lazy":
        body = {"name": name, "append": "lazy"}
    answer = served.client.post("/v1/logs", json=body)
    assert answer.status_code == 201, answer.text
    return name


def append(served: Any, log: str, *values: str, query: Any = None, **headers: str) -> Any:
    body = {"records": [{"value": value} for value in values]}
    path = f"/v1/logs/{log}/records"
    return served.client.post(path, json=body, params=query, headers=headers)


@pytest.mark.parametrize("engine", ENGINES)
def test_records_of_any_engine_are_appended_and_read(fronted: Any, engine: str) -> None:
    log = created(fronted, engine)
    assert append(fronted, log, "a", "b", query={"sync": True}).status_code == 201
    assert append(fronted, log, "c", query={"sync": True}).json()["position"] is not None
    assert fronted.values(log) == ["a", "b", "c"]
    page = fronted.client.get(f"/v1/logs/{log}/records").json()
    positions = [each["position"] for each in page["records"]]
    assert positions == sorted({*positions})
    assert page["start"] <= positions[0] < positions[-1] < page["next"] <= page["tail"]
    again = fronted.values(log, **{"from": positions[1]})
    assert again == ["b", "c"]
    assert fronted.values(log, limit=1) == ["a"]
    assert fronted.values(log, **{"from": page["tail"]}) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_read_that_waits_is_answered_by_the_next_append(embedded: Any, engine: str) -> None:
    log = created(embedded, engine)
    assert embedded.values(log, wait_ms=10) == []
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(embedded.values, log, wait_ms=30_000)
        append(embedded, log, "a")
        assert waiting.result() == ["a"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_read_in_lines_gives_all_that_is_there(embedded: Any, engine: str) -> None:
    log = created(embedded, engine)
    append(embedded, log, *map(str, range(300)), query={"sync": True})
    answer = embedded.client.get(
        f"/v1/logs/{log}/records", headers={"accept": "application/x-ndjson"}
    )
    assert answer.text.count("\n") == 300
    assert '"value":"299"' in answer.text.splitlines()[-1]


@pytest.mark.parametrize("engine", ["erwin", "lazy"])
def test_an_append_is_answered_before_its_position_is_bound(embedded: Any, engine: str) -> None:
    log = created(embedded, engine)
    answer = append(embedded, log, "a", **{"Idempotency-Key": "first"})
    assert answer.status_code == 202
    assert answer.json() == {"log": log, "count": 1, "position": None, "receipt": None}
    # The same append, now with its position.
    answer = append(embedded, log, "a", query={"sync": True}, **{"Idempotency-Key": "first"})
    assert (answer.status_code, answer.json()["position"]) == (201, 0)
    assert embedded.values(log) == ["a"]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_append_repeated_with_its_key_is_appended_once_and_has_one_position(
    fronted: Any, engine: str
) -> None:
    log = created(fronted, engine)
    query = {"sync": True} | ({"shard": "shard-0"} if engine == "belfast" else {})
    positions = {
        append(fronted, log, "a", "b", query=query, **{"Idempotency-Key": "k"}).json()["position"]
        for _ in range(3)
    }
    assert len(positions) == 1
    assert fronted.values(log) == ["a", "b"]
    other = append(fronted, log, "c", query=query, **{"Idempotency-Key": "k"})
    assert (other.status_code, other.json()["code"]) == (422, "request-reused")


def test_a_key_is_the_request_id_of_the_client(embedded: Any) -> None:
    log = created(embedded, "erwin")
    append(embedded, log, "a", **{"Idempotency-Key": "one"})

    async def repeated() -> None:
        async with aio.connect(embedded.embedded.frames) as service:
            await (await service.log(log, engine="erwin")).append(b"a", request_id="one")

    asyncio.run(repeated())
    assert embedded.values(log) == ["a"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_batch_is_taken_whole_or_not_at_all(embedding: Any, engine: str) -> None:
    with embedding(Limits(batch_bytes_max=4_096, record_bytes_max=2_048)) as served:
        log = created(served, engine)
        append(served, log, "a", query={"sync": True})
        large = append(served, log, *["x" * 1_000] * 6)
        assert (large.status_code, large.json()["code"]) == (413, "batch-too-large")
        assert served.values(log) == ["a"]


@pytest.mark.parametrize("engine", ENGINES)
def test_what_an_engine_lacks_is_refused_with_a_sentence(embedded: Any, engine: str) -> None:
    log = created(embedded, engine)
    numbers = {"Producer-Id": "7", "Producer-Sequence": "0"}
    refused = append(embedded, log, "a", **numbers).json()
    assert "takes no numbers of producers" in refused["detail"]
    refused = append(embedded, log, "a", query={"wait_ms": 10}).json()
    assert "Deadline-Ms" in refused["detail"]
    if engine == "belfast":
        keyed = append(embedded, log, "a", **{"Idempotency-Key": "k"}).json()
        assert "name one" in keyed["detail"]
    else:
        named = append(embedded, log, "a", query={"shard": "shard-0"}).json()
        assert "only the shards of Belfast logs" in named["detail"]
    if engine != "lazy":
        path = f"/v1/logs/{log}/records?from=2026-07-01T12:00:00Z"
        assert embedded.refusal("GET", path) == (409, "wrong-engine")
    assert embedded.values(log) == []
    assert embedded.refusal("GET", f"/v1/logs/{log}/records?from={1 << 40}") == (
        416,
        "out-of-range",
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_a_trim_leaves_the_rest(fronted: Any, engine: str) -> None:
    log = created(fronted, engine)
    append(fronted, log, "a", "b", query={"sync": True})
    _, second = fronted.client.get(f"/v1/logs/{log}/records").json()["records"]
    trim = {"before": second["position"]}
    assert fronted.client.post(f"/v1/logs/{log}/trim", json=trim).status_code == 204
    assert fronted.values(log) == ["b"]
    assert fronted.refusal("POST", f"/v1/logs/{log}/trim", json={"before": 1 << 40})[0] in (
        409,
        416,
    )


def test_a_lazy_log_is_created_over_http_and_its_forks_appended_to_directly(embedded: Any) -> None:
    body = {"name": "clicks", "append": "lazy", "settings": {"durability": "memory"}}
    front = {"sequencers": 1, "durability": "memory"}
    made = embedded.client.post("/v1/logs", json=body)
    assert (made.status_code, made.json()["front"]) == (201, front)
    assert embedded.client.get("/v1/logs/clicks").json()["front"] == front
    assert append(embedded, "clicks", "a", query={"sync": True}).json()["position"] == 0
    fork = embedded.fork("clicks", "try")
    assert append(embedded, fork, "b").json()["position"] == 1
    assert embedded.values(fork) == ["a", "b"]
    body = {"name": "ticks", "append": "lazy", "engine": "belfast"}
    assert embedded.refusal("POST", "/v1/logs", json=body) == (422, "bad-request")


def test_no_shard_of_a_bolt_log_can_be_named(embedded: Any) -> None:
    log = embedded.create("orders")
    answer = append(embedded, log, "a", query={"shard": "shard-0"})
    assert (answer.status_code, answer.json()["code"]) == (422, "bad-request")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_subscription_gives_what_is_there_and_what_comes(
    fronted: Any, subscribing: Any, engine: str
) -> None:
    log = created(fronted, engine)
    first = append(fronted, log, "a", query={"sync": True}).json()["position"]
    with subscribing(fronted, log, **{"from": first}) as events:
        (before,) = taken(events, 1)
        append(fronted, log, "b")
        (after,) = taken(events, 1)
    assert (before.data["value"], after.data["value"]) == ("a", "b")
    assert not before.data["speculative"]
    assert before.id is not None
    # The stream resumes where it broke off, as a browser asks for it.
    with subscribing(fronted, log, {"Last-Event-ID": before.id}) as events:
        assert events.next().name == "fail"
        (again,) = taken(events, 1)
    assert again.data["value"] == "b"


def taken(events: Any, count: int) -> list[Any]:
    """The next records, without what is told of them."""
    found: list[Any] = []
    while len(found) < count:
        event = events.next()
        if event.name == "deliver":
            found.append(event)
    return found


def test_a_belfast_log_gives_predicted_records_only_to_who_asks(
    embedded: Any, subscribing: Any
) -> None:
    log = created(embedded, "belfast")
    append(embedded, log, "a")
    with subscribing(embedded, log, speculative=True, **{"from": 0}) as events:
        append(embedded, log, "b")
        seen = [events.next() for _ in range(3)]
    guesses = [each for each in seen if each.name == "deliver" and each.data["speculative"]]
    assert all(each.id is None for each in guesses)
    confirmed = [each.data["up_to"] for each in seen if each.name == "confirm"]
    assert guesses or confirmed, "it was told ahead of its order, or at once with it"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_quota_of_appends_is_kept_over_http(embedded: Any, engine: str) -> None:
    log = created(embedded, engine)
    append(embedded, log, "a", query={"sync": True})
    quota = {"append_records_per_s": 1, "burst_ms": 1_000}
    assert embedded.client.put(f"/v1/logs/{log}/quota", json=quota).status_code == 200
    # What is owed after these isn't paid back before the deadline of the last one.
    asked = ({"Deadline-Ms": "2000"} for _ in range(10))
    answers = (append(embedded, log, *"aaaaaaaaaa", **each) for each in asked)
    answer = next(each for each in answers if not each.is_success)
    assert (answer.status_code, answer.json()["code"]) == (429, "quota-exceeded")
    assert answer.json()["facts"]["quota"] == "append_records_per_s"


def test_a_log_whose_nodes_nobody_reaches_is_unavailable(embedded: Any) -> None:
    log = created(embedded, "erwin", addresses=["127.0.0.1:1"], cluster="far")
    headers = {"Deadline-Ms": "300"}
    answer = embedded.client.get(f"/v1/logs/{log}/records", headers=headers)
    assert answer.status_code in (503, 504), answer.text
    answer = append(embedded, log, "a", **headers)
    assert answer.status_code in (503, 504), answer.text


def test_a_token_is_wanted_and_shown_to_the_nodes(embedding: Any) -> None:
    with embedding(token="secret") as served:
        log = created(served, "erwin")
        assert append(served, log, "a").is_success
        assert served.values(log) == ["a"]
        path = f"/v1/logs/{log}/records"
        answer = served.client.get(path, headers={"Authorization": "Bearer wrong"})
        assert answer.status_code == 401
