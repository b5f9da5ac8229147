"""Several machines of one process behind the one address of its mesh."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from anabranch.core.machine import Event, Linked, Received
from anabranch.shell.peers.mesh import Mesh
from anabranch.shell.runtime.driver import Host


@dataclass(frozen=True, slots=True)
class NodeNames:
    """How an engine names the nodes of a process, and which of them a letter is from and for."""

    address_of: Callable[[str], str]
    names_at: Callable[[str], tuple[str, ...]]
    sender_of: Callable[[Any, str], str]
    receiver_of: Callable[[Any, str], str]


class SharedAddress:
    """`ports.Network` of all machines of a process, each on a host of its own. The machine that
    bears the address as its name, and others beside it, get what comes over the mesh by `post`.
    """

    def __init__(self, mesh: Mesh, address: str, names: NodeNames) -> None:
        self._mesh = mesh
        self._address = address
        self._names = names
        self._hosts: dict[str, Host] = {}
        self._doors: dict[str, Callable[[str, Any], None]] = {}

    def open_door(self, name: str, receive: Callable[[str, Any], None]) -> None:
        """From here on letters to this name go neither to a machine nor to the mesh."""
        assert name not in self._doors
        self._doors[name] = receive

    def join(self, node: str, host: Host) -> None:
        assert self._names.address_of(node) == self._address
        self._hosts[node] = host

    def leave(self, node: str) -> None:
        self._hosts.pop(node, None)

    def send(self, sender: str, to: str, message: Any) -> None:
        door = self._doors.get(to)
        if door is not None:
            door(sender, message)
            return
        address = self._names.address_of(to)
        if address != self._address:
            self._mesh.send(sender, address, message)
            return
        self.post_to(to, Received(sender, message))

    def post_to(self, to: str, event: Event) -> None:
        """To a machine of this process, if it is here."""
        host = self._hosts.get(to)
        if host is not None:
            host.post(to, event)

    def post(self, node: str, event: Event) -> None:
        """From the mesh, which knows addresses only. A letter to an absent node is lost."""
        assert node == self._address, "the mesh greets with the address"
        match event:
            case Received(address, letter):
                to = self._names.receiver_of(letter, self._address)
                self.post_to(to, Received(self._names.sender_of(letter, address), letter))
            case Linked(address):
                for to, host in self._hosts.items():
                    for other in self._names.names_at(address):
                        host.post(to, Linked(other))
            case _:
                raise AssertionError(event)
