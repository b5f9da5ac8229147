"""The CRDs on a real API server: what it takes, what it refuses, what it shows."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.kubernetes.api_server import ApiServer, Refused
from tests.operator import declared, declared_belfast, declared_erwin, declared_lazy
from tests.operator.declared import Case, Change
from tests.operator.installed import install, until, until_served

from anabranch_operator.api import names
from anabranch_operator.api.generate.crd import KINDS, crd, whole
from anabranch_operator.api.rules import RULES, WHOLE

Document = dict[str, Any]

TAKEN = {
    **declared.TAKEN,
    **declared_belfast.TAKEN,
    **declared_erwin.TAKEN,
    **declared_lazy.TAKEN,
}
REFUSED = {
    **declared.REFUSED,
    **declared_belfast.REFUSED,
    **declared_erwin.REFUSED,
    **declared_lazy.REFUSED,
}
CHANGED = {
    **declared.CHANGED,
    **declared_belfast.CHANGED,
    **declared_erwin.CHANGED,
    **declared_lazy.CHANGED,
}


@pytest.fixture(scope="module")
def home(resources: ApiServer) -> str:
    """A namespace for objects that aren't kept."""
    return resources.namespace("declared")


def path(kind: str, namespace: str, name: str = "") -> str:
    home = f"/apis/{names.API_VERSION}/namespaces/{namespace}/{names.PLURALS[kind]}"
    return f"{home}/{name}" if name else home


def document(kind: str, name: str, spec: Document, **more: Any) -> Document:
    meta = {"name": name}
    return {"apiVersion": names.API_VERSION, "kind": kind, "metadata": meta, "spec": spec, **more}


def make(server: ApiServer, namespace: str, kind: str, name: str, spec: Document) -> Document:
    return server.ask("POST", path(kind, namespace), document(kind, name, spec))


def tell(server: ApiServer, namespace: str, kind: str, name: str, **status: Any) -> Document:
    """As the operator writes a status."""
    given = {"apiVersion": names.API_VERSION, "kind": kind, "metadata": {"name": name}}
    where = path(kind, namespace, f"{name}/status")
    return server.apply(where, {**given, "status": status}, names.STATUS_MANAGER)


def condition(status: str, reason: str, generation: int = 1) -> Document:
    return {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": "told by a test",
        "lastTransitionTime": "2026-03-01T12:00:00Z",
        "observedGeneration": generation,
    }


def dry(server: ApiServer, namespace: str, case: Case) -> Document:
    where = path(case.kind, namespace) + "?dryRun=All&fieldValidation=Strict"
    return server.ask("POST", where, document(case.kind, case.name, case.spec))


@pytest.mark.parametrize("case", TAKEN.values(), ids=TAKEN)
def test_what_is_sound_is_taken(resources: ApiServer, home: str, case: Case) -> None:
    assert dry(resources, home, case)["metadata"]["uid"]


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_is_not_is_refused_and_told_why(resources: ApiServer, home: str, case: Case) -> None:
    with pytest.raises(Refused) as refused:
        dry(resources, home, case)
    assert refused.value.code == 422
    assert case.refusal in str(refused.value)


@pytest.mark.parametrize(("name", "change"), CHANGED.items(), ids=CHANGED)
def test_what_may_be_changed_and_what_not(
    resources: ApiServer, home: str, name: str, change: Change
) -> None:
    made = make(resources, home, change.kind, name, change.before)
    meta = {"name": name, "resourceVersion": made["metadata"]["resourceVersion"]}
    changed = document(change.kind, name, change.after) | {"metadata": meta}
    if not change.refusal:
        answer = resources.ask("PUT", path(change.kind, home, name), changed)
        assert answer["metadata"]["generation"] == 2
        return
    with pytest.raises(Refused) as refused:
        resources.ask("PUT", path(change.kind, home, name), changed)
    assert refused.value.code == 422
    assert change.refusal in str(refused.value)


