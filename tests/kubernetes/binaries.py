"""Programs of Kubernetes and around it that tests run: built once from pinned Go modules.

`make servers-kubernetes` builds those that tests run; `python -m tests.kubernetes.binaries` builds
all and prints where. `KUBEBUILDER_ASSETS` names a folder whose `etcd`, `kube-apiserver` and
`kubectl` are used instead of ours.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from anabranch.apps.processes import binaries
from anabranch.apps.processes.binaries import ETCD, Server, alone, cache, find, is_ready, obstacle
from anabranch.core.errors import Unavailable

MODULES = Path(__file__).parent / "modules"
BUILD_S = 3_600.0
"""Two cores that do other things as well need most of it for what has three thousand packages."""
MINOR = "34"

_MAIN = MODULES / "kubernetes"
_VERSIONED = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
_RULES = "helm.sh/helm/v3/internal/v3/lint/rules", "helm.sh/helm/v3/pkg/lint/rules"
_CAPABILITIES = ("helm.sh/helm/v3/pkg/chartutil", *_RULES)

HYPERKUBE = Server(
    "hyperkube",
    "k8s.io/kubernetes",
    "./hyperkube",
    _MAIN,
    tuple(
        (f"{package}.{key}", value)
        for package in _VERSIONED
        for key, value in (
            ("gitVersion", "{version}"),
            ("gitMajor", "1"),
            ("gitMinor", MINOR),
            ("gitTreeState", "clean"),
        )
    ),
    BUILD_S,
)
"""Six programs in one binary, which tells by its name what it is asked to be."""

HELM = Server(
    "helm",
    "helm.sh/helm/v3",
    "/cmd/helm",
    _MAIN,
    (
        ("helm.sh/helm/v3/internal/version.version", "{version}"),
        *((f"{package}.k8sVersionMajor", "1") for package in _CAPABILITIES),
        *((f"{package}.k8sVersionMinor", MINOR) for package in _CAPABILITIES),
    ),
    BUILD_S,
)
KUBECONFORM = Server(
    "kubeconform",
    "github.com/yannh/kubeconform",
    "/cmd/kubeconform",
    _MAIN,
    (("main.version", "{version}"),),
)
COREDNS = Server("coredns", "github.com/coredns/coredns", "./coredns", _MAIN, build_s=BUILD_S)
PAUSE = Server("pause", "k8s.io/kubernetes", "./pause", _MAIN)
KWOK = Server("kwok", "sigs.k8s.io/kwok", "/cmd/kwok", MODULES / "kwok", build_s=BUILD_S)
SERVERS = {
    server.name: server for server in (ETCD, HYPERKUBE, KWOK, HELM, KUBECONFORM, COREDNS, PAUSE)
}

HYPERKUBES = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubectl",
    "kubelet",
)


def stands_in_the_way(*names: str) -> str | None:
    """Why tests can't run these programs; None if they can.

    Building those of Kubernetes takes ten minutes and more, which nobody waits for unasked.
    """
    for name in names:
        server = _server(name)
        if _asset(name) is not None or is_ready(server):
            continue
        if server is not ETCD:
            return (
                f"{name} isn't built: `make servers-kubernetes` does it with Go "
                f"{server.go_version} or newer, or KUBEBUILDER_ASSETS names a folder that has it"
            )
        if (stands := obstacle(server)) is not None:
            return stands
    return None


def program(name: str) -> str:
    """The path of a program by its own name: `kube-apiserver`, `kubectl`, `helm`, ..."""
    asset = _asset(name)
    if asset is not None:
        return asset
    built = Path(find(_server(name)))
    if name not in HYPERKUBES:
        return str(built)
    link = built.with_name(name)
    if not link.exists():
        fresh = built.with_name(f"{name}.{os.getpid()}")
        fresh.symlink_to(built.name)
        fresh.replace(link)
    return str(link)


def promtool() -> str:
    """Judges alerts; from Debian's package where it isn't installed."""
    return shutil.which("promtool") or str(of_debian("prometheus", "usr/bin/promtool"))


def of_debian(package: str, file: str) -> Path:
    """A file of a package, which is unpacked and not installed."""
    place = cache() / f"{package}-debian" / Path(file).name
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with alone(place.with_suffix(".lock")):
            if not place.exists():
                _unpack(package, file, place)
    return place


def _server(name: str) -> Server:
    return HYPERKUBE if name in HYPERKUBES else SERVERS[name]


def _asset(name: str) -> str | None:
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    return shutil.which(name, path=folder) if folder else None


def _unpack(package: str, file: str, to: Path) -> None:
    with tempfile.TemporaryDirectory(dir=to.parent) as scratch:
        # The fetcher of packages gives up root's rights, and has to write there nevertheless.
        os.chmod(scratch, 0o777)
        # A new machine may not know its packages yet; who mayn't ask for them may know them.
        subprocess.run(["apt-get", "update", "-q"], check=False, capture_output=True)
        _debian(package, scratch, "apt-get", "download", "-q", package)
        (found,) = Path(scratch).glob("*.deb")
        _debian(package, scratch, "dpkg", "-x", found.name, "unpacked")
        (Path(scratch) / "unpacked" / file).replace(to)


def _debian(package: str, folder: str, *command: str) -> None:
    try:
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        raise Unavailable(package, f"there is no {command[0]}: install {package}") from None
    if done.returncode:
        raise Unavailable(package, f"`{' '.join(command)}` failed: {done.stderr.strip()}")


if __name__ == "__main__":
    sys.exit(binaries.main(sys.argv[1:], SERVERS))
