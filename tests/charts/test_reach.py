"""Whom the NetworkPolicies let sequencers and shards reach, and be reached by, read as a cluster
that enforces them reads them.
"""

import json
from itertools import product

import pytest
from msgspec import Struct
from tests.charts.helm import MATRIX, NAMESPACE, RELEASE, Document, Helm, values_of

from anabranch_operator.api import names
from anabranch_operator.plan.groups import sequencer_pod, shard_pod

ENFORCED = tuple(each for each in MATRIX if each != "plain")
DNS, ETCD, HTTPS, STORE, KAFKA = 53, 2379, 443, 9000, 9093
BROKER = names.CLIENT_PORT
LISTENS = {
    names.SEQUENCER_PORT: names.SEQUENCER,
    names.SEQUENCER_PROBE_PORT: names.SEQUENCER,
    names.SHARD_PORT: names.SHARD,
    names.SHARD_PROBE_PORT: names.SHARD,
}
CLIENTS = {names.SEQUENCER_PORT, names.SHARD_PORT}
PROBES = LISTENS.keys() - CLIENTS
"""The kubelet is let in by itself."""


class End(Struct, frozen=True):
    """Of a connection: a pod."""

    labels: dict[str, str]
    namespace: str = NAMESPACE


def _part(name: str) -> End:
    stem = "app.kubernetes.io"
    labels = {"name": "anabranch", "instance": RELEASE, "component": name}
    return End({f"{stem}/{key}": value for key, value in labels.items()})


PARTS = {each: _part(each) for each in ("operator", "metadata", "broker", "gateway", "etcd", "s3")}
ROLES = {
    names.SEQUENCER: End(sequencer_pod.labels("ticks")),
    names.SHARD: End({**shard_pod.labels("ticks"), names.SHARD_LABEL: "ticks-0"}),
}
CLIENT, PROMETHEUS, STRANGER = (End({}, each) for each in ("programs", "monitoring", "others"))
OTHERS = {"client": CLIENT, "prometheus": PROMETHEUS, "stranger": STRANGER, "beside": End({})}


@pytest.mark.parametrize("values", ENFORCED)
def test_sequencers_and_shards_are_reached_by_whom_they_need_and_by_nobody_else(
    helm: Helm, values: str
) -> None:
    policies = _policies(helm, values)
    dialing = PARTS | ROLES | OTHERS
    found = {
        (who, port)
        for (who, end), (port, role) in product(dialing.items(), LISTENS.items())
        if _passes(policies, end, ROLES[role], port)
    }
    needed = set(product((*ROLES, "operator", "gateway", "client"), CLIENTS))
    # The operator asks shards what their speculation is worth.
    needed |= {("operator", names.SHARD_PROBE_PORT), *product(("prometheus",), PROBES)}
    assert found == needed


@pytest.mark.parametrize("values", ENFORCED)
def test_sequencers_and_shards_reach_names_brokers_and_one_another_and_nobody_else(
    helm: Helm, values: str
) -> None:
    without = ("--set", "belfast.epochs=false", "--set", "erwin.etcd=false")
    policies = _policies(helm, values, *without)
    for end in ROLES.values():
        reached = {
            (who, port)
            for (who, other), port in product(
                (PARTS | ROLES | OTHERS).items(), (DNS, ETCD, HTTPS, BROKER, 7430, *LISTENS)
            )
            if _may(policies, "egress", end, other, port)
        }
        names_of = {(who, DNS) for who in PARTS | ROLES | OTHERS}
        # A lazy front's sequencers are clients of the log that the front is before.
        brokers = {("broker", BROKER)} if end is ROLES[names.SEQUENCER] else set[tuple[str, int]]()
        assert reached == names_of | set(product(ROLES, CLIENTS)) | brokers
        assert _may(policies, "ingress", PARTS["broker"], end, BROKER) is bool(brokers)


@pytest.mark.parametrize("values", ENFORCED)
def test_sequencers_and_shards_reach_the_api_server_only_where_they_ask_it_about_clients(
    helm: Helm, values: str
) -> None:
    policies = _policies(helm, values)
    asking = ("--set", "auth.mode=kubernetes", "--set", "belfast.auth=kubernetes")
    reviewing = _policies(helm, values, *asking)
    for end in ROLES.values():
        assert not _may(policies, "egress", end, STRANGER, HTTPS)
        assert _may(reviewing, "egress", end, STRANGER, HTTPS)


