"""The operator beside Kubernetes' own controllers; its pods are ready, though nobody runs them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.kubernetes.api_server import ApiServer, Refused
from tests.kubernetes.control_plane import API_SERVER, CONTROLLERS, ControlPlane
from tests.kubernetes.fixtures import needs
from tests.operator.installed import resources_of, until
from tests.operator.life import Home
from tests.operator.pod_brokers import pod_brokers
from tests.operator.running import SWIFT, Operator, log_service, running, until_one_leads

import anabranch
from anabranch_operator.api import names

FORKS = 300
"""A thousand are for the benchmark."""
MEMORY_KB_MAX = 256 << 10
AT_ONCE = 8
GATE = {"containers": [{"name": "check", "image": "none"}]}

Document = dict[str, Any]

pytestmark = pytest.mark.nightly


@pytest.fixture
def home(control_plane: ApiServer) -> Home:
    server = resources_of(control_plane)
    return Home(server, server.namespace("home"))


@contextmanager
def operating(home: Home, folder: Path, **settings: Any) -> Iterator[Operator]:
    """An operator that makes pods of a pool, in which brokers come to live."""
    server, namespace = home.server, home.namespace
    with pod_brokers(server, namespace) as service:
        told = {**SWIFT, "service": service, "watch_nodes": True, **settings}
        told["gates_service_account"] = "default"
        operator = Operator(server, namespace, folder, "operator", **told)
        with running(operator):
            yield operator


def test_what_was_made_for_a_resource_goes_with_it(home: Home, tmp_path: Path) -> None:
    with operating(home, tmp_path):
        home.declare("BrokerPool", "demo", image="anabranch", min=2)
        home.says("brokerpools", "demo", "Ready", "PoolComplete")
        home.log("orders", deletionPolicy="Delete")
        home.fork("what-if", "orders")
        home.says("logs", "orders", "Ready", "Serving")
        home.says("forks", "what-if", "Ready", "Serving")
        gate = {"jobTemplate": {"spec": {"template": {"spec": GATE}}}}
        judged = {"policy": "Gate", "gate": gate}
        home.fork("judged", "orders", promotable=True, state="Promoted", promotion=judged)
        home.says("forks", "judged", "Ready", "Promoted")
        job = home.find("forks", "judged")["status"]["gate"]["job"]
        assert home.find("jobs", job, "batch/v1")
        home.leave("forks", "judged")
        home.gone("jobs", job, "batch/v1")
        until(lambda: not pods(home, names.GATE) or None, "the gate's pod is gone")
        for plural, name in (("forks", "what-if"), ("logs", "orders")):
            home.leave(plural, name)
            face = f"{plural.removesuffix('s')}-{name}"
            home.gone("services", face, "v1")
            home.gone("endpointslices", face, "discovery.k8s.io/v1")
        home.leave("brokerpools", "demo")
        home.gone("services", "demo-brokers", "v1")
        home.gone("poddisruptionbudgets", "demo-brokers", "policy/v1")
        until(lambda: not pods(home, names.BROKER) or None, "the pool's pods are gone")


@pytest.mark.parametrize("engine", ["belfast", "erwin"])
def test_a_logs_shards_go_with_it_and_before_its_sequencers(
    home: Home, tmp_path: Path, engine: str
) -> None:
    template = {"image": "anabranch", "storage": {"ephemeral": True}}
    with operating(home, tmp_path):
        home.declare("BrokerPool", "demo", image="anabranch", min=1)
        home.says("brokerpools", "demo", "Ready", "PoolComplete")
        home.log(
            "ticks",
            engine=engine,
            deletionPolicy="Delete",
            sequencers={"template": {**template, "members": 1}},
            shards={"count": 1, "template": {**template, "copies": 1}},
        )
        home.says("logs", "ticks", "Ready", "SequencersAway")

        def is_owned_by_both() -> bool | None:
            made: Document = home.find("sequencersets", "ticks") or {"metadata": {}}
            return len(made["metadata"].get("ownerReferences", ())) == 2 or None

        until(is_owned_by_both, "the log and the shards own the sequencers")
        home.leave("logs", "ticks")
        home.gone("sequencersets", "ticks")
        assert home.find("shardgroups", "ticks") is None
        for role in (names.SEQUENCER, names.SHARD):
            until(lambda role=role: not pods(home, role) or None, f"no {role} is left")


def test_a_lazy_logs_sequencers_are_made_for_it_and_go_with_it(home: Home, tmp_path: Path) -> None:
    template = {"image": "anabranch", "storage": {"ephemeral": True}, "members": 1}
    with operating(home, tmp_path):
        home.declare("BrokerPool", "demo", image="anabranch", min=1)
        home.says("brokerpools", "demo", "Ready", "PoolComplete")
        home.log(
            "clicks", appends="Lazy", deletionPolicy="Delete", sequencers={"template": template}
        )

        def is_told_its_log() -> bool | None:
            made: Document = home.find("sequencersets", "clicks") or {"metadata": {}}
            return names.LOG_ID in made["metadata"].get("labels", {}) or None

        until(is_told_its_log, "the set knows its log")
        until(lambda: pods(home, names.SEQUENCER) or None, "there is a sequencer")
        home.leave("logs", "clicks")
        home.gone("sequencersets", "clicks")
        until(lambda: not pods(home, names.SEQUENCER) or None, "no sequencer is left")


def test_while_no_operator_answers_a_pools_budget_keeps_its_brokers(
    home: Home, tmp_path: Path
) -> None:
    with operating(home, tmp_path) as operator:
        home.declare("BrokerPool", "demo", image="anabranch", min=3)
        home.says("brokerpools", "demo", "Ready", "PoolComplete")
        until(lambda: allowed(home) == 1 or None, "one may be evicted")
        operator.process.stop()
        first, second, _ = sorted(pods(home, names.BROKER))
        assert evict(home, first) is None
        home.gone("pods", first, "v1")
        until(lambda: allowed(home) == 0 or None, "no other may be")
        assert "disruption budget" in str(evict(home, second))
        operator.start()
        until(lambda: allowed(home) == 1 or None, "there are three again")
        assert evict(home, second) is None


def test_brokers_leave_a_node_that_is_cordoned_and_are_made_anew_when_one_is_deleted(
    home: Home, tmp_path: Path
) -> None:
    with nodes_of(home, 3) as placement, operating(home, tmp_path):
        home.declare("BrokerPool", "demo", image="anabranch", min=2, **placement)
        home.says("brokerpools", "demo", "Ready", "PoolComplete")
        home.log("orders")
        home.says("logs", "orders", "Ready", "Serving")
        left = where(home)
        home.server.kubectl("cordon", left)

        def elsewhere() -> bool | None:
            return None if where(home) in {"", left} else True

        until(elsewhere, "the log is served on another node, and its slice says so")
        home.says("logs", "orders", "Ready", "Serving")
        until(lambda: left not in pods(home, names.BROKER).values() or None, "nobody is there")
        home.says("brokerpools", "demo", "Ready", "PoolComplete")
        home.server.kubectl("uncordon", left)
        lost = where(home)
        before = pods(home, names.BROKER)
        home.server.kubectl("delete", "node", lost)
        collect(home, [name for name, node in before.items() if node == lost])

        def replaced() -> bool | None:
            found = pods(home, names.BROKER)
            return (lost not in found.values() and len(found) == len(before)) or None

        until(replaced, "its broker is made anew")
        home.says("brokerpools", "demo", "Ready", "PoolComplete")
        until(lambda: None if where(home) in {"", lost} else True, "the log is served")


def test_a_namespace_that_is_deleted_goes_whatever_is_in_it(tmp_path: Path) -> None:
    """All namespaces are this operator's, so the cluster is. What becomes of their logs doesn't
    depend on whether an operator was there.
    """
    needs(*API_SERVER, *CONTROLLERS, "kwok")
    plane = ControlPlane(tmp_path / "plane", controllers=True)
    try:
        plane.start()
        server = resources_of(plane.api)
        with log_service(tmp_path) as service:
            home = server.namespace("home")
            told = {**SWIFT, "watch": "cluster", "service": service}
            operator = Operator(server, home, tmp_path, "operator", **told)
            with running(operator):
                until_one_leads(operator)
                one, other = (filled(Home(server, server.namespace("team"))) for _ in range(2))
                delete(one)
                until_gone(one)
                operator.process.stop()
                delete(other)
                until_gone(other)
                operator.start()
                until_one_leads(operator)
                for each in (one, other):
                    until(lambda each=each: left(service, each) == KEPT or None, "forks end")
    finally:
        plane.kill()


@pytest.mark.parametrize("service_is", ["up", "down", "never up"])
def test_a_namespace_with_its_operator_in_it_goes(
    home: Home, tmp_path: Path, service_is: str
) -> None:
    """The operator's account goes first: from then on it may do nothing."""
    with ExitStack() as of_service, ExitStack() as of_operator:
        service = "anabranch://127.0.0.1:9"
        if service_is != "never up":
            service = of_service.enter_context(log_service(tmp_path))
        told = {**SWIFT, "service": service}
        operator = Operator(home.server, home.namespace, tmp_path, "operator", **told)
        of_operator.enter_context(running(operator))
        until_one_leads(operator)
        if service_is == "never up":
            home.log("orders")
            home.says("logs", "orders", "ServiceReachable", "ServiceAway")
        else:
            filled(home)
        if service_is == "down":
            of_service.close()
        delete(home)
        until_gone(home)


