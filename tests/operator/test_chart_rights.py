"""An operator with the rights and the settings that the chart gives it, and no other: each is
enough, and none is too much.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from tests.charts.helm import ROOT, Helm, values_of
from tests.integration.living import PATIENCE_S
from tests.integration.pool import pooled
from tests.kubernetes.api_server import ApiServer
from tests.kubernetes.audit import Request
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.fixtures import needs
from tests.operator import running as processes
from tests.operator.installed import install, until
from tests.operator.life import GATED, MERGE, Home, live
from tests.operator.running import SWIFT, Operator, running, until_one_leads

import anabranch
from anabranch.client.session.settings import Settings
from anabranch.shell.authority.settings import AuthMode, AuthSettings
from anabranch_operator.api.names import (
    API_VERSION,
    AUDIENCE,
    FINALIZER,
    GROUP,
    LOG,
    MARK_MANAGER,
    PLURALS,
)

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
LEAVES = ("peer", "broker", "gateway", "operator", "etcd", "s3")
WHOLE = "cluster"
ACCOUNT = "demo-operator"
ROLES = (ACCOUNT, "demo-installation", "demo-gates")
PRIVILEGES = "rbac.authorization.k8s.io"

Document = dict[str, Any]


class Right(NamedTuple):
    """One verb on one resource; without a name, on all of them."""

    verb: str
    group: str
    resource: str
    name: str = ""


@pytest.fixture(scope="session")
def helm() -> Helm:
    needs("helm")
    return Helm()


def test_in_its_namespace_the_charts_rights_are_enough_and_none_too_much(
    resources: ApiServer, helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace = resources.namespace("chart")
    found = _installed(resources, helm, namespace)
    with _operating(resources, namespace, tmp_path, monkeypatch) as site:
        _everything(site, Home(resources, namespace))
        _judge(site, found)


def test_in_the_cluster_the_charts_rights_are_enough_and_none_too_much(
    own_api_server: ControlPlane, helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logs are declared in another namespace than the operator's."""
    server = own_api_server.api
    for plural in PLURALS.values():
        install(server, yaml.safe_load((ROOT / "crds" / f"{plural}.yaml").read_text()))
    namespace = server.namespace("chart")
    team = server.namespace("team")
    told = (f"operator.watch={WHOLE}", f"gates.namespaces={{{team}}}")
    found = _installed(
        server, helm, namespace, *(part for each in told for part in ("--set", each))
    )
    with _operating(server, namespace, tmp_path, monkeypatch) as site:
        _everything(site, Home(server, team))
        elsewhere = Home(server, server.namespace("elsewhere"))
        _judge(site, found)
        elsewhere.log("others")
        elsewhere.fork("judged", "others", promotable=True, state="Promoted", promotion=GATED)
        said = elsewhere.says("forks", "judged", "GatePassed", "GateInvalid")
        assert "jobs" in said["message"], "gates.namespaces doesn't name it"


