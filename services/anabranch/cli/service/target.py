"""A command's conversation with the service: connect, work, close."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from anabranch.cli.advice import WORDS
from anabranch.cli.failure import NotUsable, Unreachable
from anabranch.cli.render.words import printable
from anabranch.client import aio
from anabranch.client.aio import Connecting, Service
from anabranch.client.session.endpoint import endpoint
from anabranch.client.session.settings import Settings
from anabranch.core.errors import AnabranchError, DeadlineExceeded, Retry, Unavailable, reworded
from anabranch.core.records.codecs import Codec

FIRST_ANSWER_S = 2.0
"""How long a server that never answered is tried, if nobody says how long to try."""

_LOOK_S = 0.5
"""How often it is looked whether something stands in the way."""

A = TypeVar("A")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Which service, how to be let in, how long to try, and on whose behalf."""

    url: str
    token: str | None
    timeout_s: float
    first_answer_s: float
    by: str
    reports: bool = False
    """Say on stderr why something is tried again."""

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
        connecting = aio.connect(self.url, timeout=self.first_answer_s, settings=settings)
        reporting = asyncio.ensure_future(_report_obstacles(connecting)) if self.reports else None
        try:
            try:
                service = await connecting
            except Retry as error:
                raise self._unreachable(error) from None
            async with service:
                yield service
        finally:
            if reporting is not None:
                reporting.cancel()

    def run(self, work: Callable[[Service], Awaitable[A]], codec: Codec = Codec.NONE) -> A:
        async def conversation() -> A:
            async with self.connected(codec) as service:
                return await work(service)

        return run(conversation())

    def _unreachable(self, error: Retry) -> Unreachable:
        shown = str(endpoint(self.url))
        if isinstance(error, DeadlineExceeded):
            waited = (
                f"it took the connection, and said nothing within {error.facts['deadline_ms']} ms"
            )
            return NotUsable(shown, f"{waited}: if it is busy, wait longer with --timeout")
        reason = str(error.facts.get("reason") or error.message)
        reason = reason.removeprefix(f"{shown} can't be reached: ")
        if "is spoken there" in reason:
            return NotUsable(shown, reason)
        if "took the connection" in reason:
            return NotUsable(shown, f"{reason} If it is busy, wait longer with --timeout")
        return Unreachable(shown, reason)


async def _report_obstacles(connecting: Connecting) -> None:
    """Print each kind of obstacle once: a command that waits must not look as if it hung."""
    told = ""
    while True:
        await asyncio.sleep(_LOOK_S)
        obstacle = connecting.obstacle
        if obstacle is not None and obstacle.code != told:
            told = obstacle.code
            print(f"retrying: {printable(_cause(obstacle))}", file=sys.stderr)


def _cause(obstacle: AnabranchError) -> str:
    """The obstacle, without the advice to try again, which is being done."""
    if isinstance(obstacle, Unavailable):
        return str(obstacle.facts.get("reason") or obstacle.message)
    return reworded(obstacle, WORDS)


def run(work: Coroutine[Any, Any, A]) -> A:
    """Run on a new event loop, which Ctrl-C stops."""
    return asyncio.run(work)
