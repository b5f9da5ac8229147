"""`anabranch up --processes`: a whole cluster on this machine, started, watched and stopped.

etcd, an S3 server, a metadata group, brokers and a gateway, each a process of its own on loopback,
as pods would be. What ends by itself is started again, ever more slowly.
"""

import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from anabranch.apps.processes.layout import Layout, Pair
from anabranch.apps.processes.ports import HOST
from anabranch.apps.processes.servers import EtcdGroup, S3Server, ServerProcess, answers
from anabranch.core.errors import Unavailable
from anabranch.shell.log import Log

LOOK_S = 0.2
_PAUSE_S_MAX = 10.0
_STEADY_S = 30.0
"""Whoever ran so long may be started again at once."""

METADATA, BROKER, GATEWAY = "metadata", "broker", "gateway"
_COMMAND = (sys.executable, "-m", "anabranch.cli.main")


class Pod(ServerProcess):
    """One of ours; it is ready when its probe says so."""

    def __init__(self, kind: str, name: str, pair: Pair, flags: Sequence[str], at: "Place") -> None:
        self.kind = kind
        self.pair = pair
        told = ["--name", name, "--cluster", at.layout.cluster, *flags]
        told += ["--host", HOST, "--port", str(pair.port), "--probe-port", str(pair.probes)]
        told += ["--log-format", "json"]
        super().__init__(
            name, [*_COMMAND, kind, *told], at.folder / name, self._is_ready, at.environment
        )

    def _is_ready(self) -> bool:
        return answers(self.pair.probes, "/readyz") == 200


