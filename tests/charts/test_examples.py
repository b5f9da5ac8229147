"""What the examples of logs with sequencers ask for is what a release of the chart has."""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import convert
from tests.certificates import Issuer
from tests.charts.helm import RELEASE, Document, Helm, pod_specs, values_of

from anabranch.apps.pods.log_settings import SequencerSettings, ShardSettings, load
from anabranch.client.session.endpoint import belfast_endpoint, endpoint
from anabranch.core.storage.black_box_address import BlackBoxAddress
from anabranch.shell.authority.settings import AuthMode
from anabranch.shell.kafka.access import KafkaAccess
from anabranch_operator.api import names
from anabranch_operator.api.log import LogSpec
from anabranch_operator.api.sequencers import SequencerSetSpec, SequencerSetStatus
from anabranch_operator.api.shards import ShardGroupSpec, ShardGroupStatus
from anabranch_operator.plan.engine.objects import observe
from anabranch_operator.plan.engine.world import Sequencers, Shards
from anabranch_operator.plan.groups import sequencer_pod, shard_pod
from anabranch_operator.plan.groups.engines import ENGINES

EXAMPLES = Path(__file__).parents[2] / "examples" / "kubernetes"
EARNEST, TRIAL, CLIENT = "belfast", "belfast-trial", "belfast-client"
ERWIN, KAFKA = "erwin", "erwin-kafka"
NAMESPACE = "default"
OF_A_TRIAL = ("kind", "minikube")
CORES, KUBERNETES = 2.0, 0.75
"""What minikube takes of a machine, and what its own pods ask for of that."""


@pytest.mark.parametrize("example", [EARNEST, TRIAL])
@pytest.mark.parametrize("values", OF_A_TRIAL)
def test_all_that_a_belfast_log_names_is_of_the_release(
    helm: Helm, values: str, example: str
) -> None:
    found = _rendered(helm, values)
    for each in _shown(example):
        spec, config = each["spec"], each["spec"]["config"]
        assert set(config["secrets"]) <= _tokens(found).keys()
        if "configMap" in config:
            assert config["configMap"] in _names(found, "ConfigMap")
        for name in {"tlsSecret", "etcdTlsSecret"} & spec.keys():
            assert spec[name] in _certificates(found)
        (image,) = {
            container["image"]
            for name, pod in pod_specs(found)
            if name == f"StatefulSet/{RELEASE}-metadata"
            for container in pod["containers"]
        }
        assert spec["image"] == image


@pytest.mark.parametrize("example", [EARNEST, TRIAL])
def test_its_processes_take_what_they_are_given(helm: Helm, example: str) -> None:
    """In earnest terms are kept in etcd; a trial's volumes go with it, and it may begin anew."""
    found, (log, group) = _rendered(helm, "kind"), _declared(example)
    pod = sequencer_pod.pod(
        log, "ticks-sequencer-1", ENGINES[log.spec.engine].sequencer_settings(log)
    )
    sequencer = load(SequencerSettings, {}, _environment(found, pod))
    assert sequencer.epochs is (example == EARNEST)
    mounts = [each["mountPath"] for each in pod["spec"]["containers"][0]["volumeMounts"]]
    for file in (sequencer.etcd.ca, sequencer.etcd.cert, sequencer.etcd.key):
        assert bool(file) is sequencer.epochs
        assert not file or str(Path(file).parent) in mounts
    pod = shard_pod.pod(
        group, log, 0, "ticks-0-1", ENGINES[group.spec.engine].shard_settings(group, 0)
    )
    shard = load(ShardSettings, {}, _environment(found, pod))
    assert (shard.cluster, shard.sequencers) == (sequencer.cluster, sequencer.members)
    assert shard.token == sequencer.token


@pytest.mark.parametrize("values", OF_A_TRIAL)
def test_a_trial_has_room_on_one_node_beside_the_release(helm: Helm, values: str) -> None:
    asked, (log, group) = 0.0, _declared(TRIAL)
    for each in _rendered(helm, values):
        spec = each.get("spec", {})
        if "template" in spec:
            (container,) = spec["template"]["spec"]["containers"]
            asked += spec.get("replicas", 1) * _cores(container["resources"])
        if each["kind"] == names.POOL:
            asked += spec["min"] * _cores(spec["resources"])
    asked += log.spec.members * _cores(log.spec.resources)
    asked += (group.spec.shards + 1) * group.spec.copies * _cores(group.spec.resources)
    assert asked <= CORES - KUBERNETES
    for spec in (log.spec, group.spec):
        assert spec.topology.hosts == "Preferred"


