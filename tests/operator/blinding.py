"""A way to the API server whose watches can be made to fall silent, while all else goes on."""

import asyncio
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import aiohttp
from aiohttp import web
from tests.integration.living import living
from tests.kubernetes.api_server import ApiServer

_HOPS = {"host", "transfer-encoding", "content-length", "connection"}


class Blinding:
    """Without TLS on its near side. Who may do what is still decided at the far one."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._silent = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.url = ""

    def blind(self) -> None:
        """From now on no watch shows anything, those included that are yet to begin."""
        self._loop.call_soon_threadsafe(self._silent.set)

    async def run(self, ready: Callable[[], None], stop: asyncio.Event) -> None:
        trust = ssl.create_default_context(cafile=str(self._server.ca))
        connector = aiohttp.TCPConnector(ssl=trust, limit=0)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
            self._session = session
            application = web.Application()
            application.router.add_route("*", "/{path:.*}", self._pass)
            runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            ready()
            await stop.wait()
            await runner.cleanup()

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        kept = {k: v for k, v in request.headers.items() if k.lower() not in _HOPS}
        content = await request.read()
        where = f"{self._server.url}{request.raw_path}"
        watches = "watch=true" in request.query_string
        async with self._session.request(
            request.method, where, headers=kept, data=content or None
        ) as answer:
            told = {k: v for k, v in answer.headers.items() if k.lower() not in _HOPS}
            response = web.StreamResponse(status=answer.status, headers=told)
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                if watches and self._silent.is_set():
                    await asyncio.Event().wait()
                await response.write(piece)
            await response.write_eof()
            return response


@contextmanager
def blinding(server: ApiServer) -> Iterator[Blinding]:
    found: list[Blinding] = []

    async def live(ready: Callable[[], None], stop: asyncio.Event) -> None:
        found.append(Blinding(server))
        await found[0].run(ready, stop)

    with living(live):
        yield found[0]
