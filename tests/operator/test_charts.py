"""The charts against a real API server: every render is taken, and nothing declared is lost."""

import base64
import json
from collections.abc import Sequence
from typing import Any

import pytest
from tests.charts.helm import CHART, CRDS, MATRIX, Document, Helm, Refused, pod_specs, values_of
from tests.kubernetes.api_server import ApiServer
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.fixtures import needs
from tests.operator.installed import until_served

from anabranch_operator.api.names import API_VERSION, FIELD_MANAGER, PLURALS

OTHERS = ("cert-manager.io/", "monitoring.coreos.com/")
"""Kinds of other projects, whose CRDs aren't here."""
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}

LOG = {"apiVersion": "anabranch.dev/v1alpha1", "kind": "Log", "metadata": {"name": "orders"}}
FORK = {
    "apiVersion": "anabranch.dev/v1alpha1",
    "kind": "Fork",
    "metadata": {"name": "what-if"},
    "spec": {"parent": {"name": "orders"}},
}


@pytest.fixture(scope="session")
def helm() -> Helm:
    needs("helm")
    return Helm()


@pytest.mark.parametrize("values", MATRIX)
def test_the_api_server_takes_every_render(resources: ApiServer, helm: Helm, values: str) -> None:
    namespace = resources.namespace("chart", RESTRICTED)
    found = helm.template(*values_of(values), namespace=namespace)
    _make_accounts(resources, namespace, found)
    ours = [each for each in found if not each["apiVersion"].startswith(OTHERS)]
    assert len(ours) > 20
    told = json.dumps({"apiVersion": "v1", "kind": "List", "items": ours})
    how = ("--server-side", "--dry-run=server", "--namespace", namespace, "-f", "-")
    said = resources.kubectl("apply", *how, given=told)
    assert said.count("serverside-applied") == len(ours)


@pytest.mark.parametrize("values", MATRIX)
def test_every_pod_is_let_into_a_restricted_namespace(
    resources: ApiServer, helm: Helm, values: str
) -> None:
    namespace = resources.namespace("chart", RESTRICTED)
    found = helm.template(*values_of(values), namespace=namespace)
    _make_accounts(resources, namespace, found)
    for name, spec in pod_specs(found):
        spec.pop("priorityClassName", None)
        _post(resources, namespace, "pods?dryRun=All", _pod(name, spec))


def test_what_is_declared_survives_upgrades_and_uninstalling(
    own_api_server: ControlPlane, helm: Helm
) -> None:
    server = own_api_server.api
    namespace = server.namespace("logs")
    where = ("--namespace", namespace, "--kubeconfig", str(server.kubeconfig))
    install = ("install", "demo", str(CHART), *values_of("kind"), *where)
    with pytest.raises(Refused, match="install the chart anabranch-crds first"):
        helm.run(*install)

    helm.run("install", "anabranch-crds", str(CRDS), *where)
    for plural in PLURALS.values():
        until_served(server, f"/apis/{API_VERSION}/{plural}")
    helm.run(*install)
    for each in (LOG, FORK):
        server.kubectl("apply", "--namespace", namespace, "-f", "-", given=json.dumps(each))
    webhook = f"{HOOKS}/{namespace}-demo-eviction"
    trusted = _trust(server, webhook)
    before = _uids(server, namespace)
    # As an earlier chart made it, which left it to Helm.
    key = base64.b64encode(b"an earlier chart's").decode()
    meta = {
        "name": "demo-s3",
        "labels": {"app.kubernetes.io/managed-by": "Helm"},
        "annotations": {
            "meta.helm.sh/release-name": "demo",
            "meta.helm.sh/release-namespace": namespace,
        },
    }
    earlier = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"key": key}}
    server.ask("POST", f"/api/v1/namespaces/{namespace}/secrets", earlier)

    helm.run("upgrade", "anabranch-crds", str(CRDS), *where, "--set", "labels.team=logs")
    changed = ("--set", "brokers.max=6")
    helm.run("upgrade", "demo", str(CHART), *values_of("kind"), *where, *changed)
    assert _get(server, namespace, "brokerpool/demo")["spec"]["max"] == 6
    assert _uids(server, namespace) == before
    helm.run("upgrade", "demo", str(CHART), *values_of("kind"), *where, *changed)
    assert _get(server, namespace, "secret/demo-s3")["data"] == {"key": key}, "it is kept"
    (hook,) = server.ask("GET", webhook)["webhooks"]
    assert hook["clientConfig"]["caBundle"] == trusted, "it is the operator's, not the chart's"
    assert hook["failurePolicy"] == "Ignore"

    helm.run("uninstall", "demo", *where)
    helm.run("uninstall", "anabranch-crds", *where)
    declared = {key: uid for key, uid in before.items() if not key.startswith("BrokerPool")}
    assert len(declared) == 2
    assert _uids(server, namespace) == declared


def _trust(server: ApiServer, webhook: str) -> str:
    """As the operator tells the API server whom to trust; what it told."""
    bundle = base64.b64encode(server.ca.read_bytes()).decode()
    told = {"name": "eviction.anabranch.dev", "clientConfig": {"caBundle": bundle}}
    manifest = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": webhook.rpartition("/")[2]},
        "webhooks": [told],
    }
    server.apply(webhook, manifest, FIELD_MANAGER, force=True)
    return bundle


def _make_accounts(server: ApiServer, namespace: str, found: Sequence[Document]) -> None:
    """A pod is refused whose account isn't there, a dry run's as well."""
    for each in found:
        if each["kind"] == "ServiceAccount":
            _post(server, namespace, "serviceaccounts", each)


def _pod(name: str, spec: Document) -> Document:
    metadata = {"name": name.lower().replace("/", "-")}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _with_claims(spec)}


def _with_claims(spec: Document) -> Document:
    """What a StatefulSet would add."""
    volumes = [*spec["volumes"]]
    mounted = {mount["name"] for each in spec["containers"] for mount in each["volumeMounts"]}
    if "data" in mounted - {volume["name"] for volume in volumes}:
        volumes.append({"name": "data", "persistentVolumeClaim": {"claimName": "data"}})
    return {**spec, "volumes": volumes}


def _post(server: ApiServer, namespace: str, where: str, manifest: Document) -> None:
    server.ask("POST", f"/api/v1/namespaces/{namespace}/{where}", manifest)


def _get(server: ApiServer, namespace: str, name: str) -> Any:
    return json.loads(server.kubectl("get", "--namespace", namespace, name, "-o", "json"))


def _uids(server: ApiServer, namespace: str) -> dict[str, str]:
    kinds = "logs.anabranch.dev,forks.anabranch.dev,brokerpools.anabranch.dev"
    found = _get(server, namespace, kinds)["items"]
    return {f"{each['kind']}/{each['metadata']['name']}": each["metadata"]["uid"] for each in found}
