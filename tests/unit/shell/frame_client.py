"""A client that says what a test has it say: hello, then any request under any number."""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from typing import Any

from anabranch.client.driver.wire import Wire
from anabranch.client.session.endpoint import address as parsed
from anabranch.core.belfast.protocol.codec import CODEC
from anabranch.core.belfast.protocol.messages import Hello, ToClient, ToServer, Welcome
from anabranch.core.errors import AnabranchError, Unavailable
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Buffer
from anabranch.core.wire.frames import CONNECTION
from anabranch.shell.net.connect import Hint, reach


class FrameClient:
    """Requests of one turn of the loop are written together, at its end."""

    welcome: Welcome

    def __init__(self, heard: Callable[[int, Any], None], lost: Callable[[str], None]) -> None:
        self._heard, self._lost = heard, lost
        self._loop = asyncio.get_running_loop()
        self._greeted: asyncio.Future[Welcome] = self._loop.create_future()
        self._wire = Wire[ToClient](CODEC.replies(), self._hear, self._lose, None)
        self._out: list[Buffer] = []

    @classmethod
    async def dialed(
        cls,
        address: str,
        hello: Hello,
        heard: Callable[[int, Any], None],
        lost: Callable[[str], None],
        tls: ssl.SSLContext | None = None,
        hint: Hint | None = None,
    ) -> "FrameClient":
        """Welcomed; raises the server's refusal, or Unavailable."""
        self = cls(heard, lost)
        host, port = parsed(address)
        try:
            sock = await reach(host, port, hint)
        except OSError as error:
            raise Unavailable(address, str(error)) from None
        name = host if tls else None
        await self._loop.create_connection(
            lambda: self._wire, sock=sock, ssl=tls, server_hostname=name
        )
        self.send(CONNECTION, hello)
        self.welcome = await self._greeted
        return self

    def send(self, request: int, message: ToServer) -> None:
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out += CODEC.encode_request(request, message)

    def close(self) -> None:
        self._wire.abort()

    def _flush(self) -> None:
        out, self._out = self._out, []
        self._wire.send(out)

    def _hear(
        self, _: Wire[ToClient], replies: Sequence[tuple[int, ToClient | AnabranchError]]
    ) -> None:
        for request, message in replies:
            if self._greeted.done() and request == CONNECTION:
                assert isinstance(message, Refused)
                self.close()
                self._lost(message.message)
            elif self._greeted.done():
                self._heard(request, message)
            elif isinstance(message, Welcome):
                self._greeted.set_result(message)
            else:
                assert isinstance(message, Refused)
                self._greeted.set_exception(message.error())

    def _lose(self, _: Wire[ToClient], reason: str) -> None:
        if self._greeted.done():
            self._lost(reason)
        else:
            self._greeted.set_exception(Unavailable("the node", reason))
