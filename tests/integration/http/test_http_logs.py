"""Logs, forks and cursors over HTTP: every verb, and what each refuses."""

import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from anabranch.core.limits import Limits
from anabranch.core.records.set_sum import combined

NUMBERS = count()
A_MOMENT_S = 60


@pytest.fixture
def log(shared: Any) -> str:
    """A root of this test's own, with three records."""
    return shared.create(f"log-{next(NUMBERS)}", "a", "b", "c")


def test_a_log_is_created_described_listed_and_deleted(served: Any) -> None:
    made = served.client.post("/v1/logs", json={"name": "orders", "by": "me", "why": "to sell"})
    assert made.status_code == 201
    assert made.headers["Location"] == "/v1/logs/orders"
    assert made.json()["why"] == "to sell"
    assert served.client.get(made.headers["Location"]).json() == made.json()
    assert served.client.get("/v1/logs").json() == {"logs": [made.json()], "next": None}
    assert served.client.delete("/v1/logs/orders").status_code == 204
    assert served.refusal("GET", "/v1/logs/orders") == (410, "squashed")
    assert served.refusal("GET", "/v1/logs/others") == (404, "unknown-log")


def test_a_log_is_not_created_twice_or_with_an_odd_name(shared: Any, log: str) -> None:
    assert shared.refusal("POST", "/v1/logs", json={"name": log}) == (409, "log-exists")
    for name in ("", "a b", "-a", "a--b", "a@b", "ä", "x" * 121, "a/b", "..", "\x00", "😀"):
        assert shared.refusal("POST", "/v1/logs", json={"name": name}) == (422, "bad-name")
    long = {"name": "long", "why": "x" * 1_001}
    assert shared.refusal("POST", "/v1/logs", json=long) == (422, "bad-request")


def test_a_log_created_again_with_the_same_key_is_the_same(shared: Any) -> None:
    key = {"Idempotency-Key": "create-once"}
    first = shared.client.post("/v1/logs", json={"name": "once"}, headers=key)
    again = shared.client.post("/v1/logs", json={"name": "once"}, headers=key)
    assert (again.status_code, again.json()) == (201, first.json())


def test_lists_go_on_where_they_ended(served: Any) -> None:
    for name in ("a", "b", "c", "other"):
        served.create(name)
    served.fork("a", "x")
    get = served.client.get
    names: list[str] = []
    after: str | None = ""
    while after is not None:
        page = get("/v1/logs", params={"limit": 2, "after": after}).json()
        names += [each["name"] for each in page["logs"]]
        after = page["next"]
    assert names == ["a", "a--x", "b", "c", "other"]
    of_tree = get("/v1/logs", params={"tree": "a"}).json()["logs"]
    assert [each["name"] for each in of_tree] == ["a", "a--x"]
    past = get("/v1/logs", params={"tree": "a", "after": "b"})
    assert (past.status_code, past.json()["logs"]) == (200, [])
    assert served.refusal("GET", "/v1/logs?tree=none") == (404, "unknown-log")
    of_prefix = get("/v1/logs", params={"prefix": "o"}).json()["logs"]
    assert [each["name"] for each in of_prefix] == ["other"]


def test_a_root_with_forks_goes_only_by_force(shared: Any, log: str) -> None:
    fork = shared.fork(log, "x")
    assert shared.refusal("DELETE", f"/v1/logs/{log}") == (409, "log-has-forks")
    assert shared.client.delete(f"/v1/logs/{log}?force=true").status_code == 204
    assert shared.refusal("GET", f"/v1/logs/{fork}") == (410, "squashed")


def test_a_tree_shows_each_fork_after_its_parent(shared: Any, log: str) -> None:
    a, b = shared.fork(log, "a"), shared.fork(log, "b", kind="severed")
    deep = shared.fork(a, "deep")
    for name in (log, deep):
        tree = shared.client.get(f"/v1/tree/{name}").json()
        assert [each["name"] for each in tree["logs"]] == [log, a, deep, b]
        assert [each["depth"] for each in tree["logs"]] == [0, 1, 2, 1]
        assert (tree["root"], tree["complete"]) == (log, True)
    assert shared.refusal("GET", "/v1/tree/none") == (404, "unknown-log")


