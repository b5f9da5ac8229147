"""A client's line to one node: dialed again when it breaks, and what isn't answered asked again."""

from collections.abc import Callable
from functools import partial
from typing import Any

from anabranch.core.types import MS, Nanoseconds
from anabranch_sim.world.connection import Connection, Replies
from anabranch_sim.world.deployment import Deployment

PATIENCE: Nanoseconds = 400 * MS
"""With a node that owes an answer and says nothing."""

Heard = Callable[[Any], None]


class Line:
    """Every request here may be asked twice: Erwin's are all the same when repeated."""

    def __init__(self, deployment: Deployment, client: str, node: str) -> None:
        self._deployment = deployment
        self._world = deployment.world
        self._client = client
        self._node = node
        self._connection: Connection | None = None
        self._attempt = 0
        self._requests = 0
        self._open: dict[int, tuple[Any, Heard]] = {}
        self._streams: dict[int, tuple[Callable[[], Any], Heard]] = {}
        self._heard_at: Nanoseconds = 0
        self._ready = False
        self._closed = False

    def ask(self, message: Any, heard: Heard) -> int:
        """Until it is answered. The number of the request."""
        self._requests += 1
        self._open[self._requests] = message, heard
        self._transmit(self._requests, message)
        return self._requests

    def follow(self, ask: Callable[[], Any], heard: Heard) -> int:
        """Something with many answers, which is asked anew on each connection."""
        self._requests += 1
        self._streams[self._requests] = ask, heard
        if self._ready:
            self._transmit(self._requests, ask())
        else:
            self._dial_soon()
        return self._requests

    def say(self, message: Any) -> None:
        """Something without an answer, on this connection alone."""
        if self._ready:
            self._requests += 1
            self._transmit(self._requests, message)

    def forget(self, request: int) -> bool:
        """Its answer doesn't count any more. False if it had come."""
        self._streams.pop(request, None)
        return self._open.pop(request, None) is not None

    def reset(self, reason: str) -> None:
        """The network breaks it."""
        if self._connection is not None:
            self._connection.broken(reason)

    def close(self) -> None:
        self._closed = True
        self._open.clear()
        self._streams.clear()
        self._drop()

    def _transmit(self, request: int, message: Any) -> None:
        connection = self._connection
        if self._ready and connection is not None and connection.open:
            connection.transmit(request, message)
        else:
            self._dial_soon()

    def _dial_soon(self) -> None:
        if self._connection is None and not self._closed and self._attempt == 0:
            self._attempt += 1
            self._dial(self._attempt)

    def _dial(self, attempt: int) -> None:
        if attempt != self._attempt or self._closed:
            return
        node = self._deployment.node(self._node)
        if not node.alive:
            self._again()
            return
        self._connection = Connection(
            self._deployment.network,
            self._client,
            node,
            partial(self._answered, attempt),
            partial(self._broken, attempt),
        )
        self._heard_at = self._world.now
        self._connection.connect(partial(self._connected, attempt))
        self._world.after(PATIENCE, partial(self._watch, attempt))

    def _connected(self, attempt: int) -> None:
        if attempt != self._attempt:
            return
        self._ready = True
        # A packet from there. Counted from the dial, two slow trips would use up all patience.
        self._heard_at = self._world.now
        for request, (message, _) in list(self._open.items()):
            self._transmit(request, message)
        for request, (ask, _) in list(self._streams.items()):
            self._transmit(request, ask())

    def _drop(self) -> None:
        self._ready = False
        if self._connection is not None:
            self._connection.hang_up()
            self._connection = None

    def _again(self) -> None:
        self._drop()
        self._attempt += 1
        pause = self._world.between(2 * MS, 40 * MS)
        self._world.after(pause, partial(self._dial, self._attempt))

    def _watch(self, attempt: int) -> None:
        if attempt != self._attempt or self._closed:
            return
        if self._open and self._world.now - self._heard_at >= PATIENCE:
            self._again()
        else:
            self._world.after(PATIENCE // 2, partial(self._watch, attempt))

    def _broken(self, attempt: int, _: str) -> None:
        if attempt == self._attempt and not self._closed:
            self._again()

    def _answered(self, attempt: int, replies: Replies) -> None:
        for request, message in replies:
            if attempt != self._attempt or self._closed:
                return
            self._heard_at = self._world.now
            if self._world.tracing:
                self._world.note(self._client, "hears", self._node, message)
            if request in self._streams:
                self._streams[request][1](message)
            elif request in self._open:
                _, heard = self._open.pop(request)
                heard(message)
