"""A key-value store over a shared log, with writers and readers apart (LazyLog, 6.11).

A write server validates a put, appends it to the log, and answers when the append is durable. A
read server follows the log at its own pace, keeps the latest value of each key, and answers gets
over the network. A get may miss a put that was answered a moment ago: reads are eventually
consistent, as in the paper.
"""

import asyncio
import struct
from typing import Self

from examples.erwin.shared_log import SharedLog

from anabranch.core.types import Position

KEY_BYTES_MAX = 1_024
VALUE_BYTES_MAX = 256 * 1_024

_KEY = struct.Struct("<H")
_LENGTH = struct.Struct("<i")
_MISSING = -1


def encode_put(key: bytes, value: bytes) -> bytes:
    return _KEY.pack(len(key)) + key + value


def decode_put(record: bytes) -> tuple[bytes, bytes]:
    """The key and the value of a put."""
    (length,) = _KEY.unpack_from(record)
    start = _KEY.size + length
    return record[_KEY.size : start], record[start:]


class WriteServer:
    """Takes puts: one is answered when the log has it."""

    def __init__(self, log: SharedLog) -> None:
        self._log = log

    async def put(self, key: bytes, value: bytes) -> None:
        if not 0 < len(key) <= KEY_BYTES_MAX:
            raise ValueError(f"a key has 1 to {KEY_BYTES_MAX} bytes, and this one has {len(key)}")
        if len(value) > VALUE_BYTES_MAX:
            raise ValueError(
                f"a value has at most {VALUE_BYTES_MAX} bytes, and this one has {len(value)}"
            )
        await self._log.append(encode_put(key, value))


class ReadServer:
    """The latest value of each key, as far as this server has followed the log."""

    def __init__(self, log: SharedLog, start: Position = 0) -> None:
        self.values: dict[bytes, bytes] = {}
        self._log = log
        self._next = start
        self._moved = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        self._following = asyncio.create_task(self._follow())
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._following is not None
        assert self._server is not None
        self._server.close()
        for writer in self._clients:
            writer.close()
        self._following.cancel()
        await asyncio.gather(self._following, return_exceptions=True)

    @property
    def port(self) -> int:
        assert self._server is not None, "a server listens once it is entered"
        return self._server.sockets[0].getsockname()[1]

    async def reached(self, position: Position) -> None:
        """Wait until every record below this position counts."""
        assert self._following is not None
        while self._next < position:
            self._moved.clear()
            moved = asyncio.ensure_future(self._moved.wait())
            await asyncio.wait((moved, self._following), return_when=asyncio.FIRST_COMPLETED)
            moved.cancel()
            if self._following.done():
                self._following.result()

    async def _follow(self) -> None:
        async for entries in self._log.follow(self._next):
            for position, record in entries:
                key, value = decode_put(record)
                self.values[key] = value
                self._next = position + 1
            self._moved.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.add(writer)
        try:
            while True:
                (length,) = _KEY.unpack(await reader.readexactly(_KEY.size))
                value = self.values.get(await reader.readexactly(length))
                if value is None:
                    writer.write(_LENGTH.pack(_MISSING))
                else:
                    writer.write(_LENGTH.pack(len(value)) + value)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has left
        finally:
            self._clients.discard(writer)
            writer.close()


class ReadClient:
    """A client's connection to a read server: one get at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @staticmethod
    async def connect(port: int) -> "ReadClient":
        return ReadClient(*await asyncio.open_connection("127.0.0.1", port))

    async def get(self, key: bytes) -> bytes | None:
        """The value of the key at the server; None if it has none yet."""
        self._writer.write(_KEY.pack(len(key)) + key)
        (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
        return None if length == _MISSING else await self._reader.readexactly(length)

    def close(self) -> None:
        self._writer.close()
