"""The asyncio client of Belfast: `async with anabranch.belfast.aio.connect(url) as log`."""
# a timeout here travels with the request: its outcome is told, not cut off

from collections.abc import Generator
from contextlib import ExitStack
from types import TracebackType

from msgspec.structs import replace

from anabranch.client.belfast.events import Events
from anabranch.client.belfast.log import Appending, Log
from anabranch.client.session.arguments import text
from anabranch.client.session.endpoint import Endpoint, belfast_endpoint
from anabranch.client.session.settings import Settings

__all__ = ["Appending", "Connecting", "Events", "Log", "connect"]

CONNECT_TIMEOUT_S = 5.0


def connect(
    url: str, *, timeout: float = CONNECT_TIMEOUT_S, settings: Settings | None = None
) -> "Connecting":
    """A log to await, or to enter with `async with`: leaving it closes it.

    `belfast://[token@]host:port[,host:port...]/CLUSTER`, any of its sequencers and shards;
    `?token_file=FILE` holds a token. `belfasts://` is TLS, its authority named by `?ca=FILE`.
    """
    where, chosen = belfast_endpoint(url), settings or Settings()
    if where.token is not None:
        chosen = replace(chosen, token=where.token)
    text("the settings' client", chosen.client)
    if chosen.token is not None:
        text("the token", chosen.token)
    return Connecting(where, chosen, timeout)


class Connecting:
    """A log that isn't reached yet."""

    def __init__(self, where: Endpoint, settings: Settings, timeout: float) -> None:
        self._where, self._settings, self._timeout = where, settings, timeout
        self._log: Log | None = None

    def __await__(self) -> Generator[object, None, Log]:
        return self.opened().__await__()

    async def __aenter__(self) -> Log:
        self._log = await self.opened()
        return self._log

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._log is not None
        await self._log.__aexit__(kind, error, trace)

    async def opened(self) -> Log:
        """The log, once a node of it has answered."""
        from anabranch.client.belfast.link import Link

        link = Link(self._where, self._settings)
        log = Log(link)
        with ExitStack() as failing:
            failing.callback(link.close)
            link.start()
            await log.directory(timeout=self._timeout)
            failing.pop_all()
        return log
