"""A command's conversation with the server: connect, work, leave."""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from anabranch.cli.failure import Unreachable
from anabranch.client import aio
from anabranch.client.aio import Service
from anabranch.client.session.endpoint import endpoint
from anabranch.client.session.settings import Settings
from anabranch.core.errors import Retry
from anabranch.core.records.codecs import Codec

CONNECT_TIMEOUT_S = 2.0

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Target:
    """Which server, how to be let in, how long to try, and who asks."""

    url: str
    token: str | None
    timeout_s: float
    by: str

    def settings(self, codec: Codec = Codec.NONE) -> Settings:
        return Settings(
            client=self.by,
            token=self.token,
            codec=codec,
            timeout_ms=max(1, round(self.timeout_s * 1_000)),
        )

    @asynccontextmanager
    async def connected(self, codec: Codec = Codec.NONE) -> AsyncGenerator[Service]:
        """Whatever goes wrong before the server's first answer means that it can't be reached."""
        wait = min(CONNECT_TIMEOUT_S, self.timeout_s)
        try:
            service = await aio.connect(self.url, timeout=wait, settings=self.settings(codec))
        except Retry as error:
            reason = str(error.facts.get("reason") or error.message)
            reason = re.sub(r"\[Errno \d+\] ", "", reason)
            shown = str(endpoint(self.url))
            raise Unreachable(shown, reason.removeprefix(f"{shown} can't be reached: ")) from error
        async with service:
            yield service

    def run(self, work: Callable[[Service], Awaitable[A]], codec: Codec = Codec.NONE) -> A:
        async def conversation() -> A:
            async with self.connected(codec) as service:
                return await work(service)

        return run(conversation())


def run(work: Coroutine[Any, Any, A]) -> A:
    """On a loop of its own, that Ctrl-C ends."""
    return asyncio.run(work)
