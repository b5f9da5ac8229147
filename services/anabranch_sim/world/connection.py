"""A client's connection to a node, in frames: the server's end of it, and what breaks it."""

from collections.abc import Callable
from functools import partial
from typing import Any

from anabranch.core.errors import BadFrame
from anabranch.core.types import MS, Nanoseconds
from anabranch.core.wire.session import Cancel, Credit
from anabranch_sim.world.network import Network, Pipe
from anabranch_sim.world.node import Node

Replies = list[tuple[int, Any]]

NOTICED: Nanoseconds = 20 * MS
"""At the latest then each end knows that the connection is broken."""


class Connection:
    """From dialing to breaking. What was on its way when it broke may or may not have arrived."""

    def __init__(
        self,
        network: Network,
        client: str,
        node: Node,
        heard: Callable[[Replies], None],
        disconnected: Callable[[str], None],
    ) -> None:
        self.open = True
        self.node = node
        self._world = network.world
        wire = node.clients
        assert wire is not None, "only nodes with a wire for clients have clients"
        self._wire = wire
        self._heard = heard
        self._disconnected = disconnected
        self._there = Pipe(network, client, node.name, self.broken)
        self._back = Pipe(network, node.name, client, self.broken)
        self._requests = self._wire.codec.requests(self._wire.frame_bytes_max)
        self._replies = self._wire.codec.replies()
        self._seat = node.seat(self)
        self._unanswered: dict[int, None] = {}

    def connect(self, connected: Callable[[], None]) -> None:
        """A packet there and one back."""
        self._there.carry(lambda: self._back.carry(connected))

    def transmit(self, request: int, message: Any) -> None:
        """The client writes."""
        frame = b"".join(self._wire.codec.encode_request(request, message))
        self._there.carry(partial(self._arrived, frame))

    def answer(self, request: int, message: Any) -> None:
        """The server writes, at the request of a machine."""
        if not isinstance(message, self._wire.pushed):
            self._unanswered.pop(request, None)
        frame = b"".join(self._wire.codec.encode_reply(request, message))
        self._back.carry(partial(self._returned, frame))

    def hang_up(self) -> None:
        """The client leaves; the server notices some time later."""
        if self.open:
            self._close()
            self._world.after(self._notice(), self._leave)

    def broken(self, reason: str) -> None:
        """Both ends notice, each in its own time."""
        if self.open:
            self._close()
            self._world.after(self._notice(), self._leave)
            self._world.after(self._notice(), partial(self._disconnected, reason))

    def _notice(self) -> Nanoseconds:
        return self._world.between(0, NOTICED)

    def _close(self) -> None:
        self.open = self._there.open = self._back.open = False

    def _leave(self) -> None:
        self._seat.leave(list(self._unanswered))

    def _arrived(self, frame: bytes) -> None:
        wire = self._wire
        for request, message in self._requests.feed(frame):
            assert not isinstance(message, BadFrame), message
            if isinstance(message, wire.hello):
                self.answer(request, wire.welcome(self.node.name))
                continue
            if not isinstance(message, (Cancel, Credit)):
                self._unanswered[request] = None
            self._seat.ask(request, message)

    def _returned(self, frame: bytes) -> None:
        self._heard(list(self._replies.feed(frame)))
