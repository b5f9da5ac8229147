"""A client's connection to one node: dialed, welcomed, then frames out and frames in.

It decides nothing: what is lost with it is repeated by whoever knows what it was.
"""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import cast

from anabranch.core.belfast.protocol.codec import encode_request, replies
from anabranch.core.belfast.protocol.messages import Hello, ToClient, ToServer, Welcome
from anabranch.core.errors import BadFrame, Unavailable, restore
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Buffer
from anabranch.core.wire.frames import CONNECTION
from anabranch.shell.net.connect import Hint, reach
from anabranch.shell.net.delay import Delay
from anabranch.shell.peers.connection import HANDSHAKE_S, set_up, write_all
from anabranch.shell.peers.dialer import CONNECT_S, parse_address

Heard = Callable[[int, ToClient], None]
Lost = Callable[[str], None]


class ClientLine(asyncio.Protocol):
    """Requests are numbered by who sends them, from 1; what is sent in one turn of the loop is
    written at its end. After `close`, nothing more is heard of it.
    """

    def __init__(self, address: str, heard: Heard, lost: Lost, delay_us: int) -> None:
        self._address = address
        self._heard = heard
        self._lost = lost
        self._delay = Delay(delay_us)
        self._loop = asyncio.get_running_loop()
        self._reader = replies()
        self._transport: asyncio.Transport
        self._welcomed: asyncio.Future[Welcome] = self._loop.create_future()
        # Whoever dials may have left by the time that the node refuses it.
        self._welcomed.add_done_callback(_note)
        self._out: list[Buffer] = []
        self._greeted = False
        self._closed = False
        self._why = ""
        self.welcome: Welcome
        """What the node said of itself."""

    @classmethod
    async def dialed(
        cls,
        address: str,
        hello: Hello,
        *,
        heard: Heard,
        lost: Lost,
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
        hint: Hint | None = None,
        delay_us: int = 0,
    ) -> "ClientLine":
        """Connected and welcomed; raises Unavailable if nobody answers, or what the node's
        refusal says. `heard` gets each reply with its request's number. `lost` is called once,
        with the reason, if the connection ends by itself.

        `hint`: where others have met the node; its name may not lead there yet. For benchmarks,
        `delay_us` passes before a frame is written, and before one is heard.
        """
        host, port = parse_address(address)
        make = partial(cls, address, heard, lost, delay_us)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_S):
                sock = await reach(host, port, hint)
                checked = (server_name or host) if tls else None
                _, line = await loop.create_connection(
                    make, sock=sock, ssl=tls, server_hostname=checked
                )
        except TimeoutError:
            reason = f"it takes no connection within {CONNECT_S:g} s"
            raise Unavailable(address, reason) from None
        except (OSError, UnicodeError) as error:
            raise Unavailable(address, str(error)) from None
        await line._greet(hello)
        return line

    def send(self, request: int, message: ToServer) -> None:
        """What is sent to a connection that is over is dropped."""
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out += encode_request(request, message)

    def close(self) -> None:
        self._closed = True
        self._delay.stop()
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Other loops' transports offer the same, but aren't asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        set_up(self._transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        found = self._reader.feed(data)
        if found:
            self._delay.after(partial(self._take, found))
        if self._reader.broken is not None:
            self._end(self._reader.broken.message)

    def connection_lost(self, exc: Exception | None) -> None:
        why = self._why or (str(exc) if exc else "the other side has ended it")
        self._delay.after(partial(self._over, why))

    async def _greet(self, hello: Hello) -> None:
        self._write(encode_request(CONNECTION, hello))
        with ExitStack() as failing:
            failing.callback(self.close)
            try:
                async with asyncio.timeout(HANDSHAKE_S):
                    self.welcome = await self._welcomed
            except TimeoutError:
                reason = f"it doesn't answer within {HANDSHAKE_S:g} s"
                raise Unavailable(self._address, reason) from None
            if self._closed:  # between its welcome and this step
                raise Unavailable(self._address, self._why)
            self._greeted = True
            failing.pop_all()

    def _take(self, found: "Sequence[tuple[int, ToClient | BadFrame]]") -> None:
        for request, message in found:
            if self._closed:
                return
            if isinstance(message, BadFrame):
                self._end(f"a reply can't be read: {message.message}")
            elif request == CONNECTION:
                self._told(message)
            elif not self._welcomed.done():
                self._end("it answered before it was asked")
            else:
                self._heard(request, message)

    def _told(self, message: ToClient) -> None:
        """About the connection as a whole."""
        if isinstance(message, Welcome) and not self._welcomed.done():
            self._welcomed.set_result(message)
        elif isinstance(message, Refused):
            if not self._welcomed.done():
                error = restore(message.code, message.message, message.facts)
                self._closed = True
                self._welcomed.set_exception(error)
            self._end(message.message)
        else:
            self._end("it said what belongs to no request")

    def _over(self, why: str) -> None:
        if self._closed:
            return
        self._closed = True
        self._why = why
        if self._greeted:
            self._lost(why)
        elif not self._welcomed.done():
            self._welcomed.set_exception(Unavailable(self._address, why))

    def _end(self, why: str) -> None:
        self._why = self._why or why
        self._transport.abort()

    def _flush(self) -> None:
        out, self._out = self._out, []
        self._delay.after(partial(self._write, out))

    def _write(self, out: list[Buffer]) -> None:
        if not self._transport.is_closing():
            write_all(self._transport, out)


def _note(welcomed: "asyncio.Future[Welcome]") -> None:
    """An error that nobody waits for any more isn't one that was overlooked."""
    if not welcomed.cancelled():
        welcomed.exception()