def test_a_continuous_fork_receives_and_a_severed_one_does_not(shared: Any, log: str) -> None:
    view, cut = shared.fork(log, "view"), shared.fork(log, "cut", kind="severed", past=1)
    assert shared.append(view, "mine")["position"] == 3
    shared.append(log, "d")
    assert shared.values(f"{log}@view") == ["a", "b", "c", "mine", "d"]
    assert shared.values(cut) == ["a", "b"]
    assert shared.values(log) == ["a", "b", "c", "d"]
    found = shared.client.get(f"/v1/logs/{view}/records", params={"from": 3}).json()["records"]
    assert [each["origin"] for each in found] == [
        {"log": view, "position": 3},
        {"log": log, "position": 3},
    ]


def test_a_fork_says_who_made_it_why_and_until_when(shared: Any, log: str) -> None:
    body = {"name": "x", "by": "agent 7", "why": "what if", "ttl_s": 60.5, "promotable": True}
    made = shared.client.post(f"/v1/logs/{log}/forks", json=body)
    assert made.headers["Location"] == f"/v1/logs/{log}--x"
    fork = made.json()
    assert (fork["by"], fork["why"], fork["promotable"]) == ("agent 7", "what if", True)
    assert fork["expires_at"] == fork["created_at"] + 60_500
    named = shared.client.post(f"/v1/logs/{log}/forks", json={"promotable": True}).json()
    assert named["name"].startswith(f"{log}--fork-")


def test_a_fork_at_a_time_has_what_was_committed_before_it(shared: Any, log: str) -> None:
    records = shared.client.get(f"/v1/logs/{log}").json()
    long_ago = {"kind": "severed", "at": "2020-01-01T00:00:00Z", "name": "before"}
    path = f"/v1/logs/{log}/forks"
    assert shared.client.post(path, json=long_ago).json()["tail"] == 0
    far = {"kind": "severed", "at": records["created_at"] + 10**9, "name": "after"}
    assert shared.client.post(path, json=far).json()["tail"] == 3
    positions = f"/v1/logs/{log}/positions"
    for at, position in ((0, 0), ("2020-01-01T00:00:00+02:00", 0), ("2200-01-01T00:00:00Z", 3)):
        assert shared.client.get(positions, params={"at": at}).json() == {"position": position}


def test_forks_that_cannot_be_are_refused(shared: Any, log: str) -> None:
    def refusal(**body: Any) -> tuple[int, str]:
        return shared.refusal("POST", f"/v1/logs/{log}/forks", json=body)

    assert refusal(kind="severed", past=99) == (416, "out-of-range")
    assert refusal(kind="severed", promotable=True) == (422, "bad-request")
    assert refusal(kind="severed", past=1, at=0) == (422, "bad-request")
    assert refusal(past=1) == (422, "bad-request")
    assert refusal(kind="root") == (422, "bad-request")
    assert refusal(name="a b") == (422, "bad-name")
    assert refusal(ttl_s=1e9) == (422, "bad-request")
    shared.fork(log, "x", promotable=True)
    assert refusal(name="x", promotable=True) == (409, "log-exists")
    assert refusal(name="y") == (409, "fork-blocked")
    shared.append(log, "unsettled")
    assert refusal(kind="severed", name="z") == (409, "fork-blocked")
    assert shared.fork(log, "z", kind="severed", past=2) == f"{log}--z"


def test_promote_moves_the_records_and_squashes_the_others(shared: Any, log: str) -> None:
    winner, loser = (shared.fork(log, name, promotable=True) for name in ("winner", "loser"))
    shared.append(winner, "w")
    shared.append(loser, "l")
    path = f"/v1/logs/{winner}/records"
    known = [(each["id"], each["origin"]) for each in shared.client.get(path).json()["records"]]
    done = shared.client.post(f"/v1/logs/{winner}/promote")
    told = {"into": log, "fork_point": 3, "records": 1, "squashed": [loser], "cursors": []}
    assert done.json() == told
    assert shared.values(log) == ["a", "b", "c", "w"]
    moved = shared.client.get(f"/v1/logs/{log}/records").json()["records"]
    assert [(each["id"], each["origin"]) for each in moved] == known
    assert known[3][1] == {"log": winner, "position": 3}
    gone = shared.client.get(f"/v1/logs/{winner}")
    assert (gone.status_code, gone.json()["code"]) == (410, "promoted")
    assert gone.json()["facts"] == {"log": winner, "into": log}
    assert shared.refusal("POST", f"/v1/logs/{loser}/promote") == (410, "squashed")
    assert shared.refusal("POST", f"/v1/logs/{log}/promote") == (409, "not-promotable")