def test_finalizers_of_an_earlier_version_are_taken_away(home: Home, tmp_path: Path) -> None:
    """By the manager that put them; those of others stay."""
    manifest: Document = {"apiVersion": names.API_VERSION, "kind": names.LOG}
    held = {"name": "old", "finalizers": [names.FINALIZER]}
    query = f"?fieldManager={names.MARK_MANAGER}&force=true"
    path, apply = home.path("logs", "old"), "application/apply-patch+yaml"
    home.server.ask("PATCH", path + query, {**manifest, "metadata": held}, content=apply)
    theirs = {"metadata": {"finalizers": [names.FINALIZER, "example.com/theirs"]}}
    home.change("logs", "old", theirs)
    with log_service(tmp_path) as service:
        told = {**SWIFT, "service": service}
        operator = Operator(home.server, home.namespace, tmp_path, "operator", **told)
        with running(operator):
            home.says("logs", "old", "ServiceReachable", "ServiceAnswers")
            meta = home.find("logs", "old")["metadata"]
            assert meta["finalizers"] == ["example.com/theirs"]
            home.server.ask("DELETE", path)
            home.says("logs", "old", "Ready", "Terminating")
            home.change("logs", "old", {"metadata": {"finalizers": []}})
            home.gone("logs", "old")


def test_many_forks_come_and_go_and_nothing_is_written_meanwhile(
    home: Home, tmp_path: Path
) -> None:
    with operating(home, tmp_path, resync_ms=5_000, look_ms=500) as operator:
        home.declare("BrokerPool", "demo", image="anabranch", min=2, max=2)
        home.says("brokerpools", "demo", "Ready", "PoolComplete")
        home.log("orders")
        home.says("logs", "orders", "Ready", "Serving")
        with ThreadPoolExecutor(AT_ONCE) as several:
            list(several.map(lambda number: home.fork(f"f{number}", "orders"), range(FORKS)))
        patiently(lambda: len(ready(home)) == FORKS or None, "all are ready")
        assert memory_kb(operator.process.pid) < MEMORY_KB_MAX
        quietly_twice_around(home, operator)
        home.server.ask("DELETE", home.path("forks"))
        patiently(lambda: not forks(home) or None, "all are gone")
        patiently(lambda: len(faces(home)) == 1 or None, "and all that was made for them")


