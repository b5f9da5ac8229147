"""A subscription, as a program without an event loop holds it."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from anabranch.client.driver.handover import Handover
from anabranch.client.session.records import Event


class AsyncEvents(Protocol):
    """The same subscription, as the loop has it."""

    async def __aenter__(self) -> Any: ...

    def given(self) -> Event | None:
        """The next event; None if it is to be fetched first."""
        ...

    async def fetch(self) -> None:
        """Wait until the next event is at hand."""
        ...

    async def take(self, *, timeout: float | None = None) -> list[Event]:
        """The next events that are there together."""
        ...

    async def left(self) -> None:
        """Want no more of it."""
        ...


E = TypeVar("E", bound=AsyncEvents)


class Events(Generic[E]):
    """Iterate over it, within `with` or until `close`."""

    def __init__(self, loop: Handover, events: E) -> None:
        self._loop, self._events = loop, events

    def __enter__(self) -> Self:
        self._loop.run(self._events.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[Event]:
        """Raises what ends the subscription, as its log says."""
        while True:
            event = self._events.given()
            if event is None:
                self._loop.run(self._events.fetch())
            else:
                yield event

    def take(self, *, timeout: float | None = None) -> list[Event]:
        """The next events that came together; none if none came within `timeout` seconds."""
        return self._loop.run(self._events.take(timeout=timeout))

    def close(self) -> None:
        """Want no more of it."""
        if not self._loop.closed:
            self._loop.run(self._events.left())
