"""What is asked of the operator over HTTP: probes and metrics in the clear, evictions over TLS."""

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
from aiohttp import web

from anabranch.apps.pods.probe import Readiness
from anabranch.shell.net.tls import TlsSettings, listening
from anabranch.shell.telemetry.log import Log
from anabranch.shell.telemetry.metrics import CONTENT_TYPE

_LOOK_S = 1.0
_BODY_BYTES_MAX = 1 << 18
"""A review of an eviction is small: its object is a name, and the rest says who asks."""

Handler = Callable[[web.Request], Awaitable[web.Response]]


class Probes:
    """Live while the loop answers and nothing has failed; ready once all there is was listed."""

    def __init__(
        self,
        failed: Callable[[], str | None],
        readiness: Callable[[], Readiness],
        metrics: Callable[[], bytes],
    ) -> None:
        self._failed = failed
        self._readiness = readiness
        self._metrics = metrics

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/healthz", self._healthz),
            web.get("/readyz", self._readyz),
            web.get("/metrics", self._page),
        ]

    async def _healthz(self, _: web.Request) -> web.Response:
        why = self._failed()
        return _json(503 if why else 200, {"live": not why, "why": why})

    async def _readyz(self, _: web.Request) -> web.Response:
        found = self._readiness()
        told = {"ready": found.ready, **msgspec.structs.asdict(found)}
        return _json(200 if found.ready else 503, told)

    async def _page(self, _: web.Request) -> web.Response:
        return web.Response(body=self._metrics(), headers={"Content-Type": CONTENT_TYPE})


class Server:
    """One listener; it says on which port."""

    def __init__(self, routes: list[web.RouteDef]) -> None:
        application = web.Application(client_max_size=_BODY_BYTES_MAX)
        application.add_routes(routes)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)

    async def start(self, host: str, port: int) -> int:
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()
        return self._runner.addresses[0][1]

    async def answer(self, listener: socket.socket, tls: ssl.SSLContext) -> None:
        """On a socket that listens already."""
        await self._runner.setup()
        await web.SockSite(self._runner, listener, ssl_context=tls).start()

    async def stop(self) -> None:
        await self._runner.cleanup()


async def certificate(folder: Path, client_ca: str, log: Log) -> ssl.SSLContext:
    """Once it is there: the operator itself may be the one who makes it. It follows its files.

    With `client_ca` only callers are let in that show a certificate of that authority.
    """
    files = TlsSettings(cert=str(folder / "tls.crt"), key=str(folder / "tls.key"), ca=client_ca)
    waits = False
    while not all(map(os.path.exists, files.files)):
        if not waits:
            log.info("waiting for the webhook's certificate", folder=str(folder))
        waits = True
        await asyncio.sleep(_LOOK_S)
    context = listening(files, log)
    assert context is not None, "files were named"
    return context


def _json(status: int, content: object) -> web.Response:
    body = msgspec.json.encode(content) + b"\n"
    return web.Response(status=status, body=body, content_type="application/json")
