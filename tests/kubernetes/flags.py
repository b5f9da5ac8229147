"""What each server of a control plane is told at its start."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from anabranch.apps.processes.ports import HOST

Flags = Mapping[str, str]

SERVICES = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"
PODS = "10.244.0.0/16"
ISSUER = "https://kubernetes.default.svc.cluster.local"
KWOK = "system:kwok"
ACCOUNT_MB = 100_000
"""Nothing of what was overheard is rotated away."""

_UNHEARD = ("system:apiserver", "system:kube-controller-manager", "system:kube-scheduler", KWOK)
_UNHEARD_GROUPS = ("system:serviceaccounts:kube-system", "system:nodes")


@dataclass(frozen=True, slots=True)
class Ports:
    """On loopback, the API server's aside."""

    api: int
    etcd: int
    peer: int
    manager: int
    scheduler: int
    kwok: int


def etcd(folder: Path, ports: Ports) -> Flags:
    client, peer = f"http://{HOST}:{ports.etcd}", f"http://{HOST}:{ports.peer}"
    return {
        "name": "etcd",
        "data-dir": str(folder / "etcd"),
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"etcd={peer}",
        "unsafe-no-fsync": "true",
        "log-level": "warn",
    }


def api_server(folder: Path, ports: Ports, address: str) -> Flags:
    return {
        "etcd-servers": f"http://{HOST}:{ports.etcd}",
        "bind-address": address,
        "advertise-address": address,
        "secure-port": str(ports.api),
        "tls-cert-file": str(folder / "server.crt"),
        "tls-private-key-file": str(folder / "server.key"),
        "client-ca-file": str(folder / "ca.crt"),
        "service-account-issuer": ISSUER,
        "service-account-key-file": str(folder / "accounts.pub"),
        "service-account-signing-key-file": str(folder / "accounts.key"),
        "service-cluster-ip-range": SERVICES,
        "allow-privileged": "true",
        "audit-policy-file": str(folder / "audit-policy"),
        "audit-log-path": str(folder / "audit.log"),
        # A line is there when its answer is.
        "audit-log-mode": "blocking",
        "audit-log-maxsize": str(ACCOUNT_MB),
        **(_ALONE if address == HOST else _before_kubelets(folder)),
    }


_ALONE = {
    "authorization-mode": "RBAC",
    "endpoint-reconciler-type": "none",
    # As some clusters have it: who blocks an owner's deletion needs a right to.
    "enable-admission-plugins": "OwnerReferencesPermissionEnforcement",
}


def _before_kubelets(folder: Path) -> Flags:
    return {
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "kubelet-client-certificate": str(folder / "admin.crt"),
        "kubelet-client-key": str(folder / "admin.key"),
        "kubelet-certificate-authority": str(folder / "ca.crt"),
        "kubelet-preferred-address-types": "InternalIP",
    }


def manager(folder: Path, ports: Ports) -> Flags:
    return {
        **_component(folder, "kube-controller-manager", ports.manager),
        "service-account-private-key-file": str(folder / "accounts.key"),
        "root-ca-file": str(folder / "ca.crt"),
        "cluster-signing-cert-file": str(folder / "ca.crt"),
        "cluster-signing-key-file": str(folder / "ca.key"),
        "use-service-account-credentials": "true",
        "allocate-node-cidrs": "true",
        "cluster-cidr": PODS,
        "service-cluster-ip-range": SERVICES,
        "enable-hostpath-provisioner": "true",
        "flex-volume-plugin-dir": str(folder / "plugins"),
        "kube-api-qps": "200",
        "kube-api-burst": "400",
    }


def scheduler(folder: Path, ports: Ports) -> Flags:
    return _component(folder, "kube-scheduler", ports.scheduler)


def _component(folder: Path, name: str, port: int) -> Flags:
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


def kwok(folder: Path, ports: Ports) -> Flags:
    return {
        "kubeconfig": str(folder / "kwok.conf"),
        "manage-all-nodes": "true",
        "server-address": f"{HOST}:{ports.kwok}",
        "node-lease-duration-seconds": "40",
    }


def audit_policy() -> Mapping[str, object]:
    """What a cluster does for itself is left out; ours is kept with what was sent, and what our
    brokers ask about rights.
    """
    writes = ["create", "update", "patch", "delete", "deletecollection"]
    ours: Sequence[Mapping[str, object]] = [
        {"group": "anabranch.dev"},
        {"group": "", "resources": ["events"]},
        {"group": "events.k8s.io", "resources": ["events"]},
        {"group": "authorization.k8s.io", "resources": ["subjectaccessreviews"]},
    ]
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "omitManagedFields": True,
        "rules": [
            {"level": "None", "users": _UNHEARD},
            {"level": "None", "userGroups": _UNHEARD_GROUPS},
            {"level": "Request", "verbs": writes, "resources": ours},
            {"level": "Metadata"},
        ],
    }