def quietly_twice_around(home: Home, operator: Operator) -> None:
    """Everything is planned twice again, and nothing is found to be done."""

    def look() -> bool | None:
        since = home.server.mark()
        steady = planned(operator)
        until(lambda: planned(operator) >= steady + 2 * FORKS or None, "all was planned twice")
        requests = home.server.requests(since, operator.user)
        return None if [each for each in requests if writes(each)] else True

    patiently(look, "it has converged")


def writes(request: Any) -> bool:
    return request.writes and request.resource != "leases"


def planned(operator: Operator) -> float:
    return operator.figure('anabranch_operator_reconcile_total{kind="Fork",result="steady"}')


def forks(home: Home) -> list[Document]:
    return home.server.ask("GET", home.path("forks") + "?resourceVersion=0")["items"]


def faces(home: Home) -> list[Document]:
    label = f"?labelSelector={names.MANAGED_BY}%3D{names.FIELD_MANAGER}"
    found = home.server.ask("GET", home.path("services", group="v1") + label)["items"]
    return [each for each in found if each["metadata"]["name"] != "demo-brokers"]


def ready(home: Home) -> list[str]:
    return [
        fork["metadata"]["name"]
        for fork in forks(home)
        for said in fork.get("status", {}).get("conditions", ())
        if (said["type"], said["status"]) == ("Ready", "True")
    ]


