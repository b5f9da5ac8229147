"""How what holds connections is left: with no append pending, or at once."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from anabranch.client.driver.handover import Handover
    from anabranch.client.driver.link import Link


class Closing(ABC):
    """A service or a log that closes its links when it is left."""

    @property
    @abstractmethod
    def _links(self) -> "Iterable[Link[Any, Any]]":
        """All that it holds."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close(wait=error is None)

    async def close(self, *, wait: bool = True) -> None:
        """Wait until no append is pending, then close; raises what became of one nobody awaited.

        Without `wait`, close at once: an append that isn't answered yet may be done or not, and
        whoever awaits it gets Unavailable or DeadlineExceeded.
        """
        try:
            if wait:
                await self.flush()
        finally:
            for each in self._links:
                each.close()

    async def flush(self) -> None:
        """Wait until no append is pending; raises the first error of one that nobody awaited."""
        for each in self._links:
            await each.quiet()
        for each in self._links:
            each.raise_unheeded()


class SyncClosing:
    """The same for programs without an event loop: leaving it ends the loop as well."""

    _loop: "Handover"
    _closing: Closing

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(wait=error is None)

    def close(self, *, wait: bool = True) -> None:
        """Wait until no append is pending, and close; raises the error of one nobody awaited.

        Without `wait`, close at once: an append that isn't answered yet may be done or not, and
        whoever asks for its result gets an error.
        """

        async def closed() -> None:
            try:
                if wait:
                    await self._loop.taken()
            finally:
                await self._closing.close(wait=wait)

        self._loop.run_last(closed())

    def flush(self) -> None:
        """Wait until no append is pending; raises the first error of one that nobody awaited."""
        self._loop.run(self._loop.taken())
        self._loop.run(self._closing.flush())
