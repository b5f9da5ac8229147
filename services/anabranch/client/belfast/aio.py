"""The asyncio client of Belfast: `async with anabranch.belfast.aio.connect(url) as log`."""

from anabranch.client.belfast.events import Events
from anabranch.client.belfast.link import Link
from anabranch.client.belfast.log import Appending, Log
from anabranch.client.driver import connecting
from anabranch.client.session.endpoint import belfast_endpoint
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
    return Connecting(belfast_endpoint(url), settings, timeout)


class Connecting(connecting.Connecting[Log]):
    """A log that isn't reached yet."""

    def _made(self) -> tuple[Link, Log]:
        link = Link(self._where, self._settings)
        return link, Log(link)

    async def _answered(self, made: Log) -> None:
        await made.directory(timeout=self._timeout)
