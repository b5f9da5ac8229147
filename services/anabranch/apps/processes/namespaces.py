"""Network namespaces that stand for machines: each has an address on a bridge of their own, and a
link to it that can be cut and mended. It takes root and iproute2.

All that is made is called after the network, so that what a killed run has left is found by the
next one.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from anabranch.core.errors import BadRequest, Unavailable
from anabranch.shell.runtime.randomness import randbits

MACHINES_MAX = 250
_NAMESPACES = Path("/run/netns")
_LINKS = Path("/sys/class/net")
_TENS = range(200, 250)
"""10.200.0.0 and up: of private addresses, those that are given out least."""


class Network(msgspec.Struct, frozen=True):
    name: str
    """Of the bridge; a link's name has its number as well, and 15 characters at most."""
    subnet: str
    """The first three parts of its addresses."""

    def host(self, number: int) -> str:
        """Of a machine, counted from 0; the bridge is before them."""
        return f"{self.subnet}.{number + 2}"


def new_network() -> Network:
    """One whose addresses nobody here has now."""
    taken = _ip("-oneline", "-family", "inet", "address") + _ip("route")
    for _ in _TENS:
        subnet = f"10.{_TENS[randbits(16) % len(_TENS)]}.{randbits(16) % 256}"
        if f"{subnet.rpartition('.')[0]}." not in taken:
            return Network(f"ab{randbits(32):08x}", subnet)
    raise Unavailable("a network", "addresses from 10.200 to 10.249 are all in use here")


def check_rights() -> None:
    what = "network namespaces"
    if shutil.which("ip") is None:
        raise BadRequest(what, "they are made by `ip`: install iproute2")
    if os.geteuid() != 0:
        raise BadRequest(what, "only root may make them: be root, or leave out --namespaces")


class Machines:
    def __init__(self, network: Network, count: int) -> None:
        if count > MACHINES_MAX:
            raise BadRequest(f"{count} machines", f"a network here has {MACHINES_MAX} at most")
        self._network = network
        self._count = count
        self.made = False

    def make(self) -> None:
        """Anew, whatever is there."""
        check_rights()
        self.take_down()
        network = self._network
        _ip("link", "add", network.name, "type", "bridge")
        _ip("address", "add", f"{network.subnet}.1/24", "dev", network.name)
        _ip("link", "set", network.name, "up")
        for number in range(self._count):
            self._add(number)
        self.made = True

    def inside(self, host: str) -> Sequence[str]:
        """What a command begins with that is to run there."""
        return ("ip", "netns", "exec", self._called(self._number(host)))

    def cut(self, host: str) -> None:
        """Nothing comes or goes from now on, and nobody is told."""
        _ip("link", "set", self._called(self._number(host)), "down")

    def mend(self, host: str) -> None:
        _ip("link", "set", self._called(self._number(host)), "up")

    def take_down(self) -> None:
        """Nobody may run there any more."""
        self.made = False
        name = self._network.name
        if _NAMESPACES.is_dir():
            for each in _NAMESPACES.glob(f"{name}-*"):
                _ip("netns", "delete", each.name)  # its link goes with it
        if (_LINKS / name).exists():
            _ip("link", "delete", name)

    def _add(self, number: int) -> None:
        network, name = self._network, self._called(number)
        _ip("netns", "add", name)
        _ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("link", "set", name, "master", network.name, "up")
        _ip("-netns", name, "address", "add", f"{network.host(number)}/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            _ip("-netns", name, "link", "set", link, "up")

    def _called(self, number: int) -> str:
        """The namespace, and the bridge's end of its link."""
        return f"{self._network.name}-{number}"

    def _number(self, host: str) -> int:
        return int(host.rpartition(".")[2]) - 2


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(f"ip {' '.join(words)}", done.stderr.strip())
    return done.stdout
