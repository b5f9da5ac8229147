"""What all requests share: what they are asked of, and how long to be patient."""

import asyncio

import msgspec

from anabranch.apps.http.backend import Backend
from anabranch.core.limits import KIB
from anabranch.core.types import LogId
from anabranch.ports import Authority
from anabranch.shell.authority.shared import SharedToken
from anabranch.shell.server.budgets import Budgets
from anabranch.shell.telemetry.http_meter import HttpMeter
from anabranch.shell.telemetry.metrics import KeptPage


class FrontSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds and intervals of HTTP alone; all others are the log's own limits."""

    headers_bytes_max: int = 32 * KIB
    """Path and headers of one request."""

    control_bytes_max: int = 64 * KIB
    """The body of a request that carries no records."""

    lists_bytes_max: int = 512 * KIB
    """The body of a request that carries a list: slices to sign, or a version's parts."""

    body_ms: int = 30_000
    """How long a request's body may take to arrive."""

    heartbeat_ms: int = 15_000
    """A subscription says so often that it is alive, if it has nothing else to say."""


class Front:
    """One per server."""

    def __init__(
        self,
        backend: Backend,
        settings: FrontSettings,
        authority: Authority | None = None,
        budgets: Budgets | None = None,
    ) -> None:
        self.backend = backend
        self.budgets = budgets or Budgets(backend.limits)
        self.authority: Authority = authority or SharedToken(backend.token)
        self.settings = settings
        self.limits = backend.limits
        self.meter = HttpMeter()
        self.stopping = asyncio.Event()
        """Set when the server goes: whoever waits or streams ends."""
        self.names: dict[LogId, str] = {}
        """Of logs that records came from; they never change, and ids are never used again."""

        self.metrics = KeptPage(self._metrics)

    def _metrics(self) -> bytes:
        return self.backend.metrics() + self.meter.render()
