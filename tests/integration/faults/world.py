"""A whole cluster on loopback, with a place for faults between any two of its parts."""

import itertools
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from tests.fault_proxy import FaultProxy
from tests.integration.cli_server import ANABRANCH
from tests.integration.pods.crew import Pod, start, until
from tests.servers import needs

from anabranch.apps.processes.binaries import ETCD, TOXIPROXY, VERSITYGW
from anabranch.apps.processes.cluster import Gateway
from anabranch.apps.processes.ports import HOST, free_ports
from anabranch.apps.processes.servers import EtcdGroup, S3Server
from anabranch.apps.processes.toxiproxy import Link, Toxiproxy

BUCKET = "bucket"
PATIENCE_MS = 60_000
"""Of a process that starts while what it needs is still away."""

_serials = itertools.count(1)


class World:
    """All processes of one cluster, each on a port that it keeps over its lives.

    Everybody is dialled through a link of its own for each who dials: `links["broker-0",
    "metadata-1"]`; clients and the gateway are "client", etcd's members "etcd-0", the store "s3".
    In front of the store itself stands `proxy`, which knows requests.
    """

    def __init__(
        self,
        folder: Path,
        *,
        etcd: int = 1,
        members: int = 3,
        brokers: int = 2,
        gateway: bool = False,
        settings: Mapping[str, object] | None = None,
        etcd_options: Mapping[str, str] | None = None,
        environments: Callable[[str], Mapping[str, str]] = lambda _: {},
        **flags: Mapping[str, Any],
    ) -> None:
        """`settings` are for all members and brokers, who take what they know of them; `flags` for
        those of one name: `metadata_0={"failpoints": "..."}`. `environments` are by name, too.
        """
        needs(ETCD, VERSITYGW, TOXIPROXY)
        self.cluster = f"world-{next(_serials)}"
        self.folder = folder
        options = {"unsafe_no_fsync": "true", **(etcd_options or {})}
        self.etcd = EtcdGroup(folder / "etcd", etcd, (), **options)
        self.s3 = S3Server(folder / "s3")
        self.links: dict[tuple[str, str], Link] = {}
        self.members: list[Pod] = []
        self.brokers: list[Pod] = []
        self.gateways: list[Gateway] = []
        self.proxy: FaultProxy
        self._sizes = (members, brokers, gateway)
        told = settings or {}
        self._environment = {f"ANABRANCH_{key.upper()}": str(told[key]) for key in told}
        self._environments = environments
        self._flags = flags
        self._stack = ExitStack()
        self._toxiproxy = Toxiproxy(folder / "toxiproxy")

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for server in (self.etcd, self.s3, self._toxiproxy):
                stack.callback(server.kill)
                server.start()
            self.s3.make_bucket(BUCKET)
            self.proxy = stack.enter_context(FaultProxy(self.s3.address))
            stack.callback(self._kill_pods)
            self._make_pods()
            start(self.members)
            start(self.brokers)
            for each in self.gateways:
                each.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def url(self) -> str:
        return "anabranch://" + ",".join(
            self.links["client", broker.name].address for broker in self.brokers
        )

    @property
    def pods(self) -> list[Pod]:
        return [*self.members, *self.brokers]

    @property
    def leader(self) -> Pod:
        """The only one that says so, once there is one."""
        found: list[Pod] = []

        def one_leads() -> bool:
            found[:] = [each for each in self.members if role(each) == "leader"]
            return len(found) == 1

        until(one_leads)
        return found[0]

    @property
    def standby(self) -> Pod:
        leader = self.leader
        return next(each for each in self.members if each is not leader)

    def restart(self) -> None:
        """Every member and broker is killed, and has to find out what there is."""
        for pod in self.pods:
            pod.kill()
        start(self.members)
        start(self.brokers)

    def rebuild(self) -> None:
        """The same, and etcd has lost everything: it is filled again from the bucket alone."""
        for pod in self.pods:
            pod.kill()
        self.etcd.kill()
        for member in self.etcd.members:
            shutil.rmtree(self.etcd.folder / member.name / "data")
        self.etcd.start()
        told = {"etcd_endpoints": ",".join(self.etcd.addresses), **self.flags("recover")}
        environment = {f"ANABRANCH_{key.upper()}": str(told[key]) for key in told}
        subprocess.run(
            [*ANABRANCH, "recover", "--from-bucket"], env=os.environ | environment, check=True
        )
        start(self.members)
        start(self.brokers)

    def link(self, name: str, other: str, to: str) -> str:
        """The address of a new link between these two."""
        made = self._toxiproxy.link(f"{name}-{other}-{len(self.links)}", to)
        self.links[name, other] = made
        return made.address

    def flags(self, name: str) -> dict[str, Any]:
        """What any process of ours that calls itself so is told of the store."""
        to = f"{HOST}:{self.proxy.port}"
        return {
            "cluster": self.cluster,
            "s3_endpoint": f"http://{self.link(name, 's3', to)}",
            "s3_bucket": BUCKET,
            "s3_region": self.s3.region,
            "s3_access_key": self.s3.access_key,
            "s3_secret_key": self.s3.secret_key,
            "patience_ms": PATIENCE_MS,
        }

    def member(self, name: str, port: int, **flags: Any) -> Pod:
        """Not started yet, as all that is made here."""
        endpoints = [self.link(name, each.name, each.address) for each in self.etcd.members]
        told = {"etcd_endpoints": ",".join(endpoints), "port": port, **self.flags(name), **flags}
        return self._pod("metadata", name, told)

    def broker(self, name: str, port: int, members: Mapping[str, str], **flags: Any) -> Pod:
        """`members` are addresses by name."""
        listed = [self.link(name, each, members[each]) for each in members]
        here = self.link("client", name, f"{HOST}:{port}")
        told = {"metadata": ",".join(listed), "advertise": here, "port": port}
        return self._pod("broker", name, told | self.flags(name) | flags)

    def _make_pods(self) -> None:
        members, brokers, gateway = self._sizes
        ports = free_ports(members + brokers)
        named = {f"metadata-{n}": port for n, port in enumerate(ports[:members])}
        for name, port in named.items():
            self.members.append(self.member(name, port))
        addresses = {name: f"{HOST}:{port}" for name, port in named.items()}
        for n, port in enumerate(ports[members:]):
            name = f"broker-{n}"
            self.brokers.append(self.broker(name, port, addresses))
        if gateway:
            (port,) = free_ports(1)
            patience = ("--patience-ms", str(PATIENCE_MS))
            folder = self.folder / "gateway"
            self.gateways.append(Gateway("gateway", self.url, port, folder, *patience))

    def _pod(self, kind: str, name: str, told: dict[str, Any]) -> Pod:
        told |= self._flags.get(name.replace("-", "_"), {})
        environment = {**self._environment, **self._environments(name)}
        return Pod(kind, name, told, self.folder / name, **environment)

    def _kill_pods(self) -> None:
        for each in (*self.gateways, *self.brokers, *self.members):
            each.kill()


def role(member: Pod) -> str:
    """What it says that it is; nothing, if it doesn't run."""
    return member.readiness["role"] if member.running else ""
