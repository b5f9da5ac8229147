"""A real control plane on loopback: etcd, API server, and if wanted whoever acts on its objects.

Whatever ends the process that started it, even `kill -9`, ends all of its servers.
"""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.kubernetes.api_server import ApiServer
from tests.kubernetes.binaries import program
from tests.kubernetes.keys import Authority

from anabranch.apps.processes.ports import HOST, free_ports
from anabranch.apps.processes.servers import ATTEMPTS, ServerProcess, answers
from anabranch.core.errors import Unavailable

API_SERVER = ("etcd", "kube-apiserver", "kubectl")
CONTROLLERS = ("kube-controller-manager", "kube-scheduler", "kwok")
SERVICES = "10.96.0.0/16"
ISSUER = "https://kubernetes.default.svc.cluster.local"
ZONES = ("zone-a", "zone-b", "zone-c")

_TIED = ("setpriv", "--pdeathsig", "KILL", "--")
_UNSEEN = ("system:apiserver", "system:kube-controller-manager", "system:kube-scheduler")
_KWOK = "system:kwok"


class ControlPlane:
    """With `controllers`: controller-manager, scheduler, and three nodes that kwok pretends."""

    def __init__(self, folder: Path, *, controllers: bool = False) -> None:
        self.folder = folder
        self.api = ApiServer(folder)
        self.servers: dict[str, ServerProcess] = {}
        """By the name of the program, in the order in which they started."""
        self._controllers = controllers

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

    def _start(self) -> None:
        self.servers = {}
        etcd, peer, secure, manager, scheduler, kwok = free_ports(6)
        self._write_keys(secure)
        self._run("etcd", _etcd(self.folder, etcd, peer), partial(_serves, etcd, "/health"))
        ready = partial(_serves, secure, "/readyz", tls=True)
        self._run("kube-apiserver", _api_server(self.folder, etcd, secure), ready)
        if not self._controllers:
            return
        started = (
            self._launch("kube-controller-manager", _manager(self.folder, manager), manager),
            self._launch("kube-scheduler", _scheduler(self.folder, scheduler), scheduler),
            self._launch("kwok", _kwok(self.folder, kwok), kwok, tls=False),
        )
        for server in started:
            server.wait_ready()
        for number, zone in enumerate(ZONES):
            self.api.ask("POST", "/api/v1/nodes", _node(f"node-{number}", zone))

    def _write_keys(self, port: int) -> None:
        authority = Authority(self.folder)
        authority.certify("server", "kube-apiserver", addresses=[HOST, "localhost", ISSUER[8:]])
        authority.pair("accounts")
        clients = {
            "admin": ("admin", "system:masters"),
            "kwok": (_KWOK, "system:masters"),
            "kube-controller-manager": ("system:kube-controller-manager", ""),
            "kube-scheduler": ("system:kube-scheduler", ""),
        }
        for name, (subject, group) in clients.items():
            authority.certify(name, subject, group)
            user = {
                "client-certificate": str(self.folder / f"{name}.crt"),
                "client-key": str(self.folder / f"{name}.key"),
            }
            self.api.write_config(name, f"https://{HOST}:{port}", user)
        (self.folder / "audit-policy").write_text(json.dumps(_audit_policy()), encoding="utf-8")

    def _run(self, name: str, told: Mapping[str, str], ready: Callable[[], bool]) -> None:
        self._add(name, told, ready).start()

    def _launch(
        self, name: str, told: Mapping[str, str], port: int, *, tls: bool = True
    ) -> ServerProcess:
        server = self._add(name, told, partial(_serves, port, "/healthz", tls=tls))
        server.launch()
        return server

    def _add(self, name: str, told: Mapping[str, str], ready: Callable[[], bool]) -> ServerProcess:
        flags = (f"--{key}={value}" for key, value in told.items())
        command = [*_TIED, program(name), *flags]
        self.servers[name] = server = ServerProcess(name, command, self.folder, ready)
        return server


