"""An ASGI application served inside the loop that runs everything else."""

import asyncio
import socket
from typing import Any

import uvicorn

_DRAIN_S = 5


class AsgiServer:
    """uvicorn without its hold on the process: signals and logs are the caller's."""

    def __init__(self, app: Any) -> None:
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                http="httptools",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_DRAIN_S,
            )
        )
        self._sockets: list[socket.socket] = []
        self._serving: asyncio.Task[None] | None = None

    async def start(self, address: str, port: int) -> int:
        """Listen; says on which port."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(address, port, type=socket.SOCK_STREAM)
        family, _, _, _, where = found[0]
        listener = socket.create_server(where[:2], family=family, reuse_port=False)
        self._sockets = [listener]
        config = self._server.config
        config.load()
        self._server.lifespan = config.lifespan_class(config)
        await self._server.startup(sockets=self._sockets)
        self._serving = asyncio.create_task(self._server.main_loop())
        return listener.getsockname()[1]

    async def stop(self) -> None:
        assert self._serving is not None
        self._server.should_exit = True
        await self._serving
        await self._server.shutdown(sockets=self._sockets)