class Gateway(ServerProcess):
    """It is a client, and told no more than one is; its probes are at the port that it serves."""

    def __init__(
        self,
        name: str,
        service: str,
        port: int,
        folder: Path,
        *flags: str,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.port = port
        told = ["--name", name, "--service", service, "--host", HOST, "--http-port", str(port)]
        command = [*_COMMAND, GATEWAY, *told, *flags]
        super().__init__(name, command, folder, self._is_ready, settings)

    def _is_ready(self) -> bool:
        return answers(self.port, "/readyz") == 200


@dataclass(frozen=True, slots=True)
class Place:
    """What all pods of a cluster are told."""

    folder: Path
    layout: Layout
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    """More of the environment: `ANABRANCH_ARCHIVE` and so on."""

    @property
    def environment(self) -> dict[str, str]:
        layout = self.layout
        return {
            "ANABRANCH_ETCD_ENDPOINTS": ",".join(f"{HOST}:{port}" for port in layout.etcd[::3]),
            "ANABRANCH_S3_ENDPOINT": f"http://{HOST}:{layout.s3_port}",
            "ANABRANCH_S3_BUCKET": layout.bucket,
            "ANABRANCH_S3_ACCESS_KEY": "anabranch",
            "ANABRANCH_S3_SECRET_KEY": layout.s3_secret,
            **self.settings,
        }


class LocalCluster:
    """All processes, in the order in which they are started; they are stopped in reverse."""

    def __init__(
        self,
        folder: Path,
        layout: Layout,
        etcd_options: dict[str, str],
        *,
        with_gateway: bool = True,
        settings: Mapping[str, str] | None = None,
        brokers: Sequence[str] = (),
    ) -> None:
        """`brokers`: their names, if they aren't to be `broker-0` and so on."""
        self.layout = layout
        self.etcd = EtcdGroup(
            folder / "etcd", len(layout.etcd) // 3, ports=layout.etcd, **etcd_options
        )
        self.s3 = S3Server(folder / "s3", secret_key=layout.s3_secret, port=layout.s3_port)
        self.place = place = Place(folder, layout, settings or {})
        self.metadata = [
            Pod(METADATA, f"metadata-{n}", pair, (), place)
            for n, pair in enumerate(layout.metadata)
        ]
        listed = ["--metadata", layout.members]
        called = brokers or [f"broker-{n}" for n in range(len(layout.brokers))]
        self.brokers = [
            Pod(BROKER, name, pair, listed, place)
            for name, pair in zip(called, layout.brokers, strict=True)
        ]
        gateway = Gateway(
            GATEWAY,
            layout.url,
            layout.gateway.port,
            folder / GATEWAY,
            settings=place.settings,
        )
        self.gateways = [gateway] if with_gateway else []

    @property
    def pods(self) -> list[Pod | Gateway]:
        return [*self.metadata, *self.brokers, *self.gateways]

    def start(self, told: Callable[[str], None]) -> None:
        """Start what doesn't run, and return when everything is ready; else raise why it isn't,
        with nothing left running.
        """
        whole = False
        try:
            told("etcd")
            self.etcd.start()
            told("an S3 server")
            if not self.s3.running:
                self.s3.start()
            (self.s3.buckets / self.layout.bucket).mkdir(exist_ok=True)
            kinds: list[tuple[str, Sequence[ServerProcess]]] = [
                (f"{len(self.metadata)} metadata members", self.metadata),
                (f"{len(self.brokers)} brokers", self.brokers),
                ("a gateway", self.gateways),
            ]
            for what, pods in kinds:
                if not pods:
                    continue
                told(what)
                for pod in pods:
                    if not pod.running:
                        pod.launch()
                for pod in pods:
                    pod.wait_ready()
            whole = True
        finally:
            if not whole:
                self.kill()

    def stop(self) -> None:
        """Each kind at once, so that drains go on side by side."""
        kinds: list[Sequence[ServerProcess]] = [self.gateways, self.brokers, self.metadata]
        for pods in kinds:
            for pod in pods:
                pod.ask_to_end()
            for pod in pods:
                pod.wait_ended()
        self.s3.stop()
        self.etcd.stop()

    def kill(self) -> None:
        for process in (*self.pods, self.s3):
            process.kill()
        self.etcd.kill()

    @property
    def processes(self) -> list[ServerProcess]:
        return [*self.etcd.members, self.s3, *self.pods]


class Watch:
    """Starts again what has ended by itself."""

    def __init__(self, processes: Sequence[ServerProcess], log: Log) -> None:
        self._log = log
        self._processes = processes
        self._failures = {process.name: 0 for process in processes}
        self._due = {process.name: 0.0 for process in processes}
        self._begun = {process.name: time.monotonic() for process in processes}

    def look(self) -> None:
        now = time.monotonic()
        for process in self._processes:
            if process.running:
                continue
            name = process.name
            if not self._due[name]:
                if now - self._begun[name] > _STEADY_S:
                    self._failures[name] = 0
                pause_s = min(_PAUSE_S_MAX, 0.5 * 2 ** self._failures[name] - 0.5)
                self._failures[name] += 1
                self._due[name] = now + pause_s
                self._log.warning(
                    "a process ended by itself", process=name, again_in_s=pause_s, output=name
                )
            if now >= self._due[name]:
                self._due[name], self._begun[name] = 0.0, now
                process.launch()
                self._log.info("started again", process=name, pid=process.pid)


def run(folder: Path, layout: Layout, log: Log, *, with_gateway: bool) -> None:
    """Until a signal says so; the second signal kills."""
    serving, told = Event(), Event()

    def stop(number: int, frame: object) -> None:
        if told.is_set() or not serving.is_set():
            raise Unavailable("the cluster", "it was told to end at once")
        told.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    cluster = LocalCluster(folder, layout, {}, with_gateway=with_gateway)
    cluster.start(lambda what: log.info("starting", what=what))
    try:
        serving.set()
        http = f"http://{layout.gateway.address}" if with_gateway else None
        log.info("serving", url=layout.url, http=http, folder=str(folder))
        watch = Watch(cluster.processes, log)
        while not told.wait(LOOK_S):
            watch.look()
        log.info("stopping")
        cluster.stop()
    finally:
        cluster.kill()
