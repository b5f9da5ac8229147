"""A gateway before a pool, in a thread of its own: the HTTP front over real frames."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import uvloop

from anabranch.apps.http.front import FrontSettings
from anabranch.apps.pods.common import Endpoint
from anabranch.apps.pods.gateway import serve
from anabranch.apps.pods.settings import GatewaySettings
from anabranch.core.limits import Limits

PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Gateway:
    address: str
    stop: Callable[[], object]


@contextmanager
def gateway(
    service: str,
    limits: Limits | None = None,
    front: FrontSettings | None = None,
    token: str | None = None,
    service_token: str | None = None,
) -> Iterator[Gateway]:
    settings = GatewaySettings(
        service=service,
        service_token=service_token,
        http_port=0,
        token=token,
        limits=limits or Limits(),
        patience_ms=round(PATIENCE_S * 1_000),
    )
    found: list[Gateway] = []
    ready = threading.Event()
    ended: list[BaseException] = []

    async def live() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()

        def told(endpoint: Endpoint) -> None:
            end = partial(loop.call_soon_threadsafe, stop.set)
            found.append(Gateway(endpoint.address, end))
            ready.set()

        await serve(settings, told, front=front, stop=stop)

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(live())
        except BaseException as error:
            ended.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(PATIENCE_S)
    if ended:
        thread.join()
        raise ended[0]
    try:
        yield found[0]
    finally:
        if thread.is_alive():
            found[0].stop()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
