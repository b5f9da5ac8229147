"""What Helm makes of the charts, over a matrix of values."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.charts.helm import CHART, CRDS, MATRIX, Document, Helm, Refused, pod_specs, values_of

from anabranch.apps.pods import log_settings
from anabranch.apps.pods.bolt_settings import (
    BrokerSettings,
    GatewaySettings,
    MetadataSettings,
    load,
)
from anabranch.shell.authority.settings import AuthMode
from anabranch_operator import settings as operator_settings
from anabranch_operator.kube.resources import RESOURCES
from anabranch_operator.kube.selectors import watched
from anabranch_operator.plan.certificates.facts import Mode

CLUSTER_WIDE = {
    "ClusterRole",
    "ClusterRoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
}
SECRETS = {
    "ANABRANCH_S3_ACCESS_KEY": "access",
    "ANABRANCH_S3_SECRET_KEY": "secret",
    "ANABRANCH_PEER_TOKEN": "peers",
}


@pytest.mark.parametrize("values", MATRIX)
def test_helm_finds_nothing_to_complain_of(helm: Helm, values: str) -> None:
    helm.run("lint", "--strict", str(CHART), *values_of(values))


def test_helm_finds_nothing_to_complain_of_in_the_crds(helm: Helm) -> None:
    helm.run("lint", "--strict", str(CRDS))


@pytest.mark.parametrize("values", MATRIX)
def test_every_render_is_the_same(helm: Helm, values: str) -> None:
    """GitOps tools render without a cluster, and apply whatever has changed since."""
    assert helm.template(*values_of(values)) == helm.rendered(values)


@pytest.mark.parametrize("values", MATRIX)
def test_every_object_is_named_once_after_the_release(helm: Helm, values: str) -> None:
    found = helm.rendered(values)
    names = [(each["kind"], each["metadata"]["name"]) for each in found]
    assert len(names) == len(set(names))
    for kind, name in names:
        assert name.startswith("logs-demo" if kind in CLUSTER_WIDE else "demo"), (kind, name)
    for each in found:
        assert each["metadata"]["labels"]["app.kubernetes.io/part-of"] == "anabranch"


@pytest.mark.parametrize("values", MATRIX)
def test_every_pod_is_restricted(helm: Helm, values: str) -> None:
    """Pod Security's profile, and what it doesn't ask for: a read-only root, bounds, no token."""
    pods = dict(pod_specs(helm.rendered(values)))
    assert "StatefulSet/demo-metadata" in pods
    assert "Deployment/demo-operator" in pods
    for name, pod in pods.items():
        assert pod["automountServiceAccountToken"] is False, name
        assert pod["enableServiceLinks"] is False, name
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        for container in pod["containers"]:
            held = container["securityContext"]
            assert held["allowPrivilegeEscalation"] is False, name
            assert held["readOnlyRootFilesystem"] is True, name
            assert held["capabilities"] == {"drop": ["ALL"]}, name
            assert set(container["resources"]["requests"]) == {"cpu", "memory"}, name
            assert "memory" in container["resources"]["limits"], name


def test_an_etcd_that_is_full_is_still_reached(helm: Helm) -> None:
    """Its `/health` says no while it is full, and members make room in it through its Service."""
    [etcd] = [pod for name, pod in pod_specs(helm.rendered("kind")) if name.endswith("/demo-etcd")]
    [container] = etcd["containers"]
    asked = {
        probe: how["httpGet"]["path"] for probe, how in container.items() if probe.endswith("Probe")
    }
    assert asked == {
        "startupProbe": "/readyz",
        "livenessProbe": "/livez",
        "readinessProbe": "/readyz",
    }


@pytest.mark.parametrize("values", MATRIX)
def test_what_runs_for_ever_is_probed(helm: Helm, values: str) -> None:
    for name, pod in pod_specs(helm.rendered(values)):
        if name.startswith("Pod/"):
            continue
        (container,) = pod["containers"]
        ports = {port["name"] for port in container["ports"]}
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            (how,) = [key for key in container[probe] if key in {"httpGet", "tcpSocket"}]
            assert container[probe][how]["port"] in ports, name


@pytest.mark.parametrize("values", MATRIX)
def test_what_there_are_several_of_is_spread_and_goes_one_by_one(helm: Helm, values: str) -> None:
    found = helm.rendered(values)
    parts = ["StatefulSet/demo-metadata", "Deployment/demo-operator", "Deployment/demo-gateway"]
    pods = dict(pod_specs(found))
    for name in (part for part in parts if part in pods):
        template = _named(found, *name.split("/"))["spec"]["template"]
        labels = template["metadata"]["labels"].items()
        keys = set[str]()
        for spread in template["spec"]["topologySpreadConstraints"]:
            assert spread["labelSelector"]["matchLabels"].items() <= labels
            keys.add(spread["topologyKey"])
        assert keys == {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}, name
        budget = _named(found, "PodDisruptionBudget", name.partition("/")[2])["spec"]
        assert budget["selector"]["matchLabels"].items() <= labels
        assert budget["maxUnavailable"] == 1
        assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


@pytest.mark.parametrize("values", MATRIX)
def test_what_is_mounted_is_there(helm: Helm, values: str) -> None:
    for name, pod in pod_specs(helm.rendered(values)):
        claimed = {"data"} if name in {"StatefulSet/demo-etcd", "StatefulSet/demo-s3"} else set()
        volumes = {volume["name"] for volume in pod["volumes"]} | claimed
        for container in pod["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes, name


@pytest.mark.parametrize("values", MATRIX)
def test_no_right_is_a_wildcard(helm: Helm, values: str) -> None:
    for each in helm.rendered(values):
        for rule in each.get("rules", []) if each["kind"] in {"Role", "ClusterRole"} else []:
            assert "*" not in [*rule["verbs"], *rule["resources"], *rule["apiGroups"]]


@pytest.mark.parametrize("values", MATRIX)
def test_the_processes_take_the_settings_that_they_are_given(helm: Helm, values: str) -> None:
    """By the code that reads them in the pods."""
    found = helm.rendered(values)
    shared = _named(found, "ConfigMap", "demo-settings")["data"]
    members = shared | SECRETS | _environment(_pod(found, "StatefulSet/demo-metadata"))
    if shared["ANABRANCH_AUTH_MODE"] == "kubernetes":
        del members["ANABRANCH_PEER_TOKEN"]
    settings = load(MetadataSettings, {}, members)
    assert settings.cluster == shared["ANABRANCH_CLUSTER"]
    token = {} if settings.peer_tls else {"ANABRANCH_TOKEN": "token"}
    brokers = load(
        BrokerSettings,
        {"advertise": "demo-0.demo-brokers.logs.svc:7420", "tls_ca": "ca"},
        shared | SECRETS | token,
    )
    members_found = _named(found, "StatefulSet", "demo-metadata")["spec"]["replicas"]
    assert len(brokers.metadata) == members_found
    gateways = [pod for name, pod in pod_specs(found) if name == "Deployment/demo-gateway"]
    for gateway in gateways:
        secret = {} if shared["ANABRANCH_AUTH_MODE"] == "kubernetes" else {"ANABRANCH_TOKEN": "t"}
        load(GatewaySettings, {}, shared | _environment(gateway) | secret)


@pytest.mark.parametrize("values", MATRIX)
def test_the_operator_takes_the_settings_that_it_is_given(
    helm: Helm, values: str, tmp_path: Path
) -> None:
    found = helm.rendered(values)
    file = tmp_path / "operator.toml"
    file.write_text(_named(found, "ConfigMap", "demo-operator")["data"]["operator.toml"])
    environment = _environment(_pod(found, "Deployment/demo-operator"))
    assert environment.pop("ANABRANCH_OPERATOR_CONFIG") == "/etc/anabranch/operator.toml"
    settings = operator_settings.load({"config": str(file)}, environment)
    assert settings.release == "demo"
    assert settings.lease in _names(found, "leases")
    wanted = settings.certificates
    secrets = {each.name for each in settings.tokens}
    if wanted.mode is not Mode.OFF:
        secrets |= {leaf.secret for leaf in wanted.leaves} | {wanted.authority}
    assert secrets == set(_names(found, "secrets"))
    if wanted.mode is not Mode.OFF:
        assert wanted.bundle in _names(found, "configmaps")


@pytest.mark.parametrize("values", MATRIX)
def test_the_operator_may_look_at_all_that_it_watches(helm: Helm, values: str) -> None:
    found = helm.rendered(values)
    wide = values == "gke"
    told = _named(found, "ConfigMap", "demo-operator")["data"]["operator.toml"]
    nodes = tomllib.loads(told)["watch_nodes"]
    kinds = watched("logs", "demo-operator", "demo-metadata", everywhere=wide, nodes=nodes)
    everywhere = [rule for kind, rule in _rules(found, "-operator") if kind == "ClusterRole"]
    everywhere += [rule for kind, rule in _rules(found, "-cluster") if kind == "ClusterRole"]
    somewhere = [rule for _, rule in _rules(found, "")]
    for each in kinds:
        resource = RESOURCES[each.kind]
        rules = somewhere if each.namespace else everywhere
        assert any(
            resource.group in rule["apiGroups"]
            and resource.plural in rule["resources"]
            and {"list", "watch"} <= set(rule["verbs"])
            for rule in rules
        ), each


@pytest.mark.parametrize("values", MATRIX)
def test_members_take_brokers_by_a_name_that_only_peers_certificates_bear(
    helm: Helm, values: str
) -> None:
    found = helm.rendered(values)
    told = _environment(_pod(found, "StatefulSet/demo-metadata"))
    certificates = tomllib.loads(
        _named(found, "ConfigMap", "demo-operator")["data"]["operator.toml"]
    )["certificates"]
    if certificates["mode"] == "off":
        assert "ANABRANCH_PEER_NAMES" not in told
        return
    wanted = told["ANABRANCH_PEER_NAMES"].replace("{name}", "*")
    pool = _named(found, "BrokerPool", "demo")["metadata"]["name"]
    assert wanted == f"*.{pool}-brokers.logs.svc"
    mounted = {
        volume["secret"]["secretName"]
        for volume in _pod(found, "StatefulSet/demo-metadata")["volumes"]
        if volume["name"] == "peer"
    }
    (peer,) = (leaf for leaf in certificates["leaves"] if leaf["secret"] in mounted)
    assert wanted in peer["names"]


@pytest.mark.parametrize("values", MATRIX)
def test_every_endpoint_that_is_dialed_by_name_is_in_a_certificate(helm: Helm, values: str) -> None:
    found = helm.rendered(values)
    told = _named(found, "ConfigMap", "demo-operator")["data"]["operator.toml"]
    certificates = tomllib.loads(told)["certificates"]
    if certificates["mode"] == "off":
        return
    names = [name for leaf in certificates["leaves"] for name in leaf["names"]]
    shared = _named(found, "ConfigMap", "demo-settings")["data"]
    dialed = [*shared["ANABRANCH_METADATA"].split(","), "demo.logs.svc:7420"]
    if "demo-etcd" in shared["ANABRANCH_ETCD_ENDPOINTS"]:
        dialed += [shared["ANABRANCH_ETCD_ENDPOINTS"], shared["ANABRANCH_S3_ENDPOINT"]]
    for address in dialed:
        host = re.sub(r"^https?://|:\d+$", "", address)
        assert any(_covers(name, host) for name in names), address


def test_cert_managers_certificate_bears_the_names_of_belfasts_pods(helm: Helm) -> None:
    """Those that the operator looks for in it, as every node checks them at the others."""
    nodes = ["ticks-sequencer-0.ticks-sequencers.logs.svc", "ticks-1-0.ticks-shards.logs.svc"]
    wanted = [f"*.{node.partition('.')[2]}" for node in nodes]
    told = ("--set", f"tls.certManager.brokerNames={{{','.join(wanted)}}}")

    def names(*more: str) -> list[str]:
        found = helm.template(*values_of("own-issuer"), *more)
        return _named(found, "Certificate", "demo-broker")["spec"]["dnsNames"]

    for node in nodes:
        assert not any(_covers(name, node) for name in names())
        assert any(_covers(name, node) for name in names(*told))
    assert names(*told) == [*names(), *wanted]


@pytest.mark.parametrize("values", MATRIX)
def test_whoever_listens_is_let_in_by_a_policy_and_nobody_else(helm: Helm, values: str) -> None:
    found = helm.rendered(values)
    policies = {
        each["metadata"]["name"]: each["spec"] for each in found if each["kind"] == "NetworkPolicy"
    }
    if not policies:
        assert values == "plain"
        return
    everything = policies["demo-default"]
    assert everything["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in everything
    assert "egress" not in everything
    for name, pod in pod_specs(found):
        (part,) = re.findall(r"demo-(\w+)$", name)
        policy = policies[f"demo-{part}"]
        open_to = {port["port"] for rule in policy.get("ingress", []) for port in rule["ports"]}
        listens = {
            port["containerPort"]
            for container in pod["containers"]
            for port in container.get("ports", [])
        }
        # The kubelet's probes are let in by themselves.
        assert listens - {2381} == open_to, name


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ("metadata.replica=3", "replica"),
        ("metadata.replicas=0", "replicas"),
        ("brokers.min=many", "min"),
        ("tls.mode=sometimes", "mode"),
        ("settings.lingerms=5", "lingerms"),
        ("settings.linger_ms=soon", "linger_ms"),
        ("settings.s3_bucket=other", "s3_bucket"),
        ("images.services.digest=sha256:1", "digest"),
        ("gateway.resources.requests.gpu=1", "gpu"),
        ("operator.watch=everything", "watch"),
    ],
)
def test_a_value_that_means_nothing_is_refused(helm: Helm, told: str, says: str) -> None:
    with pytest.raises(Refused, match=says):
        helm.template("--set", "dev.enabled=true", "--set", told)


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ("s3.bucket=logs", "etcd.endpoints"),
        ("etcd.endpoints={etcd:2379}", "s3.bucket"),
        ("dev.enabled=true,s3.bucket=logs", "dev.enabled brings its own"),
        ("dev.enabled=true,auth.mode=token", "auth.existingSecret"),
        ("dev.enabled=true,tls.mode=off", "eviction.enabled=false"),
        ("dev.enabled=true,admission.enabled=false", "gates.enabled=false"),
        ("dev.enabled=true,gates.namespaces={shop}", "operator.watch=cluster"),
        ("dev.enabled=true,brokers.min=9", "brokers.min"),
        (
            "dev.enabled=true,auth.mode=token,auth.existingSecret=t,belfast.auth=kubernetes",
            "auth.mode=kubernetes",
        ),
    ],
)
def test_values_that_do_not_go_together_are_refused(helm: Helm, told: str, says: str) -> None:
    with pytest.raises(Refused, match=re.escape(says)):
        helm.template("--set", told)


@pytest.mark.parametrize("values", MATRIX)
def test_sequencers_find_etcd_as_members_do_unless_no_epochs_are_wanted(
    helm: Helm, values: str
) -> None:
    without = helm.template(*values_of(values), "--set", "belfast.epochs=false")
    assert ("ConfigMap", "demo-belfast") not in _objects(without)
    found = helm.rendered(values)
    told = _named(found, "ConfigMap", "demo-belfast")["data"]
    shared = _named(found, "ConfigMap", "demo-settings")["data"]
    members = shared | SECRETS | _environment(_pod(found, "StatefulSet/demo-metadata"))
    if shared["ANABRANCH_AUTH_MODE"] == "kubernetes":
        del members["ANABRANCH_PEER_TOKEN"]
    wanted = load(MetadataSettings, {}, members).etcd
    own = {"ANABRANCH_DATA": "data", "ANABRANCH_CLUSTER": "ticks", "ANABRANCH_NAME": "ticks-0"}
    sequencer = log_settings.load(log_settings.SequencerSettings, {}, told | own)
    assert sequencer.epochs
    assert sequencer.etcd.endpoints == wanted.endpoints
    for name in ("ca", "cert", "key"):
        theirs, ours = getattr(wanted, name), getattr(sequencer.etcd, name)
        assert Path(ours).name == Path(theirs).name
        assert not ours or ours.startswith("/var/run/anabranch/etcd/")
    shards = log_settings.load(
        log_settings.ShardSettings,
        {"shard": "ticks-0", "sequencers": "127.0.0.1:7440"},
        told | own,
    )
    assert shards.cluster == "ticks"


@pytest.mark.parametrize("epochs", ["true", "false"])
def test_a_belfast_log_may_have_kubernetes_say_who_may_do_what(helm: Helm, epochs: str) -> None:
    told = ("--values", str(CHART / "ci" / "kind.yaml"), "--set", f"belfast.epochs={epochs}")
    plain = helm.template(*told)
    assert ("ServiceAccount", "demo-belfast") not in _objects(plain)
    found = helm.template(*told, "--set", "belfast.auth=kubernetes")
    assert ("ServiceAccount", "demo-belfast") in _objects(found)
    (binding,) = (
        each
        for each in found
        if each["kind"] == "ClusterRoleBinding" and each["metadata"]["name"].endswith("-reviews")
    )
    assert "demo-belfast" in {each["name"] for each in binding["subjects"]}
    data = _named(found, "ConfigMap", "demo-belfast")["data"]
    own = {"ANABRANCH_DATA": "data", "ANABRANCH_CLUSTER": "ticks", "ANABRANCH_NAME": "ticks-0"}
    # The Secret has a token of clients too, which lets nobody in.
    tokens = {"ANABRANCH_TOKEN": "t", "ANABRANCH_PEER_TOKEN": "p"}
    flags = {"shard": "ticks-0", "sequencers": "127.0.0.1:7440"}
    shard = log_settings.load(log_settings.ShardSettings, flags, data | own | tokens)
    sequencer = log_settings.load(log_settings.SequencerSettings, {}, data | own | tokens)
    assert shard.auth.mode is sequencer.auth.mode is AuthMode.KUBERNETES
    assert sequencer.epochs is (epochs == "true")
    shown = "/var/run/anabranch/{}/token"
    for objects, whose in ((plain, "belfast"), (found, "service")):
        told = _named(objects, "ConfigMap", "demo-operator")["data"]["operator.toml"]
        assert tomllib.loads(told)["belfast_token_file"] == shown.format(whose)


def test_a_change_of_settings_rolls_what_reads_them(helm: Helm) -> None:
    told = ("--values", str(CHART / "ci" / "kind.yaml"))
    before = helm.template(*told)
    after = helm.template(*told, "--set", "settings.linger_ms=7")
    data = _named(after, "ConfigMap", "demo-settings")["data"]
    assert data["ANABRANCH_LINGER_MS"] == "7"
    assert data["ANABRANCH_CACHE_BYTES"] == "67108864"
    for kind, name in (("StatefulSet", "demo-metadata"), ("Deployment", "demo-gateway")):
        assert _checksum(before, kind, name) != _checksum(after, kind, name)
    pools = [_named(each, "BrokerPool", "demo")["spec"] for each in (before, after)]
    assert pools[0]["podAnnotations"] != pools[1]["podAnnotations"]


def test_an_upgrade_of_the_operator_alone_rolls_nothing_else(helm: Helm) -> None:
    """The data plane's pods say nothing of the operator's or the chart's version."""
    told = ("--values", str(CHART / "ci" / "kind.yaml"))
    before = helm.template(*told)
    after = helm.template(*told, "--set", "images.operator.tag=0.2.0")
    changed = {
        f"{old['kind']}/{old['metadata']['name']}"
        for old, new in zip(before, after, strict=True)
        if old != new and old["kind"] != "Secret"
    }
    assert changed == {"Deployment/demo-operator"}


