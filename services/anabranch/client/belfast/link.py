"""The link of a Belfast session: how programs ask, append and subscribe."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

from collections.abc import Sequence
from functools import partial
from typing import TypeVar

from anabranch.client.belfast.call import Call
from anabranch.client.belfast.session import Session
from anabranch.client.belfast.subscriber import Subscriber
from anabranch.client.driver import link
from anabranch.client.session.endpoint import Endpoint
from anabranch.client.session.settings import Settings
from anabranch.core.belfast.protocol.messages import ToClient, ToServer
from anabranch.shell.runtime.randomness import randbits

T = TypeVar("T")


class Link(link.Link[ToServer, ToClient]):
    def __init__(
        self,
        endpoint: Endpoint,
        settings: Settings,
        cluster: str | None = None,
        nodes: Sequence[str] | None = None,
    ) -> None:
        """`cluster`, `nodes`: of a log that a service has named; else they are the endpoint's."""
        named = list(map(str, endpoint.addresses)) if nodes is None else nodes
        self.session = Session(
            endpoint.cluster if cluster is None else cluster, settings, randbits, named
        )
        super().__init__(endpoint, self.session)

    async def ask(self, message: ToServer, answer: type[T], what: str, timeout: float | None) -> T:
        call = Call(message, what, self.milliseconds(timeout))
        self.put(call)
        return await self.answered(call, answer)

    async def arrivals(self, subscriber: Subscriber, *, records: bool) -> None:
        """Wait until there is something to take; raises why nothing more comes."""
        await self.arrival(subscriber, partial(subscriber.ready, records=records))
