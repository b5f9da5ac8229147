"""What one client wants of one node: found, asked, and asked again elsewhere until it is done."""

from collections.abc import Callable
from functools import partial
from typing import Any

from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.protocol.messages import Directory, Elsewhere, Locate
from anabranch.core.errors import AnabranchError, Retry
from anabranch.core.errors.refused import Refused
from anabranch.core.types import MS, Nanoseconds
from anabranch_sim.belfast.deployment import BelfastDeployment
from anabranch_sim.world.connection import Connection, Replies

PATIENCE: Nanoseconds = 400 * MS
"""With a node that says nothing."""

_DIRECTIONS = 1 << 20
"""The request that asks for the way."""


class NodeClient:
    """Asks anybody for the way, then whoever it concerns; begins again when that breaks."""

    def __init__(self, deployment: BelfastDeployment, name: str) -> None:
        self.deployment = deployment
        self.world = deployment.world
        self.name = name
        self.over = False
        self.at: Connection | None = None
        self._attempt = 0
        self._spoken = False
        """Is this connection the one to whom it concerns?"""
        self._heard_at: Nanoseconds = 0

    def target(self, directory: Directory) -> str:
        """Whom it concerns; empty, if nobody at present."""
        raise NotImplementedError

    def speak(self, connection: Connection) -> None:
        """All that is to be said at the beginning of a connection."""
        raise NotImplementedError

    def hear(self, request: int, message: Any) -> None:
        """An answer other than the directory, a redirection or a refusal for now."""
        raise NotImplementedError

    def refused(self, request: int, error: AnabranchError) -> None:
        """For good."""
        raise NotImplementedError

    def waits(self) -> bool:
        """Is an answer due?"""
        return True

    def lost(self) -> None:
        """The connection is gone, and with it what came only by it."""

    def begin(self) -> None:
        if self.over:
            return
        nodes = [*self.deployment.members, *self.deployment.replicas()]
        self._dial(self.world.rng.choice(nodes), self._ask_the_way)

    def end(self) -> None:
        self.over = True
        self._drop()

    def reset(self, reason: str) -> None:
        """The network breaks the connection."""
        if self.at is not None:
            self.at.broken(reason)

    def _speak(self, connection: Connection) -> None:
        self._spoken = True
        self.speak(connection)

    def _ask_the_way(self, connection: Connection) -> None:
        connection.transmit(_DIRECTIONS, Locate())

    def _dial(self, address: str, then: Callable[[Connection], None]) -> None:
        self._drop()
        self._attempt += 1
        attempt, node = self._attempt, self.deployment.node(address)
        if not node.alive:
            self.again()
            return
        self.at = connection = Connection(
            self.deployment.network,
            self.name,
            node,
            partial(self._heard, attempt),
            partial(self._broken, attempt),
        )
        self._heard_at = self.world.now
        connection.connect(lambda: then(connection))
        self.world.after(PATIENCE, partial(self._watch, attempt))

    def _drop(self) -> None:
        if self.at is not None:
            self.at.hang_up()
            self.at, self._spoken = None, False
            self.lost()

    def again(self) -> None:
        """From the beginning, after a while."""
        self._drop()
        self._attempt += 1
        attempt = self._attempt
        pause = self.world.between(2 * MS, 40 * MS)
        self.world.after(pause, lambda: self.begin() if attempt == self._attempt else None)

    def _watch(self, attempt: int) -> None:
        if attempt != self._attempt or self.over:
            return
        if self.waits() and self.world.now - self._heard_at >= PATIENCE:
            self.again()
        else:
            self.world.after(PATIENCE // 2, partial(self._watch, attempt))

    def _broken(self, attempt: int, _: str) -> None:
        if attempt == self._attempt and not self.over:
            self.again()

    def _heard(self, attempt: int, replies: Replies) -> None:
        for request, message in replies:
            if attempt == self._attempt and not self.over:
                self._heard_at = self.world.now
                self._read(request, message)

    def _read(self, request: int, message: Any) -> None:
        if self.world.tracing:
            self.world.note(self.name, "hears", message)
        match message:
            case Directory() if request == _DIRECTIONS:
                self._go(self.target(message))
            case Elsewhere(node):
                self._go(node)
            case Refused():
                error = message.error()
                if isinstance(error, Retry) or request == _DIRECTIONS:
                    self.again()
                else:
                    self.refused(request, error)
            case _:
                self.hear(request, message)

    def _go(self, address: str) -> None:
        if address in self.deployment.around.nodes:
            self._dial(address, self._speak)
        else:
            self.again()


def server_of(directory: Directory, shard: str) -> str:
    """Who serves this shard's subscribers: its primary, or that of whoever stands in."""
    known = {each.name: each for each in directory.shards}
    found = known.get(shard)
    if found is None:
        return ""
    if found.standing is Standing.FAILED and found.stand_in in known:
        found = known[found.stand_in]
    return found.primary
