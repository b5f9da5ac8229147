"""A proxy that makes an S3 server as slow as one far away: a worker.

Each request waits before it goes on. PUTs and GETs each have a median and a 99th percentile, and
are distributed log-normally. Waits are not left to chance, which takes thousands of requests to
even out: they come in an order of which every stretch, and every second one of it, is spread
evenly.
"""

import asyncio
import math
from contextlib import suppress
from itertools import count
from statistics import NormalDist

import msgspec

from anabranch.apps.processes.ports import HOST
from benchmarks.cluster.worker import Tell, Turn, serve

MODULE = "benchmarks.cluster.slow_store"
HEAD_BYTES_MAX = 1 << 18
COPY_BYTES = 1 << 16

_NORMAL = NormalDist()
_GOLDEN = (math.sqrt(5) - 1) / 2


class Latency(msgspec.Struct, frozen=True):
    p50_ms: float
    p99_ms: float

    def seconds(self, number: int) -> float:
        """What the request of this number waits."""
        place = (0.5 + number * _GOLDEN) % 1
        sigma = math.log(self.p99_ms / self.p50_ms) / _NORMAL.inv_cdf(0.99)
        return self.p50_ms * math.exp(sigma * _NORMAL.inv_cdf(place)) / 1_000


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    port: int
    upstream: int
    put: Latency
    get: Latency


class _Proxy:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._puts, self._gets = count(), count()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, and its own to the server."""
        try:
            back, forth = await asyncio.open_connection(HOST, self._plan.upstream)
        except OSError:
            writer.close()
            return
        answers = asyncio.create_task(_copy(back, writer))
        with suppress(OSError, EOFError):
            while True:
                await self._pass_on(reader, forth)
        forth.close()
        with suppress(OSError):
            await answers

    async def _pass_on(self, reader: asyncio.StreamReader, forth: asyncio.StreamWriter) -> None:
        """One request: an S3 client sends no second one before the first is answered."""
        head = await reader.readuntil(b"\r\n\r\n")
        reads = head.startswith((b"GET ", b"HEAD "))
        plan = self._plan
        waits_s = (
            plan.get.seconds(next(self._gets)) if reads else plan.put.seconds(next(self._puts))
        )
        await asyncio.sleep(waits_s)
        forth.write(head)
        left = _content_bytes(head)
        while left:
            part = await reader.read(min(left, COPY_BYTES))
            if not part:
                raise EOFError
            left -= len(part)
            forth.write(part)
        await forth.drain()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while part := await reader.read(COPY_BYTES):
            writer.write(part)
            await writer.drain()
    writer.close()


def _content_bytes(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


async def work(plan: Plan, turn: Turn, tell: Tell) -> None:
    proxy = _Proxy(plan)
    server = await asyncio.start_server(proxy.serve, HOST, plan.port, limit=HEAD_BYTES_MAX)
    async with server:
        await turn()
    tell(None)


if __name__ == "__main__":
    serve(Plan, work)
