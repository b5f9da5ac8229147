"""A real node on this machine: kubelet, containerd, kube-proxy and CoreDNS before a control plane.

`python -m tests.kubernetes.node up` begins it or brings rebuilt images, `down` takes back all that
it changed, `status` tells. It needs root, and a machine that is there to be tried on.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event

from tests.kubernetes import host
from tests.kubernetes.api_server import ApiServer, Refused
from tests.kubernetes.binaries import HYPERKUBES, program
from tests.kubernetes.control_plane import TIED, ControlPlane
from tests.kubernetes.flags import PODS
from tests.kubernetes.image import archives, coredns_reference, pause_reference
from tests.kubernetes.keeper import begin, keeping, kept

from anabranch.apps.processes.binaries import alone, cache
from anabranch.apps.processes.ports import HOST, free_ports
from anabranch.apps.processes.servers import ServerProcess, answers
from anabranch.core.errors import Unavailable

NAME = "node-0"
ADDRESS = "172.30.0.1"
DNS = "10.96.0.10"
MANIFESTS = Path(__file__).parent / "manifests"
ENDS_S = 180.0

_LOOK_S = 0.1


class Node:
    """One machine's; its control plane listens on a bridge of its own, and nowhere outside."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plane = ControlPlane(folder / "plane", controllers=True, address=ADDRESS)
        self._socket = folder / "containerd.sock"
        self._servers: list[ServerProcess] = []

    def start(self, images: Sequence[Path]) -> None:
        self.folder.mkdir()
        host.prepare(self.folder, ADDRESS)
        self.plane.start()
        self._start_containerd()
        self.load(images)
        self._start_kubelet()
        self._start_proxy()
        self._join_network()
        self.plane.api.kubectl("wait", "--for=condition=Ready", f"node/{NAME}", "--timeout=110s")
        self._apply("storage.yaml")
        self._apply("coredns.yaml", __DNS__=DNS, __IMAGE__=coredns_reference())
        rollout = ("rollout", "status", "deployment/coredns", "--timeout=110s")
        self.plane.api.kubectl("--namespace", "kube-system", *rollout)

    def end(self) -> None:
        """Without ceremony: whoever wants pods to end well deletes them before."""
        for server in reversed(self._servers):
            server.kill()
        self.plane.kill()
        host.restore(self.folder)

    def load(self, images: Sequence[Path]) -> None:
        for archive in images:
            self._ctr("images", "import", str(archive))

    def images(self) -> list[str]:
        listed = self._ctr("images", "list", "--quiet").split()
        return [name for name in listed if not name.startswith("sha256:")]

    def _start_containerd(self) -> None:
        config = self.folder / "containerd.toml"
        config.write_text(_containerd(self.folder, self._socket), encoding="utf-8")
        binary = shutil.which("containerd")
        assert binary is not None
        self._run("containerd", [binary, "--config", str(config)], self._serves)

    def _serves(self) -> bool:
        try:
            self._ctr("version")
        except Unavailable:
            return False
        return True

    def _start_kubelet(self) -> None:
        user = f"system:node:{NAME}"
        kubeconfig = self.plane.introduce("kubelet", user, "system:nodes", "", NAME, ADDRESS)
        config = self.folder / "kubelet.json"
        config.write_text(json.dumps(_kubelet(self.folder, self._socket)), encoding="utf-8")
        flags = {
            "config": str(config),
            "kubeconfig": str(kubeconfig),
            "hostname-override": NAME,
            "node-ip": ADDRESS,
            "root-dir": str(self.folder / "kubelet"),
        }
        command = [program("kubelet"), *(f"--{key}={value}" for key, value in flags.items())]
        self._run("kubelet", command, lambda: self._pods() is not None)

    def _start_proxy(self) -> None:
        health, metrics = free_ports(2)
        kubeconfig = self.plane.introduce("kube-proxy", "system:kube-proxy")
        told = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "clusterCIDR": PODS,
            "hostnameOverride": NAME,
            "healthzBindAddress": f"{HOST}:{health}",
            "metricsBindAddress": f"{HOST}:{metrics}",
            "clientConnection": {"kubeconfig": str(kubeconfig)},
            "conntrack": {"maxPerCore": 0, "min": 0},
        }
        config = self.folder / "kube-proxy.json"
        config.write_text(json.dumps(told), encoding="utf-8")
        command = [program("kube-proxy"), f"--config={config}"]
        self._run("kube-proxy", command, lambda: answers(health, "/healthz") == 200)

    def _join_network(self) -> None:
        """The network's file comes last: the node turns ready by it."""
        pods = self._pods()
        assert pods is not None
        host.masquerade(PODS)
        (self.folder / "cni").mkdir(exist_ok=True)
        told = json.dumps(_network(self.folder, pods))
        (self.folder / "cni" / "network.conflist").write_text(told, encoding="utf-8")

    def _pods(self) -> str | None:
        """The addresses that pods of this node get, once it is known to the API server."""
        try:
            return self.plane.api.ask("GET", f"/api/v1/nodes/{NAME}")["spec"].get("podCIDR")
        except Refused:
            return None

    def _apply(self, name: str, **values: str) -> None:
        text = (MANIFESTS / name).read_text(encoding="utf-8")
        for key, value in values.items():
            text = text.replace(key, value)
        self.plane.api.kubectl("apply", "-f", "-", given=text)

    def _run(self, name: str, command: list[str], ready: Callable[[], bool]) -> None:
        server = ServerProcess(name, [*TIED, "--", *command], self.folder, ready)
        self._servers.append(server)
        server.start()

    def _ctr(self, *arguments: str) -> str:
        return host.run("ctr", "--address", str(self._socket), "--namespace", "k8s.io", *arguments)