def test_a_right_that_is_taken_away_is_missed_and_told_and_its_return_mends_all(
    resources: ApiServer, helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace = resources.namespace("chart")
    _installed(resources, helm, namespace)
    with _operating(resources, namespace, tmp_path, monkeypatch) as site:
        home = Home(resources, namespace)
        home.log("orders")
        home.mirrors("logs", "orders")
        with _without(site, Right("update", GROUP, "logs/finalizers")):
            home.log("late")
            told = home.says("logs", "late", "Ready", "WriteFailed")
            assert "blockOwnerDeletion" in told["message"]
        with _without(site, Right("update", GROUP, "forks/finalizers")):
            home.fork("late", "orders")
            told = home.says("forks", "late", "Ready", "WriteFailed")
            assert "blockOwnerDeletion" in told["message"]
        with _without(site, Right("update", GROUP, "brokerpools/finalizers")):
            home.declare("BrokerPool", "late", image="anabranch")
            told = home.says("brokerpools", "late", "Ready", "WriteFailed")
            assert "blockOwnerDeletion" in told["message"]
        group = {"image": "anabranch", "storage": {"ephemeral": True}}
        with _without(site, Right("update", GROUP, "sequencersets/finalizers")):
            home.declare("SequencerSet", "late", members=1, **group)
            told = home.says("sequencersets", "late", "Ready", "WriteFailed")
            assert "blockOwnerDeletion" in told["message"]
        with _without(site, Right("update", GROUP, "shardgroups/finalizers")):
            home.declare("ShardGroup", "late", sequencers="late", **group)
            told = home.says("shardgroups", "late", "Ready", "WriteFailed")
            assert "blockOwnerDeletion" in told["message"]
        with _without(site, Right("delete", GROUP, "sequencersets")):
            parts = {"template": {**group, "members": 1}}, {"count": 1, "template": group}
            kept = {"engine": "belfast", "sequencers": parts[0], "shards": parts[1]}
            home.log("kept", **kept)
            home.says("logs", "kept", "Ready", "SequencersAway")
            home.change("logs", "kept", {"spec": {"deletionPolicy": "Delete"}})
            told = home.says("logs", "kept", "Ready", "WriteFailed")
            assert "ownerRef" in told["message"]
        with _without(site, Right("patch", GROUP, "forks/status")):
            home.fork("silent", "orders")
            until(lambda: _refused(site, "silent", "forks/status"), "the operator says so")
        with _without(site, Right("create", "batch", "jobs")):
            home.fork("judged", "orders", promotable=True, state="Promoted", promotion=GATED)
            told = home.says("forks", "judged", "GatePassed", "GateInvalid")
            assert "jobs" in told["message"]
        with _without(site, Right("update", "coordination.k8s.io", "leases", ACCOUNT)):
            until(lambda: None if site.operator.leads else True, "it leads no more")
            assert site.operator.get("/healthz")[0] == 200
        for plural, name in (("logs", "late"), ("forks", "late"), ("forks", "silent")):
            home.mirrors(plural, name)
        for name in ("late-brokers", "late-sequencers", "late-shards"):
            until(lambda name=name: home.find("services", name, "v1"), f"{name} is made")
        home.fail_gate("judged")
        home.says("forks", "judged", "GatePassed", "GateFailed")
        assert site.operator.process.running


def test_an_operator_that_may_not_see_all_says_so_and_waits(
    resources: ApiServer, helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace = resources.namespace("chart")
    _installed(resources, helm, namespace)
    with _operating(resources, namespace, tmp_path, monkeypatch) as site:
        late = Operator(
            resources, namespace, tmp_path / "late", ACCOUNT, service=site.service, **SWIFT
        )
        with ExitStack() as stack:
            stack.callback(late.process.kill)
            with _without(site, Right("list", "batch", "jobs")):
                late.process.launch()
                until(lambda: _cant_list(late, "jobs"), "it says so")
                assert late.get("/readyz")[0] == 503
            late.process.wait_ready()


class Site(NamedTuple):
    """Where it operates."""

    server: ApiServer
    namespace: str
    operator: Operator
    service: str
    since: int


def _installed(server: ApiServer, helm: Helm, namespace: str, *told: str) -> list[Document]:
    """As `helm install` would, but for the pod of `helm test`."""
    logs = ("--set", "gates.logs=true")
    found = helm.template(*values_of("kind"), *logs, *told, namespace=namespace)
    items = [each for each in found if each["kind"] != "Pod"]
    for where in sorted({each["metadata"].get("namespace", namespace) for each in items}):
        here = [each for each in items if each["metadata"].get("namespace", namespace) == where]
        given = json.dumps({"apiVersion": "v1", "kind": "List", "items": here})
        server.kubectl("apply", "--server-side", "--namespace", where, "-f", "-", given=given)
    return items


@contextmanager
def _operating(
    server: ApiServer, namespace: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    """By the chart's settings, but faster, beside a log service that asks about rights."""
    monkeypatch.setattr(processes, "RULES", ())
    told = server.ask("GET", f"/api/v1/namespaces/{namespace}/configmaps/{ACCOUNT}")
    config = folder / "operator.toml"
    config.write_text(told["data"]["operator.toml"])
    since = server.mark()
    with pooled(1, auth=_reviews(server, namespace, folder / "account")) as pool:
        token = folder / "token"
        # Made now: its account is the chart's.
        token.write_text(server.token(namespace, ACCOUNT, [AUDIENCE]))
        service = {"service": f"{pool.url}?token_file={token}", "config": str(config)}
        operator = Operator(server, namespace, folder, ACCOUNT, **SWIFT, **service)
        with running(operator):
            until_one_leads(operator)
            yield Site(server, namespace, operator, pool.url, since)


def _reviews(server: ApiServer, namespace: str, folder: Path) -> AuthSettings:
    """As brokers ask, by the account that the chart gives them."""
    folder.mkdir()
    (folder / "token").write_text(server.token(namespace, "demo-broker"))
    (folder / "namespace").write_text(namespace)
    (folder / "ca.crt").write_bytes(server.ca.read_bytes())
    return AuthSettings(
        mode=AuthMode.KUBERNETES,
        server=server.url,
        folder=str(folder),
        deadline_ms=round(PATIENCE_S * 1_000),
    )


def _everything(site: Site, home: Home) -> None:
    """But what needs a broker: there is no kubelet here."""
    server, namespace = site.server, site.namespace
    writes = processes.Rule(("append",), (GROUP,), ("logs",))
    token = server.service_account(home.namespace, "writer", (writes,), audiences=(AUDIENCE,))
    settings = Settings(token=token, timeout_ms=round(PATIENCE_S * 1_000))
    with anabranch.connect(site.service, timeout=PATIENCE_S, settings=settings) as service:

        def append(log: str) -> None:
            for _ in range(3):
                service.log(log).append(b"a record")

        live(home, site.operator, append)
        _from_an_earlier_version(home)
    until(lambda: _all_made(server, namespace), "certificates and pods are made")
    pools = Home(server, namespace)
    _belfast(pools)
    for count in (3, 2):
        pools.change("brokerpools", "demo", {"spec": {"replicas": count}})
        until(lambda n=count: len(_brokers(pools)) == n or None, f"there are {count} brokers")
    # A pod is gone before the account tells of it, which it does when the request is answered.
    until(lambda: _deletes_pods(site), "a broker's deletion is told")


def _from_an_earlier_version(home: Home) -> None:
    """A Log with the finalizer that operators used to put on Logs."""
    log = {"apiVersion": API_VERSION, "kind": LOG, "spec": {"deletionPolicy": "Delete"}}
    meta = {"name": "early", "finalizers": [FINALIZER]}
    home.server.apply(home.path("logs", "early"), {**log, "metadata": meta}, MARK_MANAGER)

    def is_free() -> bool | None:
        return None if home.find("logs", "early")["metadata"].get("finalizers") else True

    until(is_free, "its finalizer is taken away")
    home.leave("logs", "early")


def _belfast(home: Home) -> None:
    """As far as it comes without anybody who runs pods."""
    group = {"image": "anabranch", "storage": {"volumeClaim": {"size": "1Gi"}}}
    home.declare("SequencerSet", "orders", **group)
    home.declare("ShardGroup", "orders", sequencers="orders", **group)
    for plural in ("sequencersets", "shardgroups"):
        home.says(plural, "orders", "Ready", "SequencersAway")
    for pod in ("orders-sequencer-2", "orders-1-1"):
        until(lambda name=pod: home.find("pods", name, "v1"), f"{pod} is made")
        volume = f"data-{pod}"
        found = until(
            lambda name=volume: home.find("persistentvolumeclaims", name, "v1"), f"{volume} is made"
        )
        assert "ownerReferences" not in found["metadata"]
    for service in ("orders-sequencers", "orders-shards"):
        assert home.find("services", service, "v1")
        assert home.find("poddisruptionbudgets", service, "policy/v1")
    _belfast_log(home, group)


def _belfast_log(home: Home, template: Document) -> None:
    """A Log that makes both parts and owns them, so that the shards go before the sequencers."""
    home.log(
        "ticks",
        engine="belfast",
        deletionPolicy="Delete",
        sequencers={"template": {**template, "members": 1}},
        shards={"count": 1, "template": template},
        quota={"appendRecordsPerSecond": 100},
    )
    home.says("logs", "ticks", "Ready", "SequencersAway")

    def is_listed() -> bool | None:
        return "logId" in home.find("logs", "ticks")["status"] or None

    until(is_listed, "it is in the catalogue")
    until(lambda: home.find("configmaps", "ticks-quota", "v1"), "shards are told of its quota")
    for plural, owners in (("shardgroups", 1), ("sequencersets", 2)):
        assert len(home.find(plural, "ticks")["metadata"]["ownerReferences"]) == owners


def _judge(site: Site, rendered: list[Document]) -> None:
    requests = site.server.requests(site.since)
    own = [each for each in requests if each.user == site.operator.user]
    refused = [
        f"{each.verb} {each.group}/{each.resource} {each.name}" for each in own if each.code == 403
    ]
    assert refused == []
    used = {*_used(own), *_asked_about(requests, site.operator.user)}
    used |= {right._replace(name="") for right in used}
    idle = _granted(rendered) - used - UNHEARD - UNTRIED
    assert idle == set(), "nothing needs these rights"


@contextmanager
def _without(site: Site, right: Right) -> Iterator[None]:
    """Until the end of the block."""
    where = f"/apis/{PRIVILEGES}/v1/namespaces/{site.namespace}/roles"
    kept: dict[str, list[Document]] = {}
    for role in site.server.ask("GET", where)["items"]:
        if role["metadata"]["name"] in ROLES:
            kept[role["metadata"]["name"]] = role["rules"]
    lessened = {name: [*_lessened(rules, right)] for name, rules in kept.items()}
    assert lessened != kept, right
    _give(site, lessened)
    until(lambda: None if _may(site, right) else True, f"{right} is taken away")
    try:
        yield
    finally:
        _give(site, kept)
        until(lambda: _may(site, right) or None, f"{right} is back")


def _lessened(rules: list[Document], right: Right) -> Iterator[Document]:
    """Each rule is of one resource now; what others say of the verb stays."""
    for rule in rules:
        for resource in rule["resources"]:
            hit = right.group in rule["apiGroups"] and resource == right.resource
            verbs = [verb for verb in rule["verbs"] if not (hit and verb == right.verb)]
            if verbs:
                yield {**rule, "resources": [resource], "verbs": verbs}


def _give(site: Site, roles: dict[str, list[Document]]) -> None:
    where = f"/apis/{PRIVILEGES}/v1/namespaces/{site.namespace}/roles"
    for name, rules in roles.items():
        site.server.ask("PATCH", f"{where}/{name}", {"rules": rules}, content=MERGE)


def _may(site: Site, right: Right) -> bool:
    resource, _, part = right.resource.partition("/")
    about = {"namespace": site.namespace, "verb": right.verb, "group": right.group}
    about |= {"resource": resource, "subresource": part, "name": right.name}
    asked = {"spec": {"user": site.operator.user, "resourceAttributes": about}}
    where = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return site.server.ask("POST", where, asked)["status"]["allowed"]


def _refused(site: Site, name: str, resource: str) -> bool | None:
    """Where nothing can be told in the resource itself."""
    told = (
        each["step"]
        for each in site.operator.log()
        if each["event"] == "an action of a reconciliation failed"
        and each["object"] == f"{site.namespace}/{name}"
    )
    return any(resource in each for each in told) or None


def _cant_list(operator: Operator, resource: str) -> bool | None:
    found = (each["reason"] for each in operator.log() if each["event"] == "a list failed")
    return any(f'cannot list resource "{resource}"' in each for each in found) or None


UNHEARD = {
    *(Right("update", GROUP, f"{plural}/finalizers") for plural in PLURALS.values()),
    *(Right("delete", GROUP, plural) for plural in ("sequencersets", "shardgroups")),
}
"""The API server asks itself about these and keeps no account of it: they are taken away below."""

UNTRIED = {Right("delete", "", "persistentvolumeclaims")}
"""A shard's volumes go when its log says that it has left: there is no such log here, but in
`tests/cluster/test_belfast.py`.
"""


def _granted(rendered: list[Document]) -> set[Right]:
    """By all roles that are bound to the operator's account."""
    bound = {
        (each["roleRef"]["kind"], each["roleRef"]["name"])
        for each in rendered
        if each["kind"] in {"RoleBinding", "ClusterRoleBinding"}
        if ACCOUNT in [subject["name"] for subject in each["subjects"]]
    }
    return {
        Right(verb, group, resource, name)
        for each in rendered
        if (each["kind"], each["metadata"]["name"]) in bound
        for rule in each["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
    }


def _used(requests: list[Request]) -> Iterator[Right]:
    """What was asked of the API server, and allowed."""
    for each in requests:
        resource = each.resource + f"/{each.subresource}" * bool(each.subresource)
        yield Right(each.verb, each.group, resource, each.name)
        if each.verb == "patch" and each.code == 201:
            # Whoever applies what isn't there needs the right to create it as well.
            yield Right("create", each.group, resource, each.name)


def _asked_about(requests: list[Request], user: str) -> Iterator[Right]:
    """What it asked of the log service, which asked the API server."""
    for each in requests:
        if each.resource != "subjectaccessreviews" or each.sent["spec"]["user"] != user:
            continue
        about = each.sent["spec"]["resourceAttributes"]
        yield Right(about["verb"], about["group"], about["resource"], about.get("name", ""))


def _deletes_pods(site: Site) -> bool | None:
    found = site.server.requests(site.since, site.operator.user)
    return any(each.verb == "delete" and each.resource == "pods" for each in found) or None


def _brokers(home: Home) -> list[Document]:
    pods = home.path("pods", group="v1")
    found = home.server.ask("GET", f"{pods}?labelSelector=anabranch.dev/role%3Dbroker")["items"]
    return [each for each in found if "deletionTimestamp" not in each["metadata"]]


def _all_made(server: ApiServer, namespace: str) -> bool | None:
    home = Home(server, namespace)
    wanted = [("secrets", "demo-ca", "v1"), ("configmaps", "demo-ca", "v1")]
    wanted += [("secrets", f"demo-{leaf}-tls", "v1") for leaf in LEAVES]
    wanted += [("services", "demo-brokers", "v1")]
    wanted += [("poddisruptionbudgets", "demo-brokers", "policy/v1")]
    if not all(home.find(*each) for each in wanted):
        return None
    (hook,) = server.ask("GET", f"{HOOKS}/{namespace}-demo-eviction")["webhooks"]
    told = home.find("brokerpools", "demo").get("status", {}).get("replicas", 0)
    return (
        True if hook["clientConfig"].get("caBundle") and len(_brokers(home)) == told >= 2 else None
    )