def test_a_fork_is_promoted_as_it_was_judged_or_not_at_all(shared: Any, log: str) -> None:
    fork = shared.fork(log, "judged", promotable=True)
    shared.append(fork, "a")
    seen = shared.client.get(f"/v1/logs/{fork}").json()["own_records"]
    shared.append(fork, "unseen")
    path = f"/v1/logs/{fork}/promote"
    refused = shared.client.post(path, json={"expect_own": seen})
    assert (refused.status_code, refused.json()["code"]) == (409, "fork-moved")
    assert refused.json()["facts"] == {"log": fork, "expected": 1, "found": 2}
    assert f"POST /v1/logs/{fork}/promote" in refused.json()["detail"]
    for wrong in ({"expect_own": -1}, {"expect_own": "2"}, {"expectOwn": 2}):
        assert shared.client.post(path, json=wrong).status_code == 422, wrong
    assert shared.client.post(path, json={"expect_own": 2}).json()["records"] == 2


@pytest.mark.parametrize("verb", ["promote", "squash", "delete"])
def test_what_takes_a_name_away_is_repeated_with_its_key_and_answers_as_first(
    shared: Any, log: str, verb: str
) -> None:
    fork = shared.fork(log, "x", promotable=True)
    method, path = ("DELETE", f"/v1/logs/{fork}")
    if verb != "delete":
        method, path = "POST", f"{path}/{verb}"
    key = {"Idempotency-Key": f"{verb} once"}
    first = shared.client.request(method, path, headers=key)
    again = shared.client.request(method, path, headers=key)
    assert first.is_success
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert shared.refusal(method, path, headers={"Idempotency-Key": "another"})[0] == 410
    assert shared.refusal(method, path)[0] == 410
    assert shared.refusal("POST", "/v1/logs/none/squash", headers=key) == (404, "unknown-log")


def test_a_key_is_remembered_over_a_restart(embedding: Any, tmp_path: Path) -> None:
    promote = {"url": "/v1/logs/orders--x/promote", "headers": {"Idempotency-Key": "1"}}
    with embedding(data=tmp_path / "log") as served:
        served.create("orders", "a")
        served.append(served.fork("orders", "x", promotable=True), "b")
        first = served.append("orders", "c", **{"Idempotency-Key": "2"})
        done = served.client.post(**promote).json()
    with embedding(data=tmp_path / "log") as served:
        assert served.client.post(**promote).json() == done
        assert first["position"] is None
        again = served.append("orders", "c", **{"Idempotency-Key": "2"})
        assert again == first, "the receipt that it was answered with"
        redeeming = {"receipt": again["receipt"]}
        place = served.client.post("/v1/receipts/redeem", json=redeeming).json()
        assert place == {"log": "orders", "position": 2}
        assert served.values("orders") == ["a", "b", "c"]


def test_a_key_keeps_a_refusal_unless_it_says_to_try_again(shared: Any, log: str) -> None:
    fork = shared.fork(log, "x", promotable=True)
    path, key = f"/v1/logs/{log}/forks", {"Idempotency-Key": "1"}
    blocked = (409, "fork-blocked")
    assert shared.refusal("POST", path, json={"name": "y"}, headers=key) == blocked
    shared.client.delete(f"/v1/logs/{fork}")
    assert shared.client.post(path, json={"name": "y"}, headers=key).status_code == 201
    taken, key = (409, "log-exists"), {"Idempotency-Key": "2"}
    assert shared.refusal("POST", path, json={"name": "y"}, headers=key) == taken
    shared.client.delete(f"/v1/logs/{log}--y")
    assert shared.refusal("POST", path, json={"name": "y"}, headers=key) == taken


def test_squash_says_who_and_roots_are_not_squashed(shared: Any, log: str) -> None:
    fork = shared.fork(log, "x")
    answer = shared.client.post(f"/v1/logs/{fork}/squash", json={"by": "the judge"})
    assert (answer.status_code, answer.content) == (204, b"")
    gone = shared.client.get(f"/v1/logs/{fork}").json()
    assert "by the judge" in gone["detail"]
    assert shared.refusal("POST", f"/v1/logs/{log}/squash") == (409, "is-root")


