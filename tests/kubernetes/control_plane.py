"""A real control plane: etcd, API server, and if wanted whoever acts on its objects.

Whatever ends the process that started it, even `kill -9`, ends all of its servers.
"""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.kubernetes import flags
from tests.kubernetes.api_server import ApiServer
from tests.kubernetes.binaries import program
from tests.kubernetes.flags import API_SERVICE, ISSUER, KWOK, Flags, Ports
from tests.kubernetes.keys import Authority

from anabranch.apps.processes.ports import HOST, free_ports
from anabranch.apps.processes.servers import ATTEMPTS, ServerProcess, answers
from anabranch.core.errors import Unavailable

API_SERVER = ("etcd", "kube-apiserver", "kubectl")
CONTROLLERS = ("kube-controller-manager", "kube-scheduler")
KUBERNETES_PORT = 6443
TIED = ("setpriv", "--pdeathsig", "KILL")
USER = "65532"
"""Of our images."""
ZONES = ("zone-a", "zone-b", "zone-c")

# The volumes that it makes are writable for who makes them, and nobody else.
_AS_USER = (
    *("--reuid", USER, "--regid", USER, "--clear-groups"),
    *("--inh-caps", "+dac_override", "--ambient-caps", "+dac_override"),
)


class ControlPlane:
    """With `controllers`: controller-manager and scheduler as well.

    On loopback kwok then pretends three nodes; at another address real ones can reach it. Unless
    `synced` its etcd doesn't wait for the disk.
    """

    def __init__(
        self,
        folder: Path,
        *,
        controllers: bool = False,
        address: str = HOST,
        synced: bool = False,
    ) -> None:
        self.folder = folder
        self.api = ApiServer(folder)
        self.servers: dict[str, ServerProcess] = {}
        """By the name of the program, in the order in which they started."""
        self._controllers = controllers
        self._address = address
        self._synced = synced

    def start(self) -> None:
        """A new one, on ports that nobody has; return when all of it serves."""
        for _ in range(ATTEMPTS):
            shutil.rmtree(self.folder, ignore_errors=True)
            try:
                self._start()
            except Unavailable:
                self.kill()
                if not any(server.lost_its_port for server in self.servers.values()):
                    raise
            else:
                return
        raise Unavailable("a control plane", f"it lost its ports {ATTEMPTS} times")

    def kill(self) -> None:
        for server in reversed(self.servers.values()):
            server.kill()

    @property
    def _pretends(self) -> bool:
        return self._address == HOST

    def _start(self) -> None:
        folder, self.servers = self.folder, {}
        ports = Ports(*free_ports(6)) if self._pretends else Ports(KUBERNETES_PORT, *free_ports(5))
        self._write_keys(ports.api)
        stores = {**flags.etcd(folder, ports), "unsafe-no-fsync": str(not self._synced).lower()}
        self._add("etcd", stores, partial(_serves, ports.etcd, "/health"))
        self.servers["etcd"].start()
        told = flags.api_server(folder, ports, self._address)
        self._add("kube-apiserver", told, self.api.ready)
        self.servers["kube-apiserver"].start()
        if self._controllers:
            self._start_controllers(ports)

    def _start_controllers(self, ports: Ports) -> None:
        folder, healthy = self.folder, partial(_serves, path="/healthz", tls=True)
        self._add(
            "kube-controller-manager",
            flags.manager(folder, ports),
            partial(healthy, ports.manager),
            () if self._pretends else _AS_USER,
        )
        told = flags.scheduler(folder, ports)
        self._add("kube-scheduler", told, partial(healthy, ports.scheduler))
        if self._pretends:
            ready = partial(_serves, ports.kwok, "/healthz")
            self._add("kwok", flags.kwok(folder, ports), ready)
            for number, zone in enumerate(ZONES):
                self.api.ask("POST", "/api/v1/nodes", _node(f"node-{number}", zone))
        later = list(self.servers.values())[2:]
        for server in later:
            server.launch()
        for server in later:
            server.wait_ready()

    def _write_keys(self, port: int) -> None:
        self.authority = Authority(self.folder)
        names = [self._address, "localhost", ISSUER.removeprefix("https://"), API_SERVICE]
        names += ["kubernetes", "kubernetes.default", "kubernetes.default.svc"]
        self.authority.certify("server", "kube-apiserver", addresses=names)
        self.authority.pair("accounts")
        url = f"https://{self._address}:{port}"
        self.introduce("admin", "admin", "system:masters", url)
        self.introduce("kwok", KWOK, "system:masters", url)
        for name in CONTROLLERS:
            self.introduce(name, f"system:{name}", "", url)
        policy = json.dumps(flags.audit_policy())
        (self.folder / "audit-policy").write_text(policy, encoding="utf-8")

    def introduce(
        self, name: str, subject: str, group: str = "", url: str = "", *addresses: str
    ) -> Path:
        """A certificate, and a kubeconfig that leads here by it; with addresses, a server's too."""
        self.authority.certify(name, subject, group, addresses)
        user = {
            "client-certificate": str(self.folder / f"{name}.crt"),
            "client-key": str(self.folder / f"{name}.key"),
        }
        return self.api.write_config(name, url or self.api.url, user)

    def _add(
        self, name: str, told: Flags, ready: Callable[[], bool], rights: tuple[str, ...] = ()
    ) -> None:
        command = [*TIED, *rights, "--", program(name)]
        command += [f"--{key}={value}" for key, value in told.items()]
        self.servers[name] = ServerProcess(name, command, self.folder, ready)


def _serves(port: int, path: str, *, tls: bool = False) -> bool:
    return answers(port, path, tls=tls) == 200


def _node(name: str, zone: str) -> dict[str, object]:
    labels = {"topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": name}
    room = {"cpu": "64", "memory": "256Gi", "pods": "2000"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": room, "capacity": room},
    }