def test_every_rule_is_tried() -> None:
    said = [case.refusal for case in (*REFUSED.values(), *CHANGED.values()) if case.refusal]
    rules = [rule for each in (*RULES.values(), *WHOLE.values()) for rule in each]
    untried = {rule.message for rule in rules if not any(text in rule.message for text in said)}
    assert untried == set()
    assert len(TAKEN) + len(REFUSED) + len(CHANGED) > 100


def test_an_unknown_field_is_named(resources: ApiServer, home: str) -> None:
    spec = {"parent": {"name": "orders"}, "promoteable": True}
    with pytest.raises(Refused, match=r'unknown field "spec.promoteable"'):
        dry(resources, home, Case(names.FORK, spec))


def test_defaults_are_seen(resources: ApiServer, home: str) -> None:
    fork = make(resources, home, names.FORK, "plain", {"parent": {"name": "orders"}})
    assert fork["spec"] == {
        "parent": {"kind": "Log", "name": "orders"},
        "type": "Continuous",
        "promotable": False,
        "isolation": "Pooled",
        "protected": False,
        "onParentDelete": "Orphan",
        "deletionPolicy": "Squash",
        "adopt": False,
        "state": "Active",
        "approved": False,
        "promotion": {"policy": "Manual"},
    }
    bare = {"apiVersion": names.API_VERSION, "kind": names.LOG, "metadata": {"name": "bare"}}
    log = resources.ask("POST", path(names.LOG, home), bare)
    assert (log["spec"]["engine"], log["spec"]["deletionPolicy"]) == ("bolt", "Retain")
    pool = make(resources, home, names.POOL, "plain", {"image": "anabranch"})
    assert (pool["spec"]["min"], pool["spec"]["max"], pool["spec"]["spare"]) == (2, 8, 1)
    assert pool["spec"]["rollout"] == {"policy": "Auto"}
    assert "replicas" not in pool["spec"]


COLUMNS = {
    names.LOG: (
        "NAME   ENGINE PHASE TAIL FORKS BROKER READY AGE",
        "orders bolt   Ready 120  2     demo-a True  @",
    ),
    names.FORK: (
        "NAME    PARENT KIND       AT PHASE   BROKER LAG READY AGE",
        "before  orders Severed    42 Ready   demo-b 78  True  @",
        "what-if orders Continuous    Pending            False @",
    ),
    names.POOL: (
        "NAME DESIRED READY SPARE UPDATED WAITING AGE",
        "demo 3       2     1     2       4       @",
    ),
    names.SEQUENCERS: (
        "NAME   LEADER             VIEW MEMBERS STABLE BACKLOG READY AGE",
        "orders orders-sequencer-1 7    3       120    4       True  @",
    ),
    names.SHARDS: (
        "NAME   SHARDS DESIRED WINDOW SPEC% READY AGE",
        "orders 3      2       118    99    True  @",
    ),
}
WIDE = (
    "NAME PARENT KIND AT PHASE BROKER LAG READY REASON OWN EXPIRES ENDPOINT AGE",
    (
        "before orders Severed 42 Ready demo-b 78 True Serving 3 2026-03-02T00:00:00Z "
        "anabranch://fork-before.a.svc:7420 @"
    ),
    "what-if orders Continuous Pending False ParentMissing @",
)


def words(lines: tuple[str, ...]) -> list[list[str]]:
    return [line.split() for line in lines]


def shown(server: ApiServer, namespace: str, *what: str) -> list[list[str]]:
    """The cells of each line, with the age left open."""
    text = server.kubectl("-n", namespace, "get", *what)
    return [re.sub(r"\b\d+[smhd]\d*s?$", "@", line.rstrip()).split() for line in text.splitlines()]