def test_trimmed_records_are_out_of_range_and_reading_begins_after_them(
    shared: Any, log: str
) -> None:
    assert shared.client.post(f"/v1/logs/{log}/trim", json={"before": 2}).status_code == 204
    assert shared.values(log) == ["c"]
    path = f"/v1/logs/{log}/records"
    assert shared.refusal("GET", path, params={"from": 1}) == (416, "out-of-range")
    trim = f"/v1/logs/{log}/trim"
    assert shared.refusal("POST", trim, json={"before": 9}) == (416, "out-of-range")


def test_a_diff_tells_what_each_has_alone(shared: Any, log: str) -> None:
    a, b = shared.fork(log, "a"), shared.fork(log, "b", kind="severed")
    shared.append(a, "only a")
    shared.append(log, "not in b")
    shared.append(b, "only b", "only b")
    told = {
        "since": 0,
        "shared": 3,
        "only_a": [{"first": 3, "end": 5}],
        "only_b": [{"first": 3, "end": 5}],
        "trimmed_a": [],
        "trimmed_b": [],
        "complete": True,
        "next": None,
    }
    assert shared.client.get(f"/v1/logs/{a}/diff/{b}").json() == told
    assert shared.client.post(f"/v1/logs/{b}/trim", json={"before": 2}).status_code == 204
    trimmed = told | {"since": 2, "trimmed_a": [{"first": 0, "end": 2}]}
    assert shared.client.get(f"/v1/logs/{a}/diff/{b}").json() == trimmed
    assert shared.refusal("GET", f"/v1/logs/{a}/diff/none") == (404, "unknown-log")


def test_the_set_sum_of_a_range_is_that_of_its_batches(shared: Any, log: str) -> None:
    """Computed anew from what a read gives, whatever its positions."""
    path = f"/v1/logs/{log}/sum"
    whole = shared.client.get(path).json()
    assert (whole["start"], whole["end"], whole["summed"], whole["unsummed"]) == (0, 3, 3, [])
    shared.append(log, "later")
    part = shared.client.get(path, params={"from": 3}).json()
    assert (part["start"], part["end"], part["summed"]) == (3, 4, 1)
    both = shared.client.get(path, params={"to": 4}).json()
    assert both["sum"] == combined([whole["sum"], part["sum"]])
    assert shared.refusal("GET", path, params={"to": 9}) == (416, "out-of-range")


def test_a_cursor_is_put_read_and_deleted(shared: Any, log: str) -> None:
    path = f"/v1/logs/{log}/cursors"
    client = shared.client
    assert shared.refusal("GET", f"{path}/billing") == (404, "unknown-cursor")
    assert client.put(f"{path}/billing", json={"position": 2}).json() == {"position": 2}
    stays = {"position": 2, "on_promote": "stay"}
    assert client.get(f"{path}/billing").json() == stays
    told = {"cursors": {"billing": 2}, "on_promote": {"billing": "stay"}}
    assert client.get(path).json() == told
    assert client.delete(f"{path}/billing").status_code == 204
    assert client.delete(f"{path}/billing").status_code == 204
    assert client.get(path).json() == {"cursors": {}, "on_promote": {}}
    assert shared.refusal("PUT", f"{path}/x", json={"position": 4}) == (416, "out-of-range")
    assert shared.refusal("PUT", f"{path}/x y", json={"position": 1}) == (422, "bad-name")


def test_cursors_follow_a_promoted_fork_or_end_with_it(shared: Any, log: str) -> None:
    fork = shared.fork(log, "tried", promotable=True)
    shared.append(fork, "new")
    client = shared.client
    for name, body in (
        ("billing", {"position": 4}),
        ("draft", {"position": 4, "on_promote": "stay"}),
    ):
        assert client.put(f"/v1/logs/{fork}/cursors/{name}", json=body).status_code == 200
    wrong = {"position": 1, "on_promote": "jump"}
    put = f"/v1/logs/{fork}/cursors/billing"
    assert shared.refusal("PUT", put, json=wrong) == (422, "bad-request")
    assert client.post(f"/v1/logs/{fork}/promote").json()["cursors"] == ["billing"]
    assert client.get(f"/v1/logs/{log}/cursors").json()["cursors"] == {"billing": 4}


