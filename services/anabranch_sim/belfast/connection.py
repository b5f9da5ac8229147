"""A client's connection to one node of Belfast: messages in order, each once, until it breaks."""

from collections.abc import Callable
from functools import partial
from typing import Any

from anabranch.core.types import MS, Nanoseconds
from anabranch_sim.bolt.node import Node
from anabranch_sim.world.network import Network, Pipe

GRIEF: Nanoseconds = 20 * MS
"""At the latest then each end knows that the connection is broken."""


class Connection:
    """From dialling to breaking. What was on its way when it broke may or may not have arrived."""

    def __init__(
        self,
        network: Network,
        client: str,
        node: Node,
        heard: Callable[[int, Any], None],
        disconnected: Callable[[str], None],
    ) -> None:
        self.open = True
        self.node = node
        self._world = network.world
        self._heard = heard
        self._disconnected = disconnected
        self._there = Pipe(network, client, node.name, self.broken)
        self._back = Pipe(network, node.name, client, self.broken)
        self._seat = node.seat(self)
        self._asked: dict[int, None] = {}

    def connect(self, connected: Callable[[], None]) -> None:
        self._there.carry(lambda: self._back.carry(connected))

    def transmit(self, request: int, message: Any) -> None:
        self._there.carry(partial(self._arrived, request, message))

    def answer(self, request: int, message: Any) -> None:
        if self.open:
            self._back.carry(partial(self._heard, request, message))

    def hang_up(self) -> None:
        if self.open:
            self._close()
            self._world.after(self._grief(), self._leave)

    def broken(self, reason: str) -> None:
        """Both ends notice, each in its own time."""
        if self.open:
            self._close()
            self._world.after(self._grief(), self._leave)
            self._world.after(self._grief(), partial(self._disconnected, reason))

    def _grief(self) -> Nanoseconds:
        return self._world.between(0, GRIEF)

    def _close(self) -> None:
        self.open = self._there.open = self._back.open = False

    def _leave(self) -> None:
        self._seat.leave(list(self._asked))

    def _arrived(self, request: int, message: Any) -> None:
        self._asked[request] = None
        self._seat.ask(request, message)
