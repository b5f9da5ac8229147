"""A client's connection to a broker, in frames: the server's end of it, and what breaks it."""

from collections.abc import Callable
from functools import partial

from anabranch.core.bolt.protocol.codec import encode_reply, encode_request, replies, requests
from anabranch.core.bolt.protocol.messages import (
    PROTOCOL_VERSION,
    ClientMessage,
    Confirmed,
    Delivered,
    Failed,
    Hello,
    ServerMessage,
    Welcome,
)
from anabranch.core.errors import AnabranchError, BadFrame
from anabranch.core.limits import Limits
from anabranch.core.machine import Buffer
from anabranch.core.types import Nanoseconds
from anabranch.core.wire.session import Cancel, Credit
from anabranch_sim.bolt.node import Node
from anabranch_sim.world.network import Network, Pipe

_PUSHED = (Delivered, Confirmed, Failed)
_UNANSWERED = (Hello, Cancel, Credit)

Replies = list[tuple[int, ServerMessage | AnabranchError]]


class Connection:
    """From dialling to breaking. What was on its way when it broke may or may not have arrived."""

    def __init__(
        self,
        network: Network,
        client: str,
        node: Node,
        limits: Limits,
        heard: Callable[[Replies], None],
        disconnected: Callable[[str], None],
    ) -> None:
        self.open = True
        self._world = network.world
        self._node = node
        self._limits = limits
        self._heard = heard
        self._disconnected = disconnected
        self._there = Pipe(network, client, node.name, self.broken)
        self._back = Pipe(network, node.name, client, self.broken)
        self._requests = requests(limits.frame_bytes_max)
        self._replies = replies()
        self._seat = node.seat(self)
        self._unanswered: dict[int, None] = {}

    def connect(self, connected: Callable[[], None]) -> None:
        """A packet there and one back."""
        self._there.carry(lambda: self._back.carry(connected))

    def transmit(self, request: int, message: ClientMessage) -> None:
        """The client writes."""
        frame = _joined(encode_request(request, message))
        self._there.carry(partial(self._arrived, frame))

    def answer(self, request: int, message: ServerMessage) -> None:
        """The server writes, at the request of a machine."""
        if not isinstance(message, _PUSHED):
            self._unanswered.pop(request, None)
        self._back.carry(partial(self._returned, _joined(encode_reply(request, message))))

    def hang_up(self) -> None:
        """The client leaves; the server notices when it would have heard of it."""
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
        return self._world.between(0, 50_000_000)

    def _close(self) -> None:
        self.open = self._there.open = self._back.open = False

    def _leave(self) -> None:
        self._seat.leave(list(self._unanswered))

    def _arrived(self, frame: bytes) -> None:
        for request, message in self._requests.feed(frame):
            assert not isinstance(message, BadFrame), message
            if isinstance(message, Hello):
                welcome = Welcome(
                    version=PROTOCOL_VERSION,
                    cluster="sim",
                    server=self._node.name,
                    record_bytes_max=self._limits.record_bytes_max,
                    batch_bytes_max=self._limits.batch_bytes_max,
                    batch_records_max=self._limits.batch_records_max,
                )
                self.answer(request, welcome)
                continue
            if not isinstance(message, _UNANSWERED):
                self._unanswered[request] = None
            self._seat.ask(request, message)

    def _returned(self, frame: bytes) -> None:
        self._heard(list(self._replies.feed(frame)))


def _joined(frame: list[Buffer]) -> bytes:
    return b"".join(frame)