def test_the_client_dials_the_trial_with_the_releases_token(helm: Helm) -> None:
    found, (log, _) = _rendered(helm, "kind"), _declared(TRIAL)
    (pod,) = (each["spec"] for each in _shown(CLIENT))
    (container,) = pod["containers"]
    (url,) = (each["value"] for each in container["env"] if each["name"] == "ANABRANCH_URL")
    assert url.partition("?")[0] == sequencer_pod.url(log)
    assert str(belfast_endpoint(url)).partition("?")[0] == sequencer_pod.url(log)
    (volume,) = pod["volumes"]
    (mount,) = container["volumeMounts"]
    files = dict[str, str]()
    for source in volume["projected"]["sources"]:
        ((kind, told),) = source.items()
        for item in told["items"]:
            files[f"{mount['mountPath']}/{item['path']}"] = f"{kind} {told['name']} {item['key']}"
    assert files == {
        "/var/run/anabranch/token": f"secret {RELEASE}-belfast ANABRANCH_TOKEN",
        "/var/run/anabranch/ca.crt": f"configMap {RELEASE}-ca ca.crt",
    }
    assert _operators(found)["bundle"] == f"{RELEASE}-ca"
    assert {f"token_file={next(iter(files))}", "ca=/var/run/anabranch/ca.crt"} == set(
        url.partition("?")[2].split("&")
    )


def test_the_way_to_kafka_that_an_example_shows_is_taken(tmp_path: Path) -> None:
    (secret,) = (each for each in _shown(KAFKA) if each["kind"] == "Secret")
    (log,) = (each for each in _shown(KAFKA) if each["kind"] == names.LOG)
    for name, content in secret["stringData"].items():
        (tmp_path / name).write_text(content)
    # Whose authority it is, nobody but its user can say.
    (tmp_path / "ca.crt").write_text(Issuer(tmp_path / "authority").certificate)
    box = log["spec"]["shards"]["template"]["blackBox"]
    assert box["accessSecret"] == secret["metadata"]["name"]
    servers = BlackBoxAddress.of_log(box["url"]).servers
    shown = KafkaAccess(servers, str(tmp_path / "kafka.toml")).current()
    assert shown["security_protocol"] == "SASL_SSL"


@pytest.mark.parametrize("example", [ERWIN, KAFKA])
def test_an_erwin_log_finds_all_that_it_names_in_the_release(helm: Helm, example: str) -> None:
    found = _rendered(helm, "kind", "--set", "belfast.auth=kubernetes")
    (declared,) = (each for each in _shown(example) if each["kind"] == names.LOG)
    spec = convert(declared["spec"], LogSpec)
    assert spec.sequencers is not None
    assert spec.shards is not None
    templates = (spec.sequencers.template, spec.shards.template)
    accounts = {each["metadata"]["name"] for each in found if each["kind"] == "ServiceAccount"}
    for each in templates:
        assert each is not None
        assert set(each.config.secrets) <= _tokens(found).keys()
        assert each.config.config_map in _names(found, "ConfigMap")
        assert each.tls_secret in _certificates(found)
        assert each.service_account_name in accounts
    told = _named(found, "ConfigMap", f"{RELEASE}-erwin")["data"]
    own = {"ANABRANCH_DATA": "data", "ANABRANCH_CLUSTER": "c", "ANABRANCH_NAME": "n"}
    engine = {"ANABRANCH_ENGINE": "erwin"}
    tokens = {"ANABRANCH_TOKEN": "t", "ANABRANCH_PEER_TOKEN": "p"}
    flags = {"configurations": "etcd"}
    sequencer = load(SequencerSettings, flags, {**told, **own, **engine, **tokens})
    assert sequencer.auth.mode is AuthMode.KUBERNETES
    assert sequencer.etcd.ca.startswith("/var/run/anabranch/etcd/")
    flags = {"shard": "s-0", "sequencers": "127.0.0.1:7440"}
    shard = load(ShardSettings, flags, {**told, **own, **engine, **tokens})
    assert shard.auth.mode is AuthMode.KUBERNETES


