"""Evictions, as the API server asks the operator about them."""

import asyncio
import base64
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from tests.certificates import Issuer, certified
from tests.kubernetes.api_server import ApiServer, Refused
from tests.operator.installed import until
from tests.operator.running import Operator, log_service, running, until_one_leads

from anabranch.shell.net.tls import TlsSettings
from anabranch.shell.telemetry.log import Log
from anabranch_operator.handlers.http import Server, certificate

MERGE = "application/merge-patch+json"
POD = {"containers": [{"name": "main", "image": "none"}]}


def members(server: ApiServer, namespace: str, labels: dict[str, str], node: str) -> str:
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
    return pod(server, namespace, meta, nodeName=node)


def pod(server: ApiServer, namespace: str, meta: dict[str, Any], **spec: Any) -> str:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**POD, **spec}}
    server.ask("POST", pods, made)
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


@pytest.fixture
def node(resources: ApiServer, namespace: str) -> Iterator[str]:
    """One that nobody runs pods on, for the pods of this test."""
    name = f"node-{namespace}"
    meta = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    resources.ask("POST", "/api/v1/nodes", meta)
    yield name
    resources.ask("DELETE", f"/api/v1/nodes/{name}")


def shown(folder: Path) -> tuple[Path, TlsSettings]:
    """Where an operator finds its certificate, and what it was made from."""
    files = certified(folder / "made")
    found = folder / "shown"
    found.mkdir()
    Path(files.cert).rename(found / "tls.crt")
    Path(files.key).rename(found / "tls.key")
    return found, files


def test_a_pod_of_a_node_that_is_drained_is_put_off_until_the_deadline_and_others_go_at_once(
    resources: ApiServer, namespace: str, node: str, tmp_path: Path
) -> None:
    folder, files = shown(tmp_path)
    with log_service(tmp_path) as service:
        operator = Operator(
            resources,
            namespace,
            tmp_path,
            "operator",
            service=service,
            webhook_port=0,
            webhook_dir=folder,
            watch_nodes=True,
            eviction_s=10,
        )
        with running(operator):
            until_one_leads(operator)
            address = operator.found().webhook
            assert address is not None
            member = members(resources, namespace, {"anabranch.dev/role": "metadata"}, node)
            other = pod(resources, namespace, {"name": "other"})
            until(lambda: operator.figure(SEEN) >= 1 or None, "the operator has seen the pod")
            with asked(resources, namespace, address, Path(files.ca).read_bytes()):

                def told() -> str | None:
                    """A webhook is asked a moment after it was named; until then any pod goes."""
                    return refusal(resources, member, dry=True)

                assert "cordon the node" in until(told, "the webhook is asked")
                assert "cordon the node" in str(refusal(resources, member))
                resources.kubectl("cordon", node)

                def believed() -> bool | None:
                    return "hands over" in str(refusal(resources, member)) or None

                until(believed, "the operator has seen that the node is cordoned")
                assert refusal(resources, other) is None
                assert is_gone(resources, other)

                def goes() -> bool | None:
                    return True if refusal(resources, member) is None else None

                until(goes, "the deadline has passed")
                assert is_gone(resources, member)


def test_with_an_authority_for_callers_nobody_else_is_let_in(tmp_path: Path) -> None:
    asyncio.run(_calls(tmp_path))


async def _calls(tmp_path: Path) -> None:
    folder, files = shown(tmp_path)
    callers = Issuer(tmp_path / "callers", "callers")

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="asked")

    tls = await certificate(folder, str(callers.folder / "ca"), Log(lambda: 0))
    server = Server([web.post("/evictions", answer)])
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"https://127.0.0.1:{listener.getsockname()[1]}/evictions"
    await server.answer(listener, tls)
    try:
        async with aiohttp.ClientSession() as session:
            trusted = ssl.create_default_context(cafile=files.ca)
            with pytest.raises(aiohttp.ClientError):
                async with session.post(url, ssl=trusted):
                    pass
            known = callers.issue("api-server")
            trusted.load_cert_chain(known.cert, known.key)
            async with session.post(url, ssl=trusted) as response:
                assert await response.text() == "asked"
    finally:
        await server.stop()


SEEN = 'anabranch_operator_watch_events_total{kind="Pod"}'
