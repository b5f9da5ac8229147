"""What all requests share: the running log, a seat at its broker, and how long to be patient."""

import asyncio

import msgspec

from anabranch.apps.up import Embedded
from anabranch.core.errors import Unavailable
from anabranch.core.limits import KIB
from anabranch.core.types import LogId
from anabranch.shell.local import Local


class FrontSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds and intervals of HTTP alone; all others are the log's own limits."""

    headers_bytes_max: int = 32 * KIB
    """Path and headers of one request."""

    control_bytes_max: int = 64 * KIB
    """The body of a request that carries no records."""

    body_ms: int = 30_000
    """How long a request's body may take to arrive."""

    heartbeat_ms: int = 15_000
    """A subscription says so often that it is alive, if it has nothing else to say."""


class Front:
    """One per server."""

    def __init__(self, embedded: Embedded, settings: FrontSettings) -> None:
        self.embedded = embedded
        self.settings = settings
        self.limits = embedded.limits
        self.local = Local(embedded.host, embedded.broker)
        self.stopping = asyncio.Event()
        """Set when the server goes: whoever waits or streams ends."""
        self.names: dict[LogId, str] = {}
        """Of logs that records came from; they never change, and ids are never used again."""

    def check_alive(self) -> None:
        """A machine that has stopped answers nobody: say so instead of waiting."""
        failed = self.embedded.host.failed
        if failed.done():
            raise Unavailable("the log", failed.result())