def memory_kb(pid: int) -> int:
    told = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(told["VmRSS"].split()[0])


def patiently(holds: Any, what: str) -> None:
    """For what takes its time where much else goes on."""
    for _ in range(5):
        try:
            until(holds, what)
        except AssertionError:
            continue
        return
    raise AssertionError(f"gave up waiting: {what}")


def pods(home: Home, role: str) -> dict[str, str]:
    """Their nodes, by their names."""
    path = home.path("pods", group="v1") + f"?labelSelector={names.ROLE}%3D{role}"
    found = home.server.ask("GET", path)["items"]
    return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in found}


def where(home: Home) -> str:
    """The node that the log's slice leads to; empty: none."""
    found = home.find("endpointslices", "log-orders", "discovery.k8s.io/v1")
    if not found or not found["endpoints"]:
        return ""
    return pods(home, names.BROKER).get(found["endpoints"][0]["targetRef"]["name"], "")


def collect(home: Home, orphans: list[str]) -> None:
    """Delete pods whose node is gone, as Kubernetes' collector does, which waits a minute first."""
    for name in orphans:
        home.server.ask("DELETE", home.path("pods", name, "v1") + "?gracePeriodSeconds=0")


@contextmanager
def nodes_of(home: Home, count: int) -> Iterator[Document]:
    """Nodes for one pool alone, which is to be told this."""
    mine = {"brokers-of": home.namespace}
    room = {"cpu": "64", "memory": "256Gi", "pods": "100"}
    made = [f"{home.namespace}-{number}" for number in range(FORKS)]
    for name in made:
        labels = {"kubernetes.io/hostname": name, **mine}
        body: Document = {"apiVersion": "v1", "kind": "Node"}
        body |= {"metadata": {"name": name, "labels": labels}}
        body |= {"spec": {"taints": [{"key": "brokers-of", "effect": "NoSchedule"}]}}
        body |= {"status": {"allocatable": room, "capacity": room}}
        home.server.ask("POST", "/api/v1/nodes", body)
    try:
        yield {
            "nodeSelector": mine,
            "tolerations": [{"key": "brokers-of", "operator": "Exists"}],
            "topology": {"hosts": "Required"},
        }
    finally:
        home.server.kubectl("delete", "node", "--ignore-not-found", *made)


def allowed(home: Home) -> int | None:
    """By the controller of disruptions, once it has seen the budget as it is."""
    found = home.find("poddisruptionbudgets", "demo-brokers", "policy/v1") or {}
    return found.get("status", {}).get("disruptionsAllowed")


def evict(home: Home, name: str) -> str | None:
    """Why not."""
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    try:
        home.server.ask("POST", home.path("pods", f"{name}/eviction", "v1"), body)
    except Refused as refused:
        if refused.code != 429:
            raise
        return str(refused)
    return None


def filled(home: Home) -> Home:
    """With a log, a fork that is protected, one that is undecided, and a child of it."""
    name = home.namespace
    home.log("orders", logName=name)
    home.mirrors("logs", "orders")
    # One after the other: beside one that is undecided its parent has no other.
    home.fork("kept", "orders", protected=True)
    home.mirrors("forks", "kept")
    home.fork("undecided", "orders", promotable=True)
    home.mirrors("forks", "undecided")
    home.fork("child", "undecided", names.FORK)
    home.mirrors("forks", "child")
    return home


KEPT = ["", "kept"]
"""Of what `filled` declares: the log, and the fork that is protected."""


def left(service: str, home: Home) -> list[str]:
    """Logs that a namespace has left behind, which nobody owns any more."""
    with anabranch.connect(service) as client:
        found = [(each.name, each.owner) for each in client.logs(tree=home.namespace)]
    return [name.partition("--")[2] for name, owner in found if not owner]


def delete(home: Home) -> None:
    home.server.ask("DELETE", f"/api/v1/namespaces/{home.namespace}")


def until_gone(home: Home) -> None:
    where = f"/api/v1/namespaces/{home.namespace}"

    def look() -> bool | None:
        try:
            home.server.ask("GET", where)
        except Refused as refused:
            if refused.code != 404:
                raise
            return True
        return None

    patiently(look, f"{home.namespace} is gone")