def test_prometheus_finds_every_part(helm: Helm) -> None:
    found = helm.rendered("own-issuer")
    monitors = [each for each in found if each["kind"] == "PodMonitor"]
    assert {each["metadata"]["name"] for each in monitors} == {
        "demo-broker",
        "demo-gateway",
        "demo-metadata",
        "demo-operator",
        "demo-sequencer",
        "demo-shard",
    }
    assert all(each["metadata"]["labels"]["release"] == "prometheus" for each in monitors)


def _objects(found: list[Document]) -> list[tuple[str, str]]:
    return [(each["kind"], each["metadata"]["name"]) for each in found]


def _named(found: list[Document], kind: str, name: str) -> Document:
    (one,) = [each for each in found if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return one


def _rules(found: list[Document], suffix: str) -> Iterator[tuple[str, Document]]:
    """Of roles whose names end so, with the kind of the role."""
    for each in found:
        if each["kind"] in {"Role", "ClusterRole"} and each["metadata"]["name"].endswith(suffix):
            for rule in each["rules"]:
                yield each["kind"], rule


def _names(found: list[Document], resource: str) -> list[str]:
    """Of the single objects of a kind that somebody has rights on."""
    return [
        name
        for _, rule in _rules(found, "")
        if resource in rule["resources"]
        for name in rule.get("resourceNames", [])
    ]


def _pod(found: list[Document], name: str) -> Document:
    return dict(pod_specs(found))[name]


def _environment(pod: Document) -> dict[str, Any]:
    (container,) = pod["containers"]
    return {each["name"]: each.get("value", "pod") for each in container.get("env", [])}


def _checksum(found: list[Document], kind: str, name: str) -> str:
    template = _named(found, kind, name)["spec"]["template"]
    return template["metadata"]["annotations"]["checksum/settings"]


def _covers(name: str, host: str) -> bool:
    if name.startswith("*."):
        return host.partition(".")[2] == name[2:]
    return host == name
