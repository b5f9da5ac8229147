"""The pool of brokers as the HTTP front sees it: our own client, message by message.

So a request survives whichever broker dies under it: the client asks another, with the numbers that
keep it from being done twice.
"""

from collections.abc import AsyncGenerator
from typing import Any, cast

from msgspec.structs import replace

from anabranch.client.aio import Service
from anabranch.client.bolt.call import Call
from anabranch.client.bolt.link import Link
from anabranch.client.bolt.subscription import News, Subscription, size_of
from anabranch.client.logs import AsyncLog
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.marks import AppendMarked
from anabranch.core.bolt.protocol.messages import (
    Appended,
    ClientMessage,
    Describe,
    ServerMessage,
    Subscribe,
)
from anabranch.core.errors import AnabranchError, Unavailable
from anabranch.core.limits import Limits
from anabranch.core.records.batch import check
from anabranch.core.types import LogId, Milliseconds
from anabranch.shell.authority.tokens import Tokens
from anabranch.shell.telemetry.log import Log
from anabranch.shell.telemetry.metrics import render

SERVICE = "the log"


class GatewayGauges:
    """Of what a gateway knows of its brokers."""

    __slots__ = ("brokers_connected", "pending_bytes")

    def __init__(self, link: Link) -> None:
        self.brokers_connected = link.session.servers_up
        self.pending_bytes = link.session.pending_bytes


class Remote:
    """`Backend` over a link."""

    grace_ms = 1_000

    def __init__(
        self, link: Link, limits: Limits, log: Log, *, version: str, token: Tokens
    ) -> None:
        self._link = link
        self._service = Service(link)
        self.version = version
        self.limits = limits
        self.token = token
        self.log = log
        self.counters: dict[str, Any] = {}

    @property
    def cluster(self) -> str:
        """Unknown until the first broker was met."""
        welcome = self._link.session.welcome
        return welcome.cluster if welcome else ""

    @property
    def _limits_there(self) -> Limits:
        """Of brokers, as far as they have said."""
        welcome = self._link.session.welcome
        if welcome is None:
            return self.limits
        return replace(
            self.limits,
            record_bytes_max=welcome.record_bytes_max,
            batch_bytes_max=welcome.batch_bytes_max,
            batch_records_max=welcome.batch_records_max,
        )

    def check_alive(self) -> None:
        ended = self._link.session.ended
        if ended is not None:
            raise Unavailable(SERVICE, ended.message)

    def check_ready(self) -> None:
        self.check_alive()
        session = self._link.session
        if not session.servers_up:
            raise Unavailable(SERVICE, session.trouble)

    async def call(
        self, message: ClientMessage, what: str, timeout_ms: Milliseconds, wait_ms: Milliseconds
    ) -> ServerMessage:
        if isinstance(message, AppendMarked):
            # A broker hangs up on who sends a frame that is too large: the batch is known here.
            check(message.batch, self._limits_there, "of this append")
        call = Call(message, what, timeout_ms, wait_ms, patient=False)
        self._link.put(call)
        answer = await self._link.answered(call, object)
        return cast("ServerMessage", answer)

    async def append(
        self, log: Description, batch: bytes, timeout_ms: Milliseconds, wait_ms: Milliseconds
    ) -> Appended:
        """As one of this gateway's own, and numbered: so another broker may be sent it again."""
        link = self._link
        # A batch that brokers refuse holds up those behind it: it is known here already.
        check(batch, self._limits_there, "of this append")
        producer = link.session.producer(log.id, log.name)
        pledge = producer.add_batch(batch, timeout_ms, wait_ms)
        link.written()
        await link.settled(pledge)
        if isinstance(pledge.outcome, AnabranchError):
            raise pledge.outcome
        assert pledge.outcome is not None, "it is settled"
        return pledge.outcome

    async def stream(self, message: Subscribe) -> AsyncGenerator[News]:
        link = self._link
        subscription = Subscription(message.log, message.start, speculative=message.speculative)
        link.open(subscription)
        try:
            while True:
                news = await link.news(subscription)
                yield news
                link.taken(subscription, size_of(news))
        finally:
            link.leave(subscription)

    async def open(self, log: Description, timeout_ms: Milliseconds) -> AsyncLog:
        return await self._service.opened(log, timeout_ms / 1_000)

    async def close(self) -> None:
        """Hang up on the nodes of logs that were opened, and on brokers."""
        await self._service.close(wait=False)

    async def describe(self, log: LogId | str) -> Description:
        """As the gateway itself may: to learn whose log it is."""
        link = self._link
        what = f"describe {log}"
        return await link.ask(Describe(log), Description, what, link.milliseconds(None))

    def metrics(self) -> bytes:
        return render(self.counters, {"gateway": GatewayGauges(self._link)})
