"""Letters between machines of one process: they go from host to host in memory, none is lost."""

from collections.abc import Callable
from typing import Any

from anabranch.core.machine import Linked, Received
from anabranch.shell.runtime.driver import Host


class Exchange:
    """`ports.Network` of all hosts that have joined. Letters to nodes that have not are lost."""

    def __init__(self) -> None:
        self._hosts: dict[str, Host] = {}
        self._doors: dict[str, Callable[[str, Any], None]] = {}

    def join(self, node: str, host: Host) -> None:
        """From here on the machine of this node gets letters; it and the others are linked."""
        assert node not in self._hosts, f"{node} has joined already"
        for other, there in self._hosts.items():
            there.post(other, Linked(node))
            host.post(node, Linked(other))
        self._hosts[node] = host

    def leave(self, node: str) -> None:
        del self._hosts[node]

    def open_door(self, name: str, receive: Callable[[str, Any], None]) -> None:
        """From here on letters to this name leave the exchange."""
        assert name not in self._doors
        self._doors[name] = receive

    def send(self, sender: str, to: str, message: Any) -> None:
        door = self._doors.get(to)
        if door is not None:
            door(sender, message)
            return
        host = self._hosts.get(to)
        if host is not None:
            host.post(to, Received(sender, message))
