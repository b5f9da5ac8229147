"""What a node changes of the machine that it is on, and how all of that is taken back."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event

from anabranch.core.errors import Unavailable

BRIDGE, PODS_BRIDGE = "anabranch0", "anabranch1"
CGROUP = "anabranch-node"
_SHARES = 16 * 1_024
"""Of all pods together, where each process beside them has 1024."""
NETWORK = "anabranch-node"
TABLE = "anabranch_node"
VOLUMES = Path("/tmp/hostpath_pv")
"""Where the controller-manager makes volumes; it can't be told another place."""

PROGRAMS = {
    "buildah": "buildah",
    "conntrack": "conntrack",
    "containerd": "containerd",
    "debootstrap": "debootstrap",
    "ethtool": "ethtool",
    "ip": "iproute2",
    "iptables": "iptables",
    "nft": "nftables",
    "runc": "runc",
    "setpriv": "util-linux",
    "socat": "socat",
}
PLUGINS = Path("/usr/lib/cni")

_CGROUPS = Path("/sys/fs/cgroup")
_PROC = Path("/proc")
_SYSCTLS = Path("/proc/sys")
_SET = {"net/ipv4/ip_forward": "1", "net/bridge/bridge-nf-call-iptables": "1"}
_SET_BY_KUBELET = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
_ENDS_S = 30.0
_LOOK_S = 0.05
_TRACES = ("KUBE-", "CNI-")
_LOGS = Path("/var/log/containers")
_RESULTS = Path("/var/lib/cni/results")
_PLUGINS_SOCKET = Path("/var/lib/kubelet/device-plugins/kubelet.sock")
_SHELLS = (
    *(_LOGS, _RESULTS, _RESULTS.parent),
    *(Path("/run/containerd/s"), Path("/run/containerd")),
    *(_PLUGINS_SOCKET.parent, _PLUGINS_SOCKET.parents[1]),
    *(Path("/opt/containerd/bin"), Path("/opt/containerd/lib"), Path("/opt/containerd")),
)
"""Folders that are left empty; who else uses them has something in them."""


def install() -> None:
    """Debian's packages that aren't there."""
    wanted = {package for name, package in PROGRAMS.items() if shutil.which(name) is None}
    if not (PLUGINS / "bridge").exists():
        wanted.add("containernetworking-plugins")
    if wanted:
        flags = ("--yes", "--quiet", "--no-install-recommends")
        run("apt-get", "install", *flags, *sorted(wanted), DEBIAN_FRONTEND="noninteractive")


def prepare(folder: Path, address: str) -> None:
    """A bridge of our own for the address, a cgroup for all pods, and what was set before us."""
    before = {name: _sysctl(name) for name in (*_SET, *_SET_BY_KUBELET)}
    (folder / "sysctls").write_text(json.dumps(before), encoding="utf-8")
    for name, value in _SET.items():
        _set_sysctl(name, value)
    run("ip", "link", "add", BRIDGE, "type", "bridge")
    run("ip", "address", "add", f"{address}/24", "dev", BRIDGE)
    run("ip", "link", "set", BRIDGE, "up")
    for root in _hierarchies():
        (root / CGROUP).mkdir(exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):
            if root.name == "cpuset":
                (root / CGROUP / name).write_bytes((root / name).read_bytes())
        shares = root / CGROUP / "cpu.shares"
        if shares.exists():
            shares.write_text(str(_SHARES), encoding="ascii")


def masquerade(pods: str) -> None:
    """Who is asked by a pod sees the machine."""
    rule = f'ip saddr {pods} oifname != "{PODS_BRIDGE}" ip daddr != {pods} masquerade'
    chain = "type nat hook postrouting priority srcnat;"
    told = f"table ip {TABLE} {{\nchain postrouting {{\n{chain}\n{rule}\n}}\n}}\n"
    run("nft", "-f", "-", given=told)


def restore(folder: Path) -> None:
    """Whatever is left, as often as one likes; only ours is touched."""
    for root in _hierarchies():
        _end_cgroup(root / CGROUP)
    for pid in _shims(folder):
        _kill(pid)
    for mount in sorted(_mounts(folder), reverse=True):
        run("umount", "--lazy", mount, may_fail=True)
    for link in (PODS_BRIDGE, BRIDGE):
        if Path("/sys/class/net", link).exists():
            run("ip", "link", "delete", link)
    for family, table in (("ip", TABLE), ("ip", "kube-proxy"), ("ip6", "kube-proxy")):
        run("nft", "delete", "table", family, table, may_fail=True)
    for version in ("iptables", "ip6tables"):
        _forget_chains(version)
    told = folder / "sysctls"
    if told.exists():
        for name, value in json.loads(told.read_text(encoding="utf-8")).items():
            _set_sysctl(name, value)
    _forget_files(folder)


