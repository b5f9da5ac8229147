"""What the HTTP front stands before: a log in this process, or a pool of brokers elsewhere."""

from collections.abc import AsyncGenerator
from typing import Protocol

from anabranch.apps.own_client import OwnClient
from anabranch.apps.up import Embedded
from anabranch.client.logs import AsyncLog
from anabranch.core.bolt.protocol.clients import BOLT, Pushed
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.messages import (
    Append,
    Appended,
    ClientMessage,
    ServerMessage,
    Subscribe,
)
from anabranch.core.errors import NotReady, Unavailable
from anabranch.core.limits import Limits
from anabranch.core.types import Milliseconds
from anabranch.shell.authority.tokens import Tokens
from anabranch.shell.server.local import Local
from anabranch.shell.telemetry.log import Log


class Backend(Protocol):
    """Refusals are raised as the errors they are."""

    version: str
    limits: Limits
    """What is taken from clients of HTTP."""
    token: Tokens
    """What they must show."""
    log: Log
    grace_ms: Milliseconds
    """How much later than it should an answer may come that says why there is none."""

    @property
    def cluster(self) -> str: ...

    def check_alive(self) -> None:
        """Raise if nothing will ever be answered any more."""
        ...

    def check_ready(self) -> None:
        """Raise if it is known that nothing can be answered now."""
        ...

    async def call(
        self, message: ClientMessage, what: str, timeout_ms: Milliseconds, wait_ms: Milliseconds
    ) -> ServerMessage:
        """One request, one reply; a request that may be repeated is, until its time is over."""
        ...

    async def append(
        self, log: Description, batch: bytes, timeout_ms: Milliseconds, wait_ms: Milliseconds
    ) -> Appended:
        """Of a batch that names no producer: once at most, however often that takes.

        `timeout_ms` is all the time there is, `wait_ms` how long of it a broker may hold the append
        while the log is blocked.
        """
        ...

    def stream(self, message: Subscribe) -> AsyncGenerator[Pushed]:
        """What is pushed, until the caller closes the generator or the subscription is refused."""
        ...

    async def open(self, log: Description, timeout_ms: Milliseconds) -> AsyncLog:
        """The log as a client has it: to ask its own nodes what brokers don't know of it."""
        ...

    def metrics(self) -> bytes: ...


class Seated:
    """A seat at the broker of a log in this process: nothing is lost on the way, or repeated."""

    grace_ms = 0

    def __init__(self, embedded: Embedded) -> None:
        self._embedded = embedded
        self._local = Local(embedded.host, embedded.broker, BOLT)
        self._client = OwnClient(embedded)
        self.cluster = embedded.cluster
        self.version = embedded.version
        self.limits = embedded.limits
        self.token = embedded.token
        self.log = embedded.log

    def check_alive(self) -> None:
        """A machine that has stopped answers nobody: say so instead of waiting."""
        failed = self._embedded.host.failed
        if failed.done():
            raise Unavailable("the log", failed.result())

    def check_ready(self) -> None:
        self.check_alive()
        obstacle = self._embedded.obstacle()
        if obstacle is not None:
            raise NotReady(obstacle)

    async def call(
        self, message: ClientMessage, what: str, timeout_ms: Milliseconds, wait_ms: Milliseconds
    ) -> ServerMessage:
        """Who asks counts the time."""
        self.check_alive()
        return await self._local.call(message)

    async def append(
        self, log: Description, batch: bytes, timeout_ms: Milliseconds, wait_ms: Milliseconds
    ) -> Appended:
        message = Append(log.id, batch, wait_ms)
        answer = await self.call(message, f"append to {log.name}", timeout_ms, wait_ms)
        assert isinstance(answer, Appended)
        return answer

    def stream(self, message: Subscribe) -> AsyncGenerator[Pushed]:
        return self._local.stream(message)

    async def open(self, log: Description, timeout_ms: Milliseconds) -> AsyncLog:
        self.check_alive()
        return await self._client.service().opened(log, timeout_ms / 1_000)

    def metrics(self) -> bytes:
        return self._embedded.metrics()
