"""Clients that speak to a frame server frame by frame, and say what real ones never do."""

import asyncio

from anabranch.core.bolt.protocol import codec
from anabranch.core.bolt.protocol.messages import ClientMessage, Hello, ServerMessage, Welcome
from anabranch.core.errors import BadFrame
from anabranch.core.errors.refused import Refused

PATIENCE_S = 20.0


class Wire:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._frames = codec.replies()
        self._come: list[tuple[int, ServerMessage | BadFrame]] = []
        self._last = 0

    def say(self, message: ClientMessage) -> int:
        """Write a request, and return its number."""
        self._last += 1
        self.raw(b"".join(codec.encode_request(self._last, message)))
        return self._last

    def raw(self, content: bytes) -> None:
        self.writer.write(content)

    async def hear(self) -> tuple[int, ServerMessage | BadFrame]:
        """The next reply, after the number of its request."""
        while not self._come:
            content = await asyncio.wait_for(self.reader.read(1 << 16), PATIENCE_S)
            if not content:
                raise EOFError
            self._come = self._frames.feed(content)
        return self._come.pop(0)

    async def answer(self) -> ServerMessage | BadFrame:
        """The next reply, whatever it answers."""
        return (await self.hear())[1]

    async def code(self) -> str:
        """Of the next reply, which is a refusal."""
        refused = await self.answer()
        assert isinstance(refused, Refused)
        return refused.code

    async def call(self, message: ClientMessage) -> ServerMessage | BadFrame:
        request = self.say(message)
        answered, reply = await self.hear()
        assert answered == request
        return reply

    async def refusal(self, message: ClientMessage) -> str:
        reply = await self.call(message)
        assert isinstance(reply, Refused)
        return reply.code

    async def left(self) -> bool:
        """The other side has closed."""
        return await asyncio.wait_for(self.reader.read(1 << 16), PATIENCE_S) == b""

    async def drain(self) -> None:
        await self.writer.drain()

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            assert self.writer.is_closing()


class Wires:
    """Connections to one port."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._wires: list[Wire] = []

    async def connect(self) -> Wire:
        wire = Wire(*await asyncio.open_connection("127.0.0.1", self.port))
        self._wires.append(wire)
        return wire

    async def greeted(self, token: str | None = None) -> Wire:
        wire = await self.connect()
        assert isinstance(await wire.call(Hello(1, "test", token)), Welcome)
        return wire

    async def close(self) -> None:
        for wire in self._wires:
            await wire.close()

    def abort(self) -> None:
        for wire in self._wires:
            wire.writer.transport.abort()
        self._wires.clear()
