"""A gateway before a pool, in a thread of its own: the HTTP front over real frames."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.integration.living import PATIENCE_S, living

from anabranch.apps.http.context import FrontSettings
from anabranch.apps.pods.bolt_settings import GatewaySettings
from anabranch.apps.pods.gateway import serve
from anabranch.apps.pods.pod import Endpoint
from anabranch.core.limits import Limits


@dataclass(frozen=True, slots=True)
class Gateway:
    address: str
    probes: str
    stop: Callable[[], object]


@contextmanager
def gateway(
    service: str,
    limits: Limits | None = None,
    front: FrontSettings | None = None,
    token: str | None = None,
    service_token: str | None = None,
    **more: Any,
) -> Iterator[Gateway]:
    settings = GatewaySettings(
        service=service,
        service_token=service_token,
        http_port=0,
        token=token,
        limits=limits or Limits(),
        patience_ms=round(PATIENCE_S * 1_000),
        **more,
    )
    found: list[Gateway] = []

    async def live(ready: Callable[[], None], stop: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()

        def told(endpoint: Endpoint) -> None:
            end = partial(loop.call_soon_threadsafe, stop.set)
            found.append(Gateway(endpoint.address, endpoint.probes or "", end))
            ready()

        await serve(settings, told, front=front, stop=stop)

    with living(live):
        yield found[0]
