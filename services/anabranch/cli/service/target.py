"""A command's conversation with the service: connect, work, close."""

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

FIRST_ANSWER_S = 2.0
"""How long a server that never answered is tried, if nobody says how long to try."""

A = TypeVar("A")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Which service, how to be let in, how long to try, and on whose behalf."""

    url: str
    token: str | None
    timeout_s: float
    first_answer_s: float
    by: str

    @classmethod
    def at(cls, url: str, *, by: str, timeout_s: float) -> "Target":
        """A service whose address says everything."""
        return cls(url=url, token=None, timeout_s=timeout_s, first_answer_s=FIRST_ANSWER_S, by=by)

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
        settings = self.settings(codec)
        try:
            service = await aio.connect(self.url, timeout=self.first_answer_s, settings=settings)
        except Retry as error:
            raise self._unreachable(error) from error
        async with service:
            yield service

    def run(self, work: Callable[[Service], Awaitable[A]], codec: Codec = Codec.NONE) -> A:
        async def conversation() -> A:
            async with self.connected(codec) as service:
                return await work(service)

        return run(conversation())

    def _unreachable(self, error: Retry) -> Unreachable:
        reason = str(error.facts.get("reason") or error.message)
        reason = re.sub(r"\[Errno \d+\] ", "", reason)
        shown = str(endpoint(self.url))
        return Unreachable(shown, reason.removeprefix(f"{shown} can't be reached: "))


def run(work: Coroutine[Any, Any, A]) -> A:
    """On a loop of its own, that Ctrl-C ends."""
    return asyncio.run(work)
