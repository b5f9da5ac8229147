"""The link of a Bolt session: how programs and the gateway ask, append and subscribe."""

from typing import TypeVar

from anabranch.client.bolt.call import Call
from anabranch.client.bolt.session import Session
from anabranch.client.bolt.subscription import News, Subscription
from anabranch.client.driver import link
from anabranch.client.session.endpoint import Endpoint
from anabranch.client.session.settings import Settings
from anabranch.core.bolt.protocol.messages import ClientMessage, ServerMessage
from anabranch.core.types import Milliseconds
from anabranch.shell.runtime.randomness import randbits

_REQUEST_BITS = 128

T = TypeVar("T")


class Link(link.Link[ClientMessage, ServerMessage]):
    def __init__(self, endpoint: Endpoint, settings: Settings) -> None:
        self.session = Session(settings, randbits, list(map(str, endpoint.addresses)))
        super().__init__(endpoint, self.session)

    async def ask(
        self,
        message: ClientMessage,
        answer: type[T],
        what: str,
        timeout_ms: Milliseconds,
        wait_ms: Milliseconds = 0,
    ) -> T:
        return await self.answered(self.begin(message, what, timeout_ms, wait_ms), answer)

    def begin(
        self, message: ClientMessage, what: str, timeout_ms: Milliseconds, wait_ms: int = 0
    ) -> Call:
        """Ask without waiting."""
        call = Call(message, what, timeout_ms, wait_ms)
        self.put(call)
        return call

    async def news(self, subscription: Subscription) -> News:
        """Wait for the next; raises what ended the subscription."""
        await self.arrival(subscription, lambda: bool(subscription.news))
        return subscription.news.popleft()

    def once(self) -> bytes:
        """The id of one request, under which it is done once however often it is sent."""
        return randbits(_REQUEST_BITS).to_bytes(_REQUEST_BITS // 8, "big")
