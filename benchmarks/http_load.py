"""The same request over HTTP again and again, from a process of its own: `python -m
benchmarks.http_load` with an Asked.
"""

import asyncio
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import cast

import msgspec
import uvloop

from benchmarks.load import Done
from benchmarks.timing import now, percentile

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_END = b"\r\n\r\n"


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    port: int
    path: str
    connections: int
    requests: int
    """Of each connection, one at a time."""
    body_bytes: int


class Client(asyncio.Protocol):
    """A connection that is kept alive and asks when it was answered."""

    def __init__(self, asked: Asked) -> None:
        self._left = asked.requests
        head = (
            f"POST {asked.path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {asked.body_bytes}"
            "\r\ncontent-type: application/octet-stream\r\n\r\n"
        )
        self._request = head.encode() + bytes(asked.body_bytes)
        self._partial = b""
        self._asked_at = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.latencies: list[int] = []
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def ask(self) -> None:
        self._left -= 1
        self._asked_at = now()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._partial += data
        head = self._partial.find(_END)
        if head < 0:
            return
        length = _LENGTH.search(self._partial, 0, head)
        if length is None or not self._partial.startswith(b"HTTP/1.1 20"):
            self.done.set_exception(RuntimeError(f"answered: {self._partial!r}"))
            self._transport.abort()
            return
        if len(self._partial) < head + len(_END) + int(length[1]):
            return
        self._partial = b""
        self.latencies.append(now() - self._asked_at)
        if self._left:
            self.ask()
        else:
            self.done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionResetError("the server hung up"))


async def _run(asked: Asked) -> Done:
    loop = asyncio.get_running_loop()
    clients: list[Client] = []
    for _ in range(asked.connections):
        _, client = await loop.create_connection(lambda: Client(asked), "127.0.0.1", asked.port)
        clients.append(client)
    began, cpu = now(), time.process_time()
    for client in clients:
        client.ask()
    await asyncio.gather(*(client.done for client in clients))
    took = (now() - began) / 1e9
    latencies = sorted(latency for client in clients for latency in client.latencies)
    return Done(
        appends=len(latencies),
        records=len(latencies),
        bytes=len(latencies) * asked.body_bytes,
        seconds=took,
        p50_ms=percentile(latencies, 50) / 1e6,
        p99_ms=percentile(latencies, 99) / 1e6,
        cpu_s=time.process_time() - cpu,
    )


def ask(asked: Asked) -> Done:
    """Carry it out in another process, and wait for it."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.http_load"],
        input=msgspec.json.encode(asked),
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
        check=True,
    )
    return msgspec.json.decode(done.stdout, type=Done)


if __name__ == "__main__":
    given = msgspec.json.decode(sys.stdin.buffer.read(), type=Asked)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.stdout.buffer.write(msgspec.json.encode(runner.run(_run(given))))
