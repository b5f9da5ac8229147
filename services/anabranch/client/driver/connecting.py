"""A service or a log that isn't reached yet."""

from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from msgspec.structs import replace

from anabranch.client.driver.link import Link
from anabranch.client.session.arguments import text
from anabranch.client.session.endpoint import Endpoint
from anabranch.client.session.settings import Settings


class Connected(Protocol):
    """Closes its connection when it is left."""

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


C = TypeVar("C", bound=Connected)


class Connecting(ABC, Generic[C]):
    """Await it, or enter it with `async with`: leaving closes what was reached."""

    def __init__(self, where: Endpoint, settings: Settings | None, timeout: float) -> None:
        chosen = settings or Settings()
        if where.token is not None:
            chosen = replace(chosen, token=where.token)
        text("the settings' client", chosen.client)
        if chosen.token is not None:
            text("the token", chosen.token)
        self._where, self._settings, self._timeout = where, chosen, timeout
        self._connected: C | None = None

    def __await__(self) -> Generator[object, None, C]:
        return self.opened().__await__()

    async def __aenter__(self) -> C:
        self._connected = await self.opened()
        return self._connected

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._connected is not None, "what is left was entered"
        await self._connected.__aexit__(kind, error, trace)

    async def opened(self) -> C:
        """What was to be reached, once a server has answered."""
        link, made = self._made()
        with ExitStack() as failing:
            failing.callback(link.close)
            link.start()
            await self._answered(made)
            failing.pop_all()
        return made

    @abstractmethod
    def _made(self) -> tuple[Link[Any, Any], C]:
        """The link, not started yet, and what a program holds of it."""

    @abstractmethod
    async def _answered(self, made: C) -> None:
        """Wait for the first answer, within the timeout."""