@pytest.fixture(scope="module")
def told(resources: ApiServer) -> str:
    """A namespace whose objects have statuses."""
    space = resources.namespace("told")
    orders = {"name": "orders"}
    make(resources, space, names.LOG, "orders", {})
    make(resources, space, names.FORK, "before", {"parent": orders, "type": "Severed"})
    make(resources, space, names.FORK, "what-if", {"parent": orders})
    make(resources, space, names.POOL, "demo", {"image": "anabranch"})
    ready = [condition("True", "Serving")]
    log = {"phase": "Ready", "tail": 120, "forks": 2, "broker": "demo-a"}
    tell(resources, space, names.LOG, "orders", **log, conditions=ready, observedGeneration=1)
    fork = {"phase": "Ready", "forkPoint": 42, "lag": 78, "ownRecords": 3, "broker": "demo-b"}
    where = {"endpoint": "anabranch://fork-before.a.svc:7420", "expiresAt": "2026-03-02T00:00:00Z"}
    tell(resources, space, names.FORK, "before", **fork, **where, conditions=ready)
    missing = [condition("False", "ParentMissing")]
    tell(resources, space, names.FORK, "what-if", phase="Pending", conditions=missing)
    pool = {"desired": 3, "ready": 2, "spare": 1, "updated": 2, "waiting": 4, "replicas": 3}
    tell(resources, space, names.POOL, "demo", **pool, selector="anabranch.dev/pool=demo")
    storage = {"volumeClaim": {"size": "1Gi"}}
    group = {"image": "anabranch", "storage": storage}
    make(resources, space, names.SEQUENCERS, "orders", group)
    make(resources, space, names.SHARDS, "orders", {**group, "sequencers": "orders"})
    led = {"leader": "orders-sequencer-1", "view": 7, "members": 3, "confirmed": 120, "backlog": 4}
    told = [condition("True", "Leading")]
    tell(resources, space, names.SEQUENCERS, "orders", **led, conditions=told)
    seated = {"shards": 3, "seated": 2, "window": 118, "speculation": 99}
    told = [condition("True", "Seated")]
    tell(resources, space, names.SHARDS, "orders", **seated, conditions=told)
    return space


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_answer_what_is_asked_at_night(resources: ApiServer, told: str, kind: str) -> None:
    assert shown(resources, told, names.PLURALS[kind]) == words(COLUMNS[kind])


def test_wide_columns_tell_why_and_where(resources: ApiServer, told: str) -> None:
    assert shown(resources, told, "forks", "-o", "wide") == words(WIDE)


@pytest.mark.parametrize("short", ["alog", "fk", "bp", "seq", "sg"])
def test_short_names_and_the_category_find_them(
    resources: ApiServer, told: str, short: str
) -> None:
    found = resources.kubectl("-n", told, "get", short, "-o", "name").split()
    every = resources.kubectl("-n", told, "get", names.CATEGORY, "-o", "name").split()
    assert found
    assert set(found) <= set(every)
    assert len(every) == 6


def test_forks_are_found_by_their_parent_and_phase(resources: ApiServer, told: str) -> None:
    chosen = "--field-selector=spec.parent.name=orders,status.phase=Ready"
    found = resources.kubectl("-n", told, "get", "forks", chosen, "-o", "name")
    assert found.split() == ["fork.anabranch.dev/before"]


def test_a_fork_that_is_ready_ends_a_wait(resources: ApiServer, told: str) -> None:
    waited = ("-n", told, "wait", "--for=condition=Ready")
    resources.kubectl(*waited, "fork/before", "--timeout=60s")
    with pytest.raises(Refused, match="condition not met"):
        resources.kubectl(*waited, "fork/what-if", "--timeout=0")


