"""A whole cluster for one benchmark, on fresh folders: started, found, measured, ended."""

import os
import shutil
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Protocol

import msgspec

import anabranch
from anabranch.apps.processes.cluster import LocalCluster, Pod
from anabranch.apps.processes.layout import Pair, Shape, settle
from anabranch.apps.processes.ports import HOST, free_ports
from anabranch.core.bolt.protocol.commands import Description
from anabranch.shell.etcd.api.client import EtcdClient
from anabranch.shell.etcd.api.settings import EtcdSettings
from anabranch.shell.objects.s3.settings import S3Settings
from benchmarks.cluster import slow_store
from benchmarks.cluster.cores import prefer
from benchmarks.cluster.slow_store import Latency
from benchmarks.cluster.worker import at_work
from benchmarks.report import SCRATCH

_ANSWER_S = 10.0


class Far(msgspec.Struct, frozen=True):
    """What a request to the bucket waits before it is served."""

    put: Latency
    get: Latency


class Probed(Protocol):
    @property
    def pair(self) -> Pair: ...


class _Readiness(msgspec.Struct):
    role: str
    ready: bool


class Cluster:
    """One that runs."""

    def __init__(self, local: LocalCluster, endpoint: str) -> None:
        self.local = local
        self.layout = local.layout
        self._endpoint = endpoint

    @property
    def url(self) -> str:
        return self.layout.url

    def connect(self) -> "anabranch.Service":
        return anabranch.connect(self.url, timeout=60)

    def broker_of(self, log: Description) -> Pod:
        """Who serves a log best."""
        return next(pod for pod in self.local.brokers if pod.pair.address == log.address)

    def leader(self) -> Pod | None:
        """The metadata member that leads, if one says so."""
        for member in self.local.metadata:
            if member.running:
                said = msgspec.json.decode(_asked(member.pair.probes, "/readyz"), type=_Readiness)
                if said.role == "leader":
                    return member
        return None

    def etcd(self) -> EtcdClient:
        return EtcdClient(EtcdSettings(endpoints=tuple(self.local.etcd.addresses)))

    @property
    def journal(self) -> bytes:
        """What the keys of all entries begin with."""
        return f"/anabranch/{self.layout.cluster}/journal/".encode()

    def bucket(self) -> S3Settings:
        """The bucket as its pods reach it."""
        server = self.local.s3
        return S3Settings(
            bucket=self.layout.bucket,
            endpoint=self._endpoint,
            region=server.region,
            access_key=server.access_key,
            secret_key=server.secret_key,
        )


def counted(pod: Probed) -> dict[str, float]:
    """A pod's metrics that have no labels, by name without the prefix."""
    return {
        name.removeprefix("anabranch_").removesuffix("_total"): value
        for name, value in _numbers(_asked(pod.pair.probes, "/metrics").decode()).items()
    }


def etcd_counted(cluster: Cluster) -> dict[str, float]:
    """The first member's metrics that have no labels."""
    port = cluster.layout.etcd[2]
    return _numbers(_asked(port, "/metrics").decode())


def _numbers(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        if name and not line.startswith("#") and "{" not in name:
            found[name] = float(value)
    return found


def _asked(port: int, path: str) -> bytes:
    connection = HTTPConnection(HOST, port, timeout=_ANSWER_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    finally:
        connection.close()


@contextmanager
def scratch() -> Generator[Path]:
    """A folder on a real disk for what a benchmark starts, gone afterwards."""
    SCRATCH.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="cluster-", dir=SCRATCH))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def running(
    shape: Shape | None = None,
    settings: Mapping[str, str] | None = None,
    far: Far | None = None,
    brokers: Sequence[str] = (),
) -> Generator[Cluster]:
    """With an etcd that syncs every transaction. `far`: how slow the way to the bucket is;
    `brokers`: what they are called.
    """
    with scratch() as folder, ExitStack() as stack:
        told = dict(settings or {})
        layout = settle(folder, shape or Shape(brokers=2))
        endpoint = f"http://{HOST}:{layout.s3_port}"
        if far is not None:
            (port,) = free_ports(1)
            plan = slow_store.Plan(port=port, upstream=layout.s3_port, put=far.put, get=far.get)
            stack.enter_context(at_work(slow_store.MODULE, plan, type(None)))
            endpoint = told["ANABRANCH_S3_ENDPOINT"] = f"http://{HOST}:{port}"
        local = LocalCluster(folder, layout, {}, with_gateway=False, settings=told, brokers=brokers)
        stack.callback(local.kill)
        local.start(lambda _: None)
        prefer(os.getsid(0), *(process.pid for process in local.processes))
        yield Cluster(local, endpoint)
