"""Scan plans over HTTP: pages that cover a range, URLs of its bytes, and what is refused."""

from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from anabranch.core.limits import Limits
from anabranch.core.records.batch import split
from anabranch.core.records.record import decode
from anabranch.shell.authority.shared import SharedToken

NUMBERS = count()


@pytest.fixture
def log(shared: Any) -> str:
    """A root of this test's own, with three batches."""
    name = shared.create(f"planned-{next(NUMBERS)}", "a")
    shared.append(name, "b", "c")
    shared.append(name, "d")
    return name


def planned(served: Any, log: str, **body: Any) -> dict[str, Any]:
    answer = served.client.post(f"/v1/logs/{log}/plans", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def slices_of(served: Any, plan: dict[str, Any], limit: int = 1_000) -> list[dict[str, Any]]:
    """All pages of a plan."""
    found: list[dict[str, Any]] = []
    position = plan["start"]
    while position < plan["end"]:
        query = {"from": position, "limit": limit}
        page = served.client.get(f"/v1/plans/{plan['id']}/slices", params=query)
        assert page.status_code == 200, page.text
        assert 0 < len(page.json()["slices"]) <= limit
        found += page.json()["slices"]
        position = page.json()["next"]
    assert position == plan["end"]
    return found


def positions(slices: list[dict[str, Any]]) -> list[int]:
    return [each["first"] + ahead for each in slices for ahead in range(each["count"])]


def test_a_plan_without_a_range_is_of_all_that_is_settled(shared: Any, log: str) -> None:
    answer = shared.client.post(f"/v1/logs/{log}/plans")
    plan = answer.json()
    assert answer.headers["Location"] == f"/v1/plans/{plan['id']}"
    assert (plan["log"], plan["start"], plan["end"], plan["settled"]) == (log, 0, 4, 4)
    assert plan["expires_at"] == plan["created_at"] + 120_000
    assert plan in shared.client.get("/v1/plans").json()["plans"]


@pytest.mark.parametrize("limit", [1, 2, 1_000])
def test_pages_of_any_size_cover_the_range_once(shared: Any, log: str, limit: int) -> None:
    fork = shared.fork(log, "f")
    shared.append(fork, "e")
    found = slices_of(shared, planned(shared, fork, start=1, end=5), limit)
    assert positions(found) == [1, 2, 3, 4]
    assert [each["origin"]["log"] for each in found] == [*[log] * (len(found) - 1), fork]
    assert found[-1]["origin"]["position"] == 4


def test_urls_name_the_bytes_of_the_records(embedding: Any, tmp_path: Path) -> None:
    """Slices are sent back as they came, and a folder's URLs lead to its files."""
    with embedding(data=tmp_path / "log") as served:
        served.create("orders", "a", "b")
        served.append("orders", "c")
        plan = planned(served, "orders", start=1)
        slices = slices_of(served, plan)
        path = f"/v1/plans/{plan['id']}/signatures"
        signed = served.client.post(path, json={"slices": slices})
        assert signed.status_code == 200, signed.text
        assert signed.json()["valid_ms"] == 900_000
        places = signed.json()["ranges"]
        contents: dict[tuple[str, int], bytes] = {}
        for place in places:
            first, last = map(int, place["range"].removeprefix("bytes=").split("-"))
            assert (first, last + 1 - first) == (place["offset"], place["length"])
            file = Path(urlsplit(place["url"]).path).read_bytes()
            for at in range(first, last + 1):
                contents[place["object"], at] = file[at : at + 1]
        values: dict[int, bytes | None] = {}
        for each in slices:
            span = range(each["offset"], each["offset"] + each["length"])
            content = b"".join(contents[each["object"], at] for at in span)
            batches = [content[start:end] for start, end, _ in split(content)]
            records = [record for batch in batches for record in decode(batch)]
            meant = records[each["skip"] : each["skip"] + each["count"]]
            values |= {each["first"] + ahead: one.value for ahead, one in enumerate(meant)}
        assert values == {1: b"b", 2: b"c"}
        served.client.put("/v1/logs/orders/quota", json={"read_bytes_per_s": 1})
        assert served.client.post(path, json={"slices": slices}).status_code == 200
        over = served.refusal("POST", path, json={"slices": slices})
        assert over == (429, "quota-exceeded"), "what is signed is paid as a read"


def test_only_slices_of_the_plan_are_signed(shared: Any, log: str) -> None:
    plan, other = planned(shared, log), planned(shared, log)
    path = f"/v1/plans/{plan['id']}/signatures"
    (first, *_) = slices_of(shared, plan, 1)
    for changed in (
        {"offset": first["offset"] + 1},
        {"length": first["length"] + 1},
        {"object": first["object"][:-1] + str((int(first["object"][-1]) + 1) % 10)},
        {"seal": f"{int(first['seal'], 16) ^ 1:016x}"},
        {"seal": "f" * 16},
        {"seal": slices_of(shared, other, 1)[0]["seal"]},
    ):
        refused = shared.refusal("POST", path, json={"slices": [{**first, **changed}]})
        assert refused == (403, "not-sealed"), changed
    memory = shared.client.post(path, json={"slices": [first]})
    assert (memory.status_code, memory.json()["code"]) == (409, "not-fetchable")


def test_what_can_not_be_slices_is_refused_before_anything_is_looked_up(
    shared: Any, log: str
) -> None:
    plan = planned(shared, log)
    path = f"/v1/plans/{plan['id']}/signatures"
    (first, *_) = slices_of(shared, plan, 1)
    for slices in (
        [],
        [first] * 1_001,
        [{**first, "seal": first["seal"].upper() + "0"}],
        [{**first, "seal": int(first["seal"], 16)}],
        [{**first, "object": "x"}],
        [{**first, "object": f"not-{first['object']}"}],
        [{**first, "object": first["object"].replace("/data/", "/meta/")}],
        [{**first, "offset": -1}],
        [{**first, "length": 1 << 53}],
        [{**first, "url": "x"}],
        [first["object"]],
    ):
        assert shared.refusal("POST", path, json={"slices": slices}) == (422, "bad-request")
    padded = {"slices": [first], "padding": "x" * (512 << 10)}
    assert shared.refusal("POST", path, json=padded) == (413, "body-too-large")
    whole = shared.client.post(path, json={"slices": [first] * 1_000})
    assert whole.json()["code"] == "not-fetchable", "a request holds as many as may be signed"


def test_a_plan_lives_while_it_is_renewed_and_is_ended_once(shared: Any, log: str) -> None:
    plan = planned(shared, log, lease_ms=1_000, by="a job")
    path = f"/v1/plans/{plan['id']}"
    renewed = shared.client.post(f"{path}/renew", json={"lease_ms": 600_000})
    assert renewed.status_code == 200
    assert renewed.json()["expires_at"] > plan["expires_at"]
    assert {**renewed.json(), "expires_at": plan["expires_at"]} == plan
    by_default = shared.client.post(f"{path}/renew").json()
    assert by_default["expires_at"] == renewed.json()["expires_at"], "a renewal never shortens"
    for _ in range(2):
        ended = shared.client.delete(path)
        assert (ended.status_code, ended.content) == (204, b"")
    gone = shared.client.post(f"{path}/renew")
    assert (gone.status_code, gone.json()["code"]) == (410, "plan-ended")
    assert "ended by request" in gone.json()["detail"]
    assert shared.refusal("GET", f"{path}/slices?from=0") == (410, "plan-ended")
    assert plan["id"] not in [each["id"] for each in shared.client.get("/v1/plans").json()["plans"]]


def test_a_plan_outlives_its_log_and_pages_say_what_became_of_that(shared: Any, log: str) -> None:
    fork = shared.fork(log, "f")
    plan = planned(shared, fork)
    path = f"/v1/plans/{plan['id']}"
    shared.client.post(f"/v1/logs/{fork}/squash")
    assert shared.refusal("GET", f"{path}/slices?from=0") == (410, "squashed")
    assert shared.client.post(f"{path}/renew").status_code == 200
    assert shared.client.delete(path).status_code == 204
    outdated = planned(shared, log)
    shared.client.post(f"/v1/logs/{log}/trim", json={"before": 2})
    pages = f"/v1/plans/{outdated['id']}/slices"
    assert shared.refusal("GET", f"{pages}?from=0") == (409, "plan-outdated")
    assert positions(slices_of(shared, {**outdated, "start": 2})) == [2, 3]


def test_a_plan_is_made_once_under_its_key(shared: Any, log: str) -> None:
    path, key = f"/v1/logs/{log}/plans", {"Idempotency-Key": "scan"}
    first = shared.client.post(path, json={"start": 1}, headers=key)
    again = shared.client.post(path, json={"start": 1}, headers=key)
    assert (again.status_code, again.json()) == (201, first.json())
    reused = shared.refusal("POST", path, json={"start": 2}, headers=key)
    assert reused == (422, "request-reused")
    assert planned(shared, log, start=1)["id"] != first.json()["id"]


def test_ranges_and_leases_that_can_not_be_are_refused(shared: Any, log: str) -> None:
    def refusal(**body: Any) -> tuple[int, str]:
        return shared.refusal("POST", f"/v1/logs/{log}/plans", json=body)

    assert refusal(start=99) == (416, "out-of-range")
    assert refusal(start=3, end=2) == (416, "out-of-range")
    assert refusal(end=5) == (416, "out-of-range")
    assert refusal(lease_ms=600_001) == (422, "bad-request")
    assert refusal(lease_ms=0) == (422, "bad-request")
    assert refusal(by="x" * 1_001) == (422, "bad-request")
    assert refusal(speculative="yes") == (422, "bad-request")
    shared.fork(log, "try", promotable=True)
    shared.append(log, "unsettled")
    assert refusal(end=5) == (409, "read-blocked")
    assert planned(shared, log)["end"] == 4
    speculative = planned(shared, log, speculative=True)
    assert (speculative["end"], speculative["settled"]) == (5, 4)
    shared.client.post(f"/v1/logs/{log}--try/promote")
    path = f"/v1/plans/{speculative['id']}/slices?from=0"
    assert shared.refusal("GET", path) == (409, "plan-outdated")
    path = f"/v1/plans/{planned(shared, log)['id']}/slices"
    assert shared.refusal("GET", f"{path}?from=9") == (416, "out-of-range")
    for query in ("", "?from=0&limit=0", "?from=0&limit=5001"):
        assert shared.refusal("GET", f"{path}{query}") == (422, "bad-request")


@pytest.mark.parametrize(
    "id", ["x", "1", "1-", "1-0123456789ABCDEF", "-1-0123456789abcdef", "01-0123456789abcdef",
           "1-f123456789abcdef", "9999999999999999-0123456789abcdef", "1-0123456789abcdef0"]
)  # fmt: skip
def test_an_id_that_no_plan_can_have_is_the_callers_mistake(shared: Any, id: str) -> None:
    assert shared.refusal("DELETE", f"/v1/plans/{id}") == (422, "bad-request")
    assert shared.refusal("POST", f"/v1/plans/{id}/renew") == (422, "bad-request")


def test_a_plan_that_never_was_has_ended(shared: Any, log: str) -> None:
    plan = planned(shared, log)["id"]
    number, _, own = plan.partition("-")
    for id in (f"{number}-0123456789abcdef", f"{int(number) + 1}-{own}"):
        assert shared.refusal("POST", f"/v1/plans/{id}/renew") == (410, "plan-ended")
        assert shared.client.delete(f"/v1/plans/{id}").status_code == 204
    assert shared.client.post(f"/v1/plans/{plan}/renew").status_code == 200, "only one's own ends"


def test_plans_are_bounded(serving: Any) -> None:
    with serving(Limits(plans_per_log_max=1)) as served:
        served.create("orders", "a")
        plan = planned(served, "orders")
        refused = served.client.post("/v1/logs/orders/plans", json={}).json()
        assert (refused["code"], refused["facts"]["setting"]) == ("too-many", "plans_per_log_max")
        served.client.delete(f"/v1/plans/{plan['id']}")
        planned(served, "orders")


def test_logs_of_other_engines_have_no_plans_and_say_so(shared: Any) -> None:
    settings = {"shards": 1, "addresses": ["far:7440"], "cluster": "far"}
    asked = {"name": f"far-{next(NUMBERS)}", "engine": "belfast", "settings": settings}
    shared.client.post("/v1/logs", json=asked)
    answer = shared.client.post(f"/v1/logs/{asked['name']}/plans", json={}).json()
    assert answer["code"] == "wrong-engine"
    assert "these have no scan plans" in answer["detail"]


def test_plans_count_as_commands_of_their_client(
    embedding: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a command was answered is remembered for all clients together."""
    monkeypatch.setattr(SharedToken, "principal", lambda _authority, _token: "ann")
    with embedding(Limits(requests_max=800)) as served:
        served.create("orders", "a")
        answers = [served.client.post("/v1/logs/orders/plans", json={}) for _ in range(50)]
        assert {answer.status_code for answer in answers[:49]} == {201}
        assert answers[49].status_code == 429
        assert answers[49].json()["facts"]["what"] == "commands of this client"