@pytest.mark.parametrize("auth", ["kubernetes", "token"])
def test_a_lazy_log_finds_all_that_it_names_in_the_release(helm: Helm, auth: str) -> None:
    more = ("--set", f"auth.mode={auth}", "--set", "auth.existingSecret=tokens")
    asking = ("--set", "belfast.auth=kubernetes") if auth == "kubernetes" else more
    found = _rendered(helm, "kind", *asking)
    (declared,) = _shown("lazy")
    spec = convert(declared["spec"], LogSpec)
    assert spec.sequencers is not None
    template = spec.sequencers.template
    assert template is not None
    assert set(template.config.secrets) <= _tokens(found).keys()
    assert template.config.config_map in _names(found, "ConfigMap")
    assert template.tls_secret in _certificates(found)
    account = template.service_account_name
    assert (account in _names(found, "ServiceAccount")) is (auth == "kubernetes")
    made = {"engine": "lazy", **declared["spec"]["sequencers"]["template"]}
    meta = {
        **declared["metadata"],
        "namespace": NAMESPACE,
        "uid": "u",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {names.LOG_ID: "7"},
    }
    object = observe({"kind": names.SEQUENCERS, "metadata": meta, "spec": made})
    group = Sequencers(object, convert(made, SequencerSetSpec), SequencerSetStatus())
    engine = ENGINES[group.spec.engine]
    pod = sequencer_pod.pod(
        group,
        "clicks-sequencer-1",
        engine.sequencer_settings(group),
        engine.sequencer_volumes(group),
    )
    sequencer = load(SequencerSettings, {}, _environment(found, pod))
    assert sequencer.log_id == 7
    assert (sequencer.auth.mode is AuthMode.KUBERNETES) is (auth == "kubernetes")
    service = endpoint(sequencer.service)
    assert str(service).partition("?")[0] == f"anabranchs://{RELEASE}.{NAMESPACE}.svc:7420"
    mounts = [each["mountPath"] for each in pod["spec"]["containers"][0]["volumeMounts"]]
    query = dict(each.split("=") for each in sequencer.service.partition("?")[2].split("&"))
    assert all(str(Path(file).parent) in mounts for file in query.values())
    ordering = [
        (each["metadata"]["name"], rule["verbs"])
        for each in found
        if each["kind"] in ("Role", "ClusterRole")
        for rule in each["rules"]
        if "order" in rule["verbs"]
    ]
    assert ordering == ([(account, ["order"])] if auth == "kubernetes" else [])


def _rendered(helm: Helm, values: str, *more: str) -> list[Document]:
    return helm.template(*values_of(values), *more, namespace=NAMESPACE)


def _shown(example: str) -> Iterator[Document]:
    yield from yaml.safe_load_all((EXAMPLES / f"{example}.yaml").read_text(encoding="utf-8"))


def _declared(example: str) -> tuple[Sequencers, Shards]:
    """As the operator has them."""
    log, group = _shown(example)
    made = {
        "namespace": NAMESPACE,
        "uid": "u",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    seen = [observe({**each, "metadata": {**each["metadata"], **made}}) for each in (log, group)]
    return (
        Sequencers(seen[0], convert(log["spec"], SequencerSetSpec), SequencerSetStatus()),
        Shards(seen[1], convert(group["spec"], ShardGroupSpec), ShardGroupStatus()),
    )


def _environment(found: list[Document], pod: Mapping[str, Any]) -> dict[str, str]:
    """Of its process; Secrets hold what they hold."""
    (container,) = pod["spec"]["containers"]
    told = dict[str, str]()
    for source in container["envFrom"]:
        ((reference, named),) = source.items()
        if reference == "secretRef":
            told |= dict.fromkeys(_tokens(found)[named["name"]], "token")
        else:
            told |= _named(found, "ConfigMap", named["name"])["data"]
    return told | {each["name"]: each["value"] for each in container["env"]}


def _cores(resources: Document) -> float:
    asked = str(resources["requests"]["cpu"])
    return float(asked.removesuffix("m")) / 1_000 if asked.endswith("m") else float(asked)


def _operators(found: list[Document]) -> Document:
    """The operator's settings for certificates."""
    return _settings(found)["certificates"]


def _tokens(found: list[Document]) -> dict[str, list[str]]:
    """The Secrets with tokens that the operator makes, and the keys of their tokens."""
    return {each["name"]: each["tokens"] for each in _settings(found)["tokens"]}


def _settings(found: list[Document]) -> Document:
    told = _named(found, "ConfigMap", f"{RELEASE}-operator")["data"]["operator.toml"]
    return tomllib.loads(told)


def _certificates(found: list[Document]) -> set[str]:
    return {leaf["secret"] for leaf in _operators(found)["leaves"]}


def _names(found: list[Document], kind: str) -> set[str]:
    return {each["metadata"]["name"] for each in found if each["kind"] == kind}


def _named(found: list[Document], kind: str, name: str) -> Document:
    (one,) = (each for each in found if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return one
