"""Evictions, as the API server asks the operator about them."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.certificates import certified
from tests.kubernetes.api_server import ApiServer, Refused
from tests.operator.installed import until
from tests.operator.running import Operator, log_service, running, until_one_leads

MERGE = "application/merge-patch+json"
POD = {"containers": [{"name": "main", "image": "none"}]}


def members(server: ApiServer, namespace: str, labels: dict[str, str]) -> str:
    """A StatefulSet of three of which there is one pod, ready: that can't be spared. Its path."""
    template = {"metadata": {"labels": labels}, "spec": POD}
    made = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "demo-metadata"},
        "spec": {
            "replicas": 3,
            "serviceName": "demo-metadata",
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "OnDelete"},
            "template": template,
        },
    }
    sets = server.ask("POST", f"/apis/apps/v1/namespaces/{namespace}/statefulsets", made)
    owner = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": "demo-metadata",
        "uid": sets["metadata"]["uid"],
        "controller": True,
    }
    meta = {"name": "demo-metadata-0", "labels": labels, "ownerReferences": [owner]}
    return pod(server, namespace, meta)


def pod(server: ApiServer, namespace: str, meta: dict[str, Any]) -> str:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    server.ask("POST", pods, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": POD})
    path = f"{pods}/{meta['name']}"
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"}
    server.ask("PATCH", f"{path}/status", {"status": ready}, content=MERGE)
    return path


def refusal(server: ApiServer, path: str, *, dry: bool = False) -> str | None:
    """Why the pod may not go yet; None: it goes."""
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": path.rpartition("/")[2]},
    }
    try:
        server.ask("POST", f"{path}/eviction" + "?dryRun=All" * dry, eviction)
    except Refused as refused:
        if refused.code != 429:
            raise
        return str(refused)
    return None


def is_gone(server: ApiServer, path: str) -> bool:
    try:
        return "deletionTimestamp" in server.ask("GET", path)["metadata"]
    except Refused as refused:
        return refused.code == 404


@contextmanager
def asked(server: ApiServer, namespace: str, address: str, authority: bytes) -> Iterator[None]:
    """The API server asks there before a pod of this namespace is evicted."""
    name = f"{namespace}-eviction"
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    webhook = {
        "name": "eviction.anabranch.dev",
        "failurePolicy": "Ignore",
        "sideEffects": "NoneOnDryRun",
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods/eviction"],
            }
        ],
        "clientConfig": {
            "url": f"https://{address}/evictions",
            "caBundle": base64.b64encode(authority).decode(),
        },
    }
    kind = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
    }
    server.ask("POST", path, {**kind, "metadata": {"name": name}, "webhooks": [webhook]})
    try:
        yield
    finally:
        server.ask("DELETE", f"{path}/{name}")


def test_a_pod_that_cant_be_spared_is_put_off_until_the_deadline_and_others_go_at_once(
    resources: ApiServer, namespace: str, tmp_path: Path
) -> None:
    files = certified(tmp_path / "made")
    shown = tmp_path / "shown"
    shown.mkdir()
    Path(files.cert).rename(shown / "tls.crt")
    Path(files.key).rename(shown / "tls.key")
    with log_service(tmp_path) as service:
        operator = Operator(
            resources,
            namespace,
            tmp_path,
            "operator",
            service=service,
            webhook_port=0,
            webhook_dir=shown,
            eviction_s=25,
        )
        with running(operator):
            until_one_leads(operator)
            address = operator.found().webhook
            assert address is not None
            member = members(resources, namespace, {"anabranch.dev/role": "metadata"})
            other = pod(resources, namespace, {"name": "other"})
            until(lambda: operator.figure(SEEN) >= 1 or None, "the operator has seen the pod")
            with asked(resources, namespace, address, Path(files.ca).read_bytes()):

                def told() -> str | None:
                    """A webhook is asked a moment after it was named; until then any pod goes."""
                    return refusal(resources, member, dry=True)

                assert "ask again" in until(told, "the webhook is asked")
                assert "hands over" in str(refusal(resources, member))
                assert refusal(resources, other) is None
                assert is_gone(resources, other)

                def goes() -> bool | None:
                    return True if refusal(resources, member) is None else None

                until(goes, "the deadline has passed")
                assert is_gone(resources, member)


SEEN = 'anabranch_operator_watch_events_total{kind="Pod"}'