@pytest.mark.parametrize("kept", ["belfast.epochs=false", "erwin.etcd=false"])
@pytest.mark.parametrize("values", ENFORCED)
def test_where_either_engine_keeps_something_in_etcd_sequencers_reach_it_and_shards_do_not(
    helm: Helm, values: str, kept: str
) -> None:
    policies = _policies(helm, values, "--set", kept)
    rendered = helm.rendered(values)
    brought = ("StatefulSet", f"{RELEASE}-etcd") in {
        (each["kind"], each["metadata"]["name"]) for each in rendered
    }
    etcd = PARTS["etcd"] if brought else STRANGER
    assert _passes(policies, ROLES[names.SEQUENCER], etcd, ETCD)
    assert not _passes(policies, ROLES[names.SHARD], etcd, ETCD)


@pytest.mark.parametrize("values", ENFORCED)
def test_shards_reach_what_keeps_their_records_and_sequencers_do_not(
    helm: Helm, values: str
) -> None:
    peer = {"namespaceSelector": {"matchLabels": {"name": STRANGER.namespace}}}
    rules = json.dumps([{"to": [peer], "ports": [{"port": KAFKA}]}])
    policies = _policies(helm, values, "--set-json", f"networkPolicies.shardEgress={rules}")
    assert _may(policies, "egress", ROLES[names.SHARD], STRANGER, KAFKA)
    assert not _may(policies, "egress", ROLES[names.SEQUENCER], STRANGER, KAFKA)
    assert not _may(_policies(helm, values), "egress", ROLES[names.SHARD], STRANGER, KAFKA)


def test_clients_reach_the_trials_store_where_what_is_signed_for_them_lies(helm: Helm) -> None:
    policies = _policies(helm, "kind")
    allowed = {
        who
        for who, end in (PARTS | ROLES | OTHERS).items()
        if _may(policies, "ingress", PARTS["s3"], end, STORE)
    }
    assert allowed == {"metadata", "broker", "client"}


def _policies(helm: Helm, values: str, *told: str) -> list[Document]:
    """Where it is said who clients are, and who asks for metrics."""
    chosen = {
        "clients": [{"namespaceSelector": {"matchLabels": {"name": CLIENT.namespace}}}],
        "monitoring": [{"namespaceSelector": {"matchLabels": {"name": PROMETHEUS.namespace}}}],
    }
    given = [
        each
        for key, peers in chosen.items()
        for each in ("--set-json", f"networkPolicies.{key}={json.dumps(peers)}")
    ]
    found = helm.template(*values_of(values), *given, *told)
    return [each["spec"] for each in found if each["kind"] == "NetworkPolicy"]


def _passes(policies: list[Document], source: End, to: End, port: int) -> bool:
    return _may(policies, "egress", source, to, port) and _may(
        policies, "ingress", to, source, port
    )


def _may(policies: list[Document], way: str, end: End, other: End, port: int) -> bool:
    """A pod that no policy selects may do everything."""
    here = [each for each in policies if end.namespace == NAMESPACE and _selected(each, end)]
    side = "to" if way == "egress" else "from"
    rules = [rule for each in here for rule in each.get(way, [])]
    return not here or any(_allows(rule, side, other, port) for rule in rules)


def _selected(policy: Document, end: End) -> bool:
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    return _chooses(policy["podSelector"], end.labels)


def _allows(rule: Document, side: str, other: End, port: int) -> bool:
    return port in {each["port"] for each in rule["ports"]} and (
        side not in rule or any(_is(peer, other) for peer in rule[side])
    )


def _is(peer: Document, end: End) -> bool:
    """Without a word of namespaces it is the policy's own."""
    at_home = end.namespace == NAMESPACE
    namespaces, pods = peer.get("namespaceSelector"), peer.get("podSelector", {})
    here = at_home if namespaces is None else _chooses(namespaces, {"name": end.namespace})
    return here and _chooses(pods, end.labels)


def _chooses(selector: Document, labels: dict[str, str]) -> bool:
    expressions = selector.get("matchExpressions", [])
    assert all(each["operator"] == "In" for each in expressions)
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        labels.get(each["key"]) in each["values"] for each in expressions
    )