def test_what_was_ready_before_a_change_does_not_end_a_wait(
    resources: ApiServer, home: str
) -> None:
    make(resources, home, names.LOG, "changing", {})
    ready = [condition("True", "Serving")]
    tell(resources, home, names.LOG, "changing", conditions=ready, observedGeneration=1)
    waited = ("-n", home, "wait", "--for=condition=Ready", "log/changing")
    resources.kubectl(*waited, "--timeout=60s")
    changed = '{"spec":{"retention":{"records":5}}}'
    resources.kubectl("-n", home, "patch", "log/changing", "--type=merge", "-p", changed)
    with pytest.raises(Refused, match="condition not met"):
        resources.kubectl(*waited, "--timeout=0")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"reason": None}, "reason"),
        ({"reason": "two words"}, "reason in body should match"),
        ({"status": "yes"}, 'supported values: "True", "False", "Unknown"'),
        ({"lastTransitionTime": "yesterday"}, "date-time"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_condition_that_says_too_little_is_refused(
    resources: ApiServer, told: str, wrong: Document, words: str
) -> None:
    said = {**condition("True", "Serving"), **wrong}
    with pytest.raises(Refused) as refused:
        tell(resources, told, names.FORK, "before", conditions=[said])
    assert words in str(refused.value)


def test_two_managers_tell_of_conditions_of_their_own(resources: ApiServer, home: str) -> None:
    make(resources, home, names.LOG, "shared", {})
    tell(resources, home, names.LOG, "shared", conditions=[condition("True", "Serving")])
    other = {**condition("False", "Running"), "type": "Audited"}
    given = {"apiVersion": names.API_VERSION, "kind": names.LOG, "metadata": {"name": "shared"}}
    where = path(names.LOG, home, "shared/status")
    answer = resources.apply(where, {**given, "status": {"conditions": [other]}}, "an-auditor")
    assert [each["type"] for each in answer["status"]["conditions"]] == ["Ready", "Audited"]


def test_a_pool_is_scaled_within_its_bounds(resources: ApiServer, home: str) -> None:
    make(resources, home, names.POOL, "scaled", {"image": "anabranch", "max": 5})
    tell(resources, home, names.POOL, "scaled", replicas=2, selector="anabranch.dev/pool=scaled")
    resources.kubectl("-n", home, "scale", "brokerpool/scaled", "--replicas=4")
    scale = resources.ask("GET", path(names.POOL, home, "scaled/scale"))
    assert scale["spec"] == {"replicas": 4}
    assert scale["status"] == {"replicas": 2, "selector": "anabranch.dev/pool=scaled"}
    with pytest.raises(Refused, match="replicas lies between min and max: move those first"):
        resources.kubectl("-n", home, "scale", "brokerpool/scaled", "--replicas=6")


def test_shards_are_scaled_by_the_number_of_shards(resources: ApiServer, home: str) -> None:
    """Pods aren't what is counted: a shard has copies."""
    spec = {"image": "anabranch", "sequencers": "orders", "storage": {"ephemeral": True}}
    make(resources, home, names.SHARDS, "scaled", spec)
    selector = "anabranch.dev/role=shard,anabranch.dev/shards=scaled"
    tell(resources, home, names.SHARDS, "scaled", shards=2, selector=selector)
    resources.kubectl("-n", home, "scale", "shardgroup/scaled", "--replicas=4")
    scale = resources.ask("GET", path(names.SHARDS, home, "scaled/scale"))
    assert scale["spec"] == {"replicas": 4}
    assert scale["status"] == {"replicas": 2, "selector": selector}
    resources.kubectl("-n", home, "scale", "shardgroup/scaled", "--replicas=0")
    scale = resources.ask("GET", path(names.SHARDS, home, "scaled/scale"))
    assert scale["spec"].get("replicas", 0) == 0
    with pytest.raises(Refused, match="less than or equal to 100"):
        resources.kubectl("-n", home, "scale", "shardgroup/scaled", "--replicas=101")


def within(schema: Document, where: str = "") -> Iterator[tuple[str, str]]:
    """Every field's path and description."""
    for name, each in schema.get("properties", {}).items():
        if "description" in each:
            yield f"{where}.{name}", each["description"]
        yield from within(each, f"{where}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from within(schema[key], f"{where}[]")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_explain_knows_every_field(resources: ApiServer, kind: Any) -> None:
    published = until_published(resources, kind.name)
    said = dict(within(published))
    for field, prose in within(whole(kind)):
        if field not in {".apiVersion", ".kind"}:
            assert said[field] == prose, field
    fields = resources.kubectl("explain", kind.plural, "--recursive")
    for field in whole(kind)["properties"]["spec"]["properties"]:
        assert re.search(rf"^ +{field}\t", fields, re.MULTILINE), field


def until_published(server: ApiServer, kind: str) -> Document:
    """The schema as `kubectl explain` gets it."""
    key = f"dev.anabranch.{names.VERSION}.{kind}"
    wanted = dict(within(whole_of(kind))).keys()

    def look() -> Document | None:
        told = until_served(server, f"/openapi/v3/apis/{names.API_VERSION}")
        found = told["components"]["schemas"].get(key)
        return found if found and wanted <= dict(within(found)).keys() else None

    return until(look, f"{key} is published")


def whole_of(kind: str) -> Document:
    return whole(next(each for each in KINDS if each.name == kind))


def test_explain_shows_values_and_defaults(resources: ApiServer) -> None:
    until_published(resources, names.FORK)
    said = resources.kubectl("explain", "fork.spec.promotion.policy")
    assert "What must be so before a fork with `state: Promoted` is promoted." in said
    assert said.split()[said.split().index("ENUM:") :][1:4] == ["Manual", "Gate", "Approval"]


def test_objects_from_before_a_rule_live_on(api_server: ApiServer) -> None:
    """Under an older CRD without rules: shown, told about, mended and deleted under this one."""
    group = "before.anabranch.dev"
    now = crd(KINDS[1])
    now["metadata"]["name"] = f"oldforks.{group}"
    now["spec"]["group"] = group
    # Nobody who asks for forks on this server may be given these.
    now["spec"]["names"] = {"kind": "OldFork", "plural": "oldforks", "singular": "oldfork"}
    then: Document = json.loads(json.dumps(now))
    schema = then["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema.pop("x-kubernetes-validations")
    loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    loose["properties"] = {"parent": {"type": "object", "properties": {"name": {"type": "string"}}}}
    schema["properties"]["spec"] = loose
    then["spec"]["versions"][0]["selectableFields"] = [{"jsonPath": ".spec.parent.name"}]
    install(api_server, then)
    space = api_server.namespace("before")
    version = f"{group}/{names.VERSION}"
    where = f"/apis/{version}/namespaces/{space}/oldforks"
    spec = {"parent": {"name": "orders"}, "at": {"position": 3}, "color": "green"}
    old = {"apiVersion": version, "kind": "OldFork", "metadata": {"name": "a--b"}, "spec": spec}
    api_server.ask("POST", where, old)
    install(api_server, now)
    held = {"metadata": {"finalizers": ["tests.dev/held"]}}
    until_strict(api_server, where, version)
    merge = "application/merge-patch+json"
    api_server.ask("PATCH", f"{where}/a--b", held, content=merge)
    status = {"status": {"phase": "Pending", "conditions": [condition("False", "Invalid")]}}
    api_server.ask("PATCH", f"{where}/a--b/status", status, content=merge)
    seen = api_server.ask("GET", f"{where}/a--b")
    assert seen["spec"]["at"] == {"position": 3}
    assert seen["spec"]["type"] == "Continuous"
    assert seen["status"]["phase"] == "Pending"
    api_server.ask("DELETE", f"{where}/a--b")
    let_go = {"metadata": {"finalizers": []}}
    api_server.ask("PATCH", f"{where}/a--b", let_go, content=merge)
    with pytest.raises(Refused, match="not found"):
        api_server.ask("GET", f"{where}/a--b")


def until_strict(server: ApiServer, where: str, version: str) -> None:
    """The new CRD is in force a moment after it was written."""
    meta = {"name": "c--d"}
    spec = {"parent": {"name": "a"}}
    wrong = {"apiVersion": version, "kind": "OldFork", "metadata": meta, "spec": spec}

    def look() -> bool | None:
        said = refusal(server, f"{where}?dryRun=All", wrong)
        return "'--' separates" in said or None

    until(look, "the new CRD is in force")


def refusal(server: ApiServer, where: str, body: Document) -> str:
    try:
        server.ask("POST", where, body)
    except Refused as refused:
        return str(refused)
    return ""