def _containerd(folder: Path, socket: Path) -> str:
    """Root may lack the right to make a process less likely to be killed: then nobody asks."""
    return f"""\
version = 2
root = "{folder}/containerd"
state = "{folder}/state"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause_reference()}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{host.PLUGINS}"
    conf_dir = "{folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        Root = "{folder}/runc"
"""


def _kubelet(folder: Path, socket: Path) -> dict[str, object]:
    keys = folder / "plane"
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": ADDRESS,
        "healthzPort": 0,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{host.CGROUP}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "containerRuntimeEndpoint": f"unix://{socket}",
        "clusterDNS": [DNS],
        "clusterDomain": "cluster.local",
        "podLogsDir": str(folder / "pods"),
        # How soon a changed Secret is in the pods, at most: nobody here wants to wait a minute.
        "syncFrequency": "10s",
        "volumePluginDir": str(folder / "plugins"),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(keys / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(keys / "kubelet.crt"),
        "tlsPrivateKeyFile": str(keys / "kubelet.key"),
        # The machine's disk is its owner's affair.
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
    }


def _network(folder: Path, pods: str) -> dict[str, object]:
    bridge = {
        "type": "bridge",
        "bridge": host.PODS_BRIDGE,
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": pods}]],
            "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": str(folder / "addresses"),
        },
    }
    return {"cniVersion": "0.4.0", "name": host.NETWORK, "plugins": [bridge]}


def keep(folder: Path, images: Sequence[Path]) -> None:
    """Until somebody says SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with keeping(folder):
        (folder / "pid").write_text(str(os.getpid()), encoding="ascii")
        node = Node(folder / "state")
        try:
            node.start(images)
            (folder / "ready").touch()
            signal.pause()
        finally:
            node.end()


def up(folder: Path) -> None:
    if os.geteuid() != 0:
        raise Unavailable("the node", "it makes bridges, cgroups and mounts: run it as root")
    if not kept(folder):
        host.install()
        for name in HYPERKUBES:
            program(name)
        images = map(str, archives())
        host.restore(folder / "state")
        begin(folder, "tests.kubernetes.node", "keep", *images)
    else:
        load(folder)
    status(folder)


def down(folder: Path) -> None:
    pause = Event()
    if kept(folder):
        os.kill(int((folder / "pid").read_text(encoding="ascii")), signal.SIGTERM)
        for _ in range(int(ENDS_S / _LOOK_S)):
            if not kept(folder):
                break
            pause.wait(_LOOK_S)
        else:
            raise Unavailable("the end of the node", f"it takes longer than {ENDS_S:.0f} s")
    host.restore(folder / "state")


def load(folder: Path) -> None:
    Node(folder / "state").load(archives())


def status(folder: Path) -> None:
    if not kept(folder):
        sys.stdout.write("there is no node: begin one by `up`\n")
        return
    api = ApiServer(folder / "state" / "plane")
    sys.stdout.write(api.kubectl("get", "nodes,pods", "--all-namespaces", "--output=wide"))
    sys.stdout.write(f"export KUBECONFIG={api.kubeconfig}\n")


COMMANDS: dict[str, Callable[[Path], None]] = {
    "up": up,
    "down": down,
    "status": status,
}


def main(words: list[str]) -> int:
    folder = cache() / "node"
    try:
        match words:
            case ["keep", *images]:
                keep(folder, [Path(image) for image in images])
            case [command] if command in COMMANDS:
                folder.mkdir(parents=True, exist_ok=True)
                with alone(folder / "beginning"):
                    COMMANDS[command](folder)
            case _:
                sys.stderr.write(f"python -m tests.kubernetes.node {'|'.join(COMMANDS)}\n")
                return 2
    except (Unavailable, Refused, subprocess.TimeoutExpired) as failed:
        sys.stderr.write(f"{failed}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
