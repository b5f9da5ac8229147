"""An API server, a log service of processes, and operators: what the operator's benchmarks run on.

Brokers are processes of this machine; a pod that says it is ready stands for each, since nobody
here runs pods. Everything else is as on a cluster.
"""

import asyncio
import json
import os
import re
import ssl
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
from tests.kubernetes.api_server import ApiServer
from tests.kubernetes.control_plane import ControlPlane
from tests.operator.installed import resources_of
from tests.operator.running import Operator

from anabranch.apps.processes.layout import Shape
from anabranch_operator.api import names
from benchmarks.cluster.cores import prefer
from benchmarks.cluster.local import Cluster, running, scratch
from benchmarks.timing import now

LOG = "orders"
BROKERS = 2
PYTHON = "BENCH_OPERATOR_PYTHON"
"""Of an environment with the packages of the operator's image, and ours."""

_API = f"/apis/{names.API_VERSION}/namespaces"
_APPLY = "?fieldManager=kubectl&force=true"
_AT_ONCE = 32

Document = dict[str, Any]


class Installation:
    def __init__(self, api: ApiServer, namespace: str, cluster: Cluster, folder: Path) -> None:
        self.api = api
        self.namespace = namespace
        self.cluster = cluster
        self.folder = folder

    def operator(self, name: str = "operator") -> Operator:
        url = self.cluster.url
        python = os.environ.get(PYTHON, sys.executable)
        folder = self.folder
        return Operator(self.api, self.namespace, folder, name, service=url, python=python)

    @asynccontextmanager
    async def user(self) -> AsyncGenerator["User"]:
        tls = ssl.create_default_context(cafile=str(self.api.ca))
        tls.load_cert_chain(self.api.folder / "admin.crt", self.api.folder / "admin.key")
        connector = aiohttp.TCPConnector(limit=_AT_ONCE + 1, ssl=tls)
        unlimited = aiohttp.ClientTimeout(total=None)
        base = aiohttp.ClientSession(self.api.url, connector=connector, timeout=unlimited)
        async with base as session:
            user = User(session, self.namespace)
            watching = asyncio.create_task(user.watch())
            try:
                yield user
            finally:
                watching.cancel()


class User:
    """Applies forks and sees when they are ready."""

    def __init__(self, session: aiohttp.ClientSession, namespace: str) -> None:
        self._session = session
        self._path = f"{_API}/{namespace}"
        self._ready: dict[str, asyncio.Future[int]] = {}
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def watch(self) -> None:
        path = f"{self._path}/forks?watch=1"
        async with self._session.get(path) as answer:
            async for line in answer.content:
                seen = json.loads(line)["object"]
                waiting = self._ready.get(seen["metadata"]["name"])
                if waiting is not None and not waiting.done() and _is_ready(seen):
                    waiting.set_result(now())

    async def declare_log(self) -> None:
        body = {"apiVersion": names.API_VERSION, "kind": "Log", "metadata": {"name": LOG}}
        await self._apply("logs", LOG, body)

    async def fork(self, name: str) -> float:
        """Apply one; how many ms until it was seen to be ready."""
        ready = self._ready[name] = asyncio.get_running_loop().create_future()
        body = {
            "apiVersion": names.API_VERSION,
            "kind": "Fork",
            "metadata": {"name": name},
            "spec": {"parent": {"name": LOG}},
        }
        async with self._turns:
            began = now()
            await self._apply("forks", name, body)
        return (await ready - began) / 1e6

    async def _apply(self, plural: str, name: str, body: Document) -> None:
        path = f"{self._path}/{plural}/{name}{_APPLY}"
        headers = {"Content-Type": "application/apply-patch+yaml"}
        async with self._session.patch(path, json=body, headers=headers) as answer:
            assert answer.status < 300, await answer.text()


@contextmanager
def installed(metadata: int) -> Generator[Installation]:
    with scratch() as folder:
        plane = ControlPlane(folder / "plane", synced=True)
        try:
            plane.start()
            prefer(*(server.pid for server in plane.servers.values()))
            api = resources_of(plane.api)
            namespace = api.namespace("logs")
            brokers = [_pod(api, namespace, number) for number in range(BROKERS)]
            shape = Shape(metadata=metadata, brokers=BROKERS)
            with running(shape, brokers=brokers) as cluster:
                yield Installation(api, namespace, cluster, folder)
        finally:
            plane.kill()


def memory_mib(pid: int, what: str) -> float:
    """`VmRSS` is what it has, `VmHWM` the most that it had."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(rf"^{what}:\s*(\d+) kB", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1_024


def _pod(api: ApiServer, namespace: str, number: int) -> str:
    """What its broker is called."""
    name = f"broker-{number}"
    path = f"/api/v1/namespaces/{namespace}/pods"
    container = {"name": "broker", "image": "anabranch/anabranch"}
    metadata = {"name": name, "labels": {names.ROLE: names.BROKER}}
    spec = {"containers": [container], "automountServiceAccountToken": False}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    made = api.ask("POST", path, body)
    address = f"10.1.0.{number + 1}"
    status = {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    merge = "application/merge-patch+json"
    api.ask("PATCH", f"{path}/{name}/status", {"status": status}, content=merge)
    return f"{name}.{made['metadata']['uid']}"


def _is_ready(seen: Document) -> bool:
    said = seen.get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in said)