def run(*command: str, may_fail: bool = False, given: str = "", **environment: str) -> str:
    done = subprocess.run(
        command,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    if done.returncode and not may_fail:
        said = " / ".join(done.stderr.strip().splitlines()[-3:])
        raise Unavailable("the node", f"`{' '.join(command)}` failed: {said}")
    return done.stdout


def _sysctl(name: str) -> str | None:
    path = _SYSCTLS / name
    return path.read_text(encoding="ascii").strip() if path.exists() else None


def _set_sysctl(name: str, value: str | None) -> None:
    if value is not None and value != _sysctl(name):
        (_SYSCTLS / name).write_text(value, encoding="ascii")


def _hierarchies() -> Iterator[Path]:
    """Each controller's in the first version of cgroups, the only one in the second."""
    if (_CGROUPS / "cgroup.controllers").exists():
        yield _CGROUPS
    else:
        yield from (path for path in _CGROUPS.iterdir() if (path / "cgroup.procs").exists())


def _end_cgroup(root: Path) -> None:
    pause = Event()
    for _ in range(int(_ENDS_S / _LOOK_S)):
        if not root.exists():
            return
        for procs in root.rglob("cgroup.procs"):
            for pid in procs.read_text(encoding="ascii").split():
                _kill(int(pid))
        try:
            for folder in sorted(_folders(root), reverse=True):
                folder.rmdir()
        except OSError:
            pause.wait(_LOOK_S)
    raise Unavailable("the node", f"processes in {root} don't end")


def _folders(root: Path) -> Iterator[Path]:
    yield root
    yield from (path for path in root.rglob("*") if path.is_dir())


def _shims(folder: Path) -> Iterator[int]:
    """Those that serve the containers of our containerd."""
    ours = str(folder).encode()
    for process in _PROC.iterdir():
        if process.name.isdigit():
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"containerd-shim" in words[0] and any(word.startswith(ours) for word in words):
                yield int(process.name)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _mounts(folder: Path) -> Iterator[str]:
    for line in (_PROC / "mounts").read_text(encoding="utf-8").splitlines():
        place = line.split()[1]
        if place.startswith(f"{folder}/"):
            yield place


def _forget_chains(version: str) -> None:
    """kubelet's and the plugins' of the network; whoever else's stay as they are."""
    before = run(f"{version}-save", may_fail=True).splitlines()
    kept = [line for line in before if not any(each in line for each in _TRACES)]
    if kept == before:
        return
    run(f"{version}-restore", given="\n".join([*kept, ""]))
    if not any(_says_something(line) for line in kept):
        # As on a machine that never had a rule: empty tables would be there otherwise.
        family = "ip6" if version == "ip6tables" else "ip"
        for table in ("mangle", "filter", "nat"):
            run("nft", "delete", "table", family, table, may_fail=True)


def _says_something(line: str) -> bool:
    """A rule, a chain of somebody's, or a refusal by default."""
    return line.startswith("-A") or (line.startswith(":") and " ACCEPT " not in line)


def _forget_files(folder: Path) -> None:
    """What containerd and kubelet write at places of their own choice."""
    tasks = folder / "state" / "io.containerd.runtime.v2.task" / "k8s.io"
    for task in tasks.glob("*"):
        address = task / "address"
        if address.exists():
            Path(address.read_text(encoding="utf-8").removeprefix("unix://")).unlink(
                missing_ok=True
            )
        for result in _RESULTS.glob(f"*-{task.name}-*"):
            result.unlink()
    for link in _LOGS.glob("*"):
        if link.is_symlink() and str(link.readlink()).startswith(str(folder)):
            link.unlink()
    _PLUGINS_SOCKET.unlink(missing_ok=True)
    for place in (VOLUMES, folder):
        shutil.rmtree(place, ignore_errors=True)
    for place in _SHELLS:
        with suppress(OSError):
            place.rmdir()
