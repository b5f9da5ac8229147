"""`anabranch up --processes`: a whole cluster on this machine, started, watched and stopped.

etcd, an S3 server, a metadata group, brokers and a gateway, each a process of its own on loopback,
as pods would be. What ends by itself is started again, ever more slowly.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from anabranch.apps.processes.catalogue_logs import CatalogueLogs
from anabranch.apps.processes.layout import Layout, Pair, Shape, settle
from anabranch.apps.processes.ports import HOST
from anabranch.apps.processes.servers import EtcdGroup, S3Server, ServerProcess
from anabranch.apps.processes.supervisor import Listener, run_until_told
from anabranch.shell.journal.data_dir import exclusive
from anabranch.shell.telemetry.log import Log

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
        return self.answers(self.pair.probes, "/readyz")


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
        return self.answers(self.port, "/readyz")


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
            "ANABRANCH_ETCD_ENDPOINTS": ",".join(layout.etcd_addresses),
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
        others: CatalogueLogs | None = None,
    ) -> None:
        """`brokers`: their names, if they aren't to be `broker-0` and so on. `others`: who runs
        the logs of other engines that are created here.
        """
        self.others = others
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
        if others is not None:
            listed.append("--supervised")
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
                (f"metadata members: {len(self.metadata)}", self.metadata),
                (f"brokers: {len(self.brokers)}", self.brokers),
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
            if self.others is not None:
                self.others.start()
            whole = True
        finally:
            if not whole:
                self.kill()

    def tend(self) -> None:
        if self.others is not None:
            self.others.tend()

    def stop(self) -> None:
        """Each kind at once, so that drains go on side by side."""
        if self.others is not None:
            self.others.stop()
        kinds: list[Sequence[ServerProcess]] = [self.gateways, self.brokers, self.metadata]
        for pods in kinds:
            for pod in pods:
                pod.ask_to_end()
            for pod in pods:
                pod.wait_ended()
        self.s3.stop()
        self.etcd.stop()

    def kill(self) -> None:
        if self.others is not None:
            self.others.kill()
        for process in (*self.pods, self.s3):
            process.kill()
        self.etcd.kill()

    @property
    def processes(self) -> list[ServerProcess]:
        others = self.others.processes if self.others is not None else []
        return [*self.etcd.members, self.s3, *self.pods, *others]

    @property
    def listeners(self) -> list[Listener]:
        layout = self.layout
        found = [Listener("etcd", HOST, port) for port in layout.etcd]
        found.append(Listener("the S3 server", HOST, layout.s3_port))
        for pod in (*self.metadata, *self.brokers):
            found += [Listener(pod.name, HOST, port) for port in (pod.pair.port, pod.pair.probes)]
        if self.others is not None:
            found += self.others.listeners
        return found + [Listener(gateway.name, HOST, gateway.port) for gateway in self.gateways]


def run(
    folder: Path,
    shape: Shape,
    log: Log,
    *,
    with_gateway: bool,
    accept_loss: bool = False,
    kafka_file: str = "",
) -> None:
    """Run a cluster from this folder until a signal ends it; a second signal kills it.

    `accept_loss`: begin logs of other engines anew whose journals are gone. `kafka_file`: says how
    Kafka is reached, where logs keep their records in it.
    """
    with exclusive(folder):
        layout = settle(folder, shape)
        others = CatalogueLogs(
            folder,
            layout.url,
            log,
            etcd=layout.etcd_addresses,
            accept_loss=accept_loss,
            kafka_file=kafka_file,
        )
        _run(folder, layout, log, others, with_gateway=with_gateway)


def _run(
    folder: Path, layout: Layout, log: Log, others: CatalogueLogs, *, with_gateway: bool
) -> None:
    cluster = LocalCluster(folder, layout, {}, with_gateway=with_gateway, others=others)

    def serving() -> None:
        http = f"http://{layout.gateway.address}" if with_gateway else None
        log.info("serving", url=layout.url, http=http, folder=str(folder))

    run_until_told(cluster, log, serving)