def test_a_quota_holds_says_when_to_come_again_and_can_be_lifted(shared: Any, log: str) -> None:
    client, path = shared.client, f"/v1/logs/{log}/quota"
    asked = {"append_records_per_s": 1}
    told = {**asked, "append_bytes_per_s": None, "read_bytes_per_s": None, "burst_ms": 1_000}
    assert client.put(path, json=asked).json()["quota"] == told
    assert client.get(f"/v1/logs/{log}").json()["quota"] == told
    fork = shared.fork(log, "same")
    assert client.get(f"/v1/logs/{fork}").json()["quota"] == told
    own = shared.fork(log, "own", quota={"read_bytes_per_s": 7})
    assert client.get(f"/v1/logs/{own}").json()["quota"]["read_bytes_per_s"] == 7
    shared.append(log, "the broker learns of it")
    shared.append(log, *["more than an hour's worth"] * 4_000)
    body = {"records": [{"value": "late"}]}
    answer = client.post(f"/v1/logs/{log}/records", json=body)
    assert (answer.status_code, answer.json()["code"]) == (429, "quota-exceeded")
    facts = answer.json()["facts"]
    assert (facts["log"], facts["quota"]) == (log, "append_records_per_s")
    assert int(answer.headers["Retry-After"]) == -(-facts["retry_after_ms"] // 1_000) > 1_000
    assert client.put(path, json={}).json()["quota"] is None
    until = time.monotonic() + A_MOMENT_S
    while (answer := client.post(f"/v1/logs/{log}/records", json=body)).status_code == 429:
        assert time.monotonic() < until
    assert answer.json()["position"] == 4_004
    for wrong in ({"append_bytes_per_s": 0}, {"burst_ms": 0}, {"append_byte_per_s": 1}):
        assert shared.refusal("PUT", path, json=wrong) == (422, "bad-request")


def test_reads_over_quota_are_refused_until_what_was_read_is_paid(shared: Any, log: str) -> None:
    shared.client.put(f"/v1/logs/{log}/quota", json={"read_bytes_per_s": 1})
    assert len(shared.values(log)) == 3
    read = f"/v1/logs/{log}/records"
    assert shared.refusal("GET", read) == (429, "quota-exceeded")
    shared.append(log, "appends go on")


def test_structural_limits_are_told_with_their_names(serving: Any) -> None:
    limits = Limits(forks_per_log_max=1, cursors_per_log_max=1, logs_max=2)
    with serving(limits) as served:
        served.create("a")
        served.fork("a", "x")
        put = "/v1/logs/a/cursors/{}"
        served.client.put(put.format("one"), json={"position": 0})
        for method, path, body, setting in (
            ("POST", "/v1/logs", {"name": "b"}, "logs_max"),
            ("PUT", put.format("two"), {"position": 0}, "cursors_per_log_max"),
        ):
            answer = served.client.request(method, path, json=body).json()
            assert (answer["code"], answer["facts"]["setting"]) == ("too-many", setting)
        served.client.delete("/v1/logs/a--x")
        served.create("b")
        assert served.refusal("POST", "/v1/logs/a/forks", json={}) == (409, "too-many")


def test_a_log_of_another_engine_is_shown_without_what_only_its_nodes_know(
    served: Any,
) -> None:
    settings = {"shards": 2, "addresses": ["far:7440"], "cluster": "far"}
    asked = {"name": "ticks", "engine": "belfast", "settings": settings}
    made = served.client.post("/v1/logs", json=asked).json()
    one = {"replicas": 1, "sequencers": 1, "embedded": False}
    none = {"mode": "", "durability": "", "black_box": ""}
    assert (made["engine"], made["settings"]) == ("belfast", settings | one | none)
    assert served.client.get("/v1/logs/ticks").json() == made
    assert served.client.get("/v1/logs").json()["logs"] == [made]
    (in_tree,) = served.client.get("/v1/tree/ticks").json()["logs"]
    for shown in (made, in_tree):
        unknown = [shown[each] for each in ("start", "tail", "settled", "own_records")]
        assert unknown == [None] * 4, "only its own nodes know"
    fork = served.client.post("/v1/logs/ticks/forks", json={}).json()["detail"]
    assert fork == (
        "ticks is a log of the belfast engine, and these have no forks: only bolt logs have, "
        "which POST /v1/logs makes"
    )
    cursor = served.client.put("/v1/logs/ticks/cursors/me", json={"position": 0}).json()["detail"]
    assert "these have no cursors" in cursor
