"""The way from a process of a front to its log: the session of a Bolt client, over real frames."""

from functools import partial
from typing import Any

from anabranch.client.bolt.call import Call
from anabranch.client.bolt.session import Session
from anabranch.client.session import parts
from anabranch.client.session.effects import Asked, Ended
from anabranch.client.session.pledge import Promise
from anabranch.client.session.settings import Settings
from anabranch.core.bolt.front.questions import LOG, AskLog, LogAnswered
from anabranch.core.bolt.protocol.messages import Order
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Received
from anabranch_sim.bolt.cluster import Cluster
from anabranch_sim.world.node import Node
from anabranch_sim.world.session import SessionDriver

TIMEOUT_MS = 3_000
"""Then the machine hears why it isn't answered, and asks again."""


class FrontDoor(SessionDriver):
    """Of one life of a node."""

    def __init__(self, cluster: Cluster, node: Node) -> None:
        super().__init__(cluster, node.name)
        self.life = node.life
        self._cluster = cluster
        self._node = node
        settings = Settings(
            client=node.name,
            timeout_ms=TIMEOUT_MS,
            route_ms=1_000,
            backoff_ms=20,
            backoff_ms_max=500,
            silence_ms=1_000,
        )
        self._session = Session(settings, self.world.rng.getrandbits, cluster.addresses)
        self.drive(self._session)

    def find(self, address: str) -> Node | None:
        return self._cluster.at(address)

    def ask(self, letter: AskLog) -> None:
        call = Call(Order(letter.message), f"a question of {self.name}", TIMEOUT_MS)
        call.waiter = partial(self._answered, letter.request)
        self.step(Asked(call))

    def close(self) -> None:
        """With its process, of which nothing is heard any more."""
        self.life = -1
        self.step(Ended())

    def on_settled(self, pledge: Promise[Any]) -> None:
        raise AssertionError("a front has no producer")

    def on_arrived(self, subscription: parts.Subscription) -> None:
        raise AssertionError("a front follows nothing")

    def _answered(self, request: int, asked: Call) -> None:
        answer = asked.answer if asked.error is None else Refused.of(asked.error)
        event = Received(LOG, LogAnswered(request, answer))
        self.world.at(self.world.now, partial(self._node.deliver, self.life, event))