def _serves(port: int, path: str, *, tls: bool = False) -> bool:
    return answers(port, path, tls=tls) == 200


def _etcd(folder: Path, client: int, peer: int) -> dict[str, str]:
    return {
        "name": "etcd",
        "data-dir": str(folder / "etcd"),
        "listen-client-urls": f"http://{HOST}:{client}",
        "advertise-client-urls": f"http://{HOST}:{client}",
        "listen-peer-urls": f"http://{HOST}:{peer}",
        "initial-advertise-peer-urls": f"http://{HOST}:{peer}",
        "initial-cluster": f"etcd=http://{HOST}:{peer}",
        "unsafe-no-fsync": "true",
        "log-level": "warn",
    }


def _api_server(folder: Path, etcd: int, port: int) -> dict[str, str]:
    return {
        "etcd-servers": f"http://{HOST}:{etcd}",
        "bind-address": HOST,
        "advertise-address": HOST,
        "endpoint-reconciler-type": "none",
        "secure-port": str(port),
        "tls-cert-file": str(folder / "server.crt"),
        "tls-private-key-file": str(folder / "server.key"),
        "client-ca-file": str(folder / "ca.crt"),
        "service-account-issuer": ISSUER,
        "service-account-key-file": str(folder / "accounts.pub"),
        "service-account-signing-key-file": str(folder / "accounts.key"),
        "service-cluster-ip-range": SERVICES,
        "authorization-mode": "RBAC",
        "allow-privileged": "true",
        "audit-policy-file": str(folder / "audit-policy"),
        "audit-log-path": str(folder / "audit.log"),
        # A line is there when its answer is; nothing is rotated away.
        "audit-log-mode": "blocking",
        "audit-log-maxsize": "0",
    }


def _manager(folder: Path, port: int) -> dict[str, str]:
    return {
        **_component(folder, "kube-controller-manager", port),
        "service-account-private-key-file": str(folder / "accounts.key"),
        "root-ca-file": str(folder / "ca.crt"),
        "cluster-signing-cert-file": str(folder / "ca.crt"),
        "cluster-signing-key-file": str(folder / "ca.key"),
        "use-service-account-credentials": "true",
        "enable-hostpath-provisioner": "true",
        "kube-api-qps": "200",
        "kube-api-burst": "400",
    }


def _scheduler(folder: Path, port: int) -> dict[str, str]:
    return _component(folder, "kube-scheduler", port)


def _component(folder: Path, name: str, port: int) -> dict[str, str]:
    config = str(folder / f"{name}.conf")
    return {
        "kubeconfig": config,
        "authentication-kubeconfig": config,
        "authorization-kubeconfig": config,
        "bind-address": HOST,
        "secure-port": str(port),
        "cert-dir": str(folder / name),
        "leader-elect": "false",
    }


def _kwok(folder: Path, port: int) -> dict[str, str]:
    return {
        "kubeconfig": str(folder / "kwok.conf"),
        "manage-all-nodes": "true",
        "server-address": f"{HOST}:{port}",
        "node-lease-duration-seconds": "40",
    }


def _node(name: str, zone: str) -> dict[str, object]:
    labels = {"topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": name}
    room = {"cpu": "64", "memory": "256Gi", "pods": "2000"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": room, "capacity": room},
    }


def _audit_policy() -> dict[str, object]:
    """What the control plane does for itself is left out; ours is kept with what was sent."""
    writes = ["create", "update", "patch", "delete", "deletecollection"]
    ours: Sequence[dict[str, object]] = [
        {"group": "anabranch.dev"},
        {"group": "", "resources": ["events"]},
        {"group": "events.k8s.io", "resources": ["events"]},
    ]
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "omitManagedFields": True,
        "rules": [
            {"level": "None", "users": [*_UNSEEN, _KWOK]},
            {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
            {"level": "Request", "verbs": writes, "resources": ours},
            {"level": "Metadata"},
        ],
    }
