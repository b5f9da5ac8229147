"""Members and brokers as processes, started by the command line, for tests of how they live."""

import itertools
import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
from msgspec.structs import asdict
from tests.integration.cli_server import ANABRANCH
from tests.servers import bucket_of

import anabranch
from anabranch.apps.pods.pod import Endpoint
from anabranch.apps.processes.servers import EtcdServer, S3Server, ServerProcess
from anabranch.client.bolt.sync_log import Log
from anabranch.shell.objects.s3.settings import S3Settings

PATIENCE_S = 60.0
LOOK_S = 0.02
_serials = itertools.count()


class Pod(ServerProcess):
    """One process of ours, on ports of its choice."""

    def __init__(
        self, kind: str, name: str, flags: dict[str, Any], folder: Path, **environment: str
    ) -> None:
        self.kind = kind
        self._announced = folder / "endpoint"
        told = {"port": 0, "probe_port": 0, "announce": self._announced, "name": name, **flags}
        command = [*ANABRANCH, kind]
        for key, value in told.items():
            command += [f"--{key.replace('_', '-')}", str(value)]
        super().__init__(name, command, folder, self._is_ready, environment)

    def launch(self) -> None:
        self._announced.unlink(missing_ok=True)
        super().launch()

    @property
    def announced(self) -> bool:
        return self._announced.exists()

    @property
    def endpoint(self) -> Endpoint:
        return msgspec.json.decode(self._announced.read_bytes(), type=Endpoint)

    @property
    def address(self) -> str:
        return self.endpoint.address

    def get(self, path: str) -> tuple[int, str]:
        """What its probes say; 0 if it doesn't answer."""
        if not self.announced:
            return 0, "it isn't there"
        probes = self.endpoint.probes
        assert probes is not None
        connection = HTTPConnection(probes, timeout=PATIENCE_S)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, HTTPException) as error:
            return 0, str(error)
        finally:
            connection.close()

    @property
    def readiness(self) -> dict[str, Any]:
        status, said = self.get("/readyz")
        return json.loads(said) if status else {"ready": False, "role": "", "why": [said]}

    def metric(self, name: str) -> float:
        _, said = self.get("/metrics")
        (line,) = (each for each in said.splitlines() if each.startswith(f"{name} "))
        return float(line.rpartition(" ")[2])

    @property
    def said(self) -> str:
        return self.output.read_text(encoding="utf-8", errors="replace")

    @property
    def lines(self) -> list[dict[str, Any]]:
        """What it logged."""
        return [json.loads(line) for line in self.said.splitlines() if line.startswith("{")]

    def logged(self, event: str) -> bool:
        return any(line["event"] == event for line in self.lines)

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        os.kill(self.pid, number)

    def end(self) -> int:
        """Tell it to, and say its exit code."""
        self.signal()
        return self.ended()

    def ended(self) -> int:
        """Its exit code, once it has."""
        process = self._process
        assert process is not None
        return process.wait(PATIENCE_S)

    def _is_ready(self) -> bool:
        return self.readiness["ready"]


class Crew:
    """One cluster on servers that other tests use too: of a name and a bucket of its own."""

    def __init__(self, folder: Path, etcd: EtcdServer, s3: S3Server) -> None:
        self.folder = folder
        self.cluster = f"c{next(_serials)}-{folder.name.replace('_', '-')}"
        self.bucket = bucket_of(s3)
        self.etcd = etcd
        self.members: list[Pod] = []
        self.brokers: list[Pod] = []
        self._all: list[Pod] = []

    def pod(self, kind: str, name: str, flags: dict[str, Any], **environment: str) -> Pod:
        """Not started yet."""
        folder = self.folder / f"{name}-{len(self._all)}"
        told = {"cluster": self.cluster, **_asked(self.bucket), **flags}
        pod = Pod(kind, name, told, folder, **environment)
        self._all.append(pod)
        return pod

    def member(self, **flags: Any) -> Pod:
        name = f"metadata-{len(self.members)}"
        told = {"etcd_endpoints": self.etcd.address, "archive_ms": 100_000, **flags}
        pod = self.pod("metadata", name, told)
        self.members.append(pod)
        return pod

    def broker(self, **flags: Any) -> Pod:
        pod = self.pod("broker", f"broker-{len(self.brokers)}", {"metadata": self.listed, **flags})
        self.brokers.append(pod)
        return pod

    @property
    def listed(self) -> str:
        return ",".join(member.address for member in self.members if member.announced)

    @property
    def leader(self) -> Pod:
        """Whoever says so, once one does."""
        found: list[Pod] = []

        def one_leads() -> bool:
            running = [member for member in self.members if member.running]
            found[:] = [m for m in running if m.readiness["role"] == "leader"]
            return len(found) == 1

        until(one_leads)
        return found[0]

    def start(self, members: int, brokers: int, **flags: Any) -> None:
        """Ready on return."""
        start([self.member(**flags) for _ in range(members)])
        start([self.broker(**flags) for _ in range(brokers)])

    def kill(self) -> None:
        for pod in self._all:
            pod.kill()


def start(pods: list[Pod]) -> None:
    for pod in pods:
        pod.launch()
    for pod in pods:
        pod.wait_ready()


@contextmanager
def log_at(broker: Pod, name: str) -> Iterator[Log]:
    """The log, seen through this broker alone."""
    with anabranch.connect(f"anabranch://{broker.address}", timeout=PATIENCE_S) as service:
        yield service.ensure(name, timeout=PATIENCE_S)


def until(holds: Callable[[], bool]) -> None:
    """Look until it holds; whoever waits longer than this waits for nothing."""
    pause = Event()
    for _ in range(int(PATIENCE_S / LOOK_S)):
        if holds():
            return
        pause.wait(LOOK_S)
    raise AssertionError("it did not come about in time")


def _asked(bucket: S3Settings) -> dict[str, Any]:
    named = ("bucket", "endpoint", "region", "access_key", "secret_key")
    return {f"s3_{name}": value for name, value in asdict(bucket).items() if name in named}
