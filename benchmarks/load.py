"""Appends over the bare frames, from a process of its own: `python -m benchmarks.load` with a Plan.

A client that costs as much as the server would measure itself, so everything is made ready before
the clock starts: whole frames, each with its producer, sequence and checksum, as our own clients
send them.
"""

import asyncio
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import msgspec
import uvloop

from anabranch.client.session.pledge import stamp
from anabranch.core.bolt.protocol.codec import encode_request
from anabranch.core.bolt.protocol.messages import Append, Hello
from anabranch.core.records.record import Record, encode
from anabranch.core.types import LogId
from anabranch.core.wire.frames import HEADER
from benchmarks.timing import now, percentile

_APPENDED = struct.Struct(">IBBHIq")
_APPENDED_KIND = 4


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    port: int
    log: int
    connections: int
    in_flight: int
    """Appends of one connection that aren't answered yet."""
    appends: int
    """Of each connection."""
    value_bytes: int
    records: int = 1
    """In each append."""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    appends: int
    records: int
    bytes: int
    """Of whole batches."""
    seconds: float
    p50_ms: float
    p99_ms: float
    cpu_s: float


class Client(asyncio.Protocol):
    """Keeps so many appends in flight until all are answered."""

    def __init__(self, plan: Plan, frames: bytes) -> None:
        self._plan = plan
        self._frames = memoryview(frames)
        self._frame_bytes = len(frames) // plan.appends
        self._sent = self._heard = 0
        self._sent_at: list[int] = []
        self._partial = b""
        self._greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.latencies: list[int] = []
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.writelines(encode_request(plan_request(0), Hello(1, "benchmark")))

    async def greeted(self) -> None:
        await self._greeted

    def begin(self) -> None:
        self._send(self._plan.in_flight)

    def data_received(self, data: bytes) -> None:
        if not self._greeted.done():
            self._greeted.set_result(None)
            return
        data = self._partial + data
        whole = len(data) - len(data) % _APPENDED.size
        self._partial = data[whole:]
        came_at = now()
        before = self._heard
        for _, kind, _, _, request, _ in _APPENDED.iter_unpack(data[:whole]):
            if kind != _APPENDED_KIND:
                self.done.set_exception(RuntimeError(f"an append was refused: {data!r}"))
                self._transport.abort()
                return
            self.latencies.append(came_at - self._sent_at[request - 2])
            self._heard += 1
        self._send(self._heard - before)
        if self._heard == self._plan.appends and not self.done.done():
            self.done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionResetError("the server hung up"))

    def _send(self, count: int) -> None:
        count = min(count, self._plan.appends - self._sent)
        if not count:
            return
        start = self._sent * self._frame_bytes
        self._sent_at += [now()] * count
        self._sent += count
        self._transport.write(self._frames[start : start + count * self._frame_bytes])


def plan_request(turn: int) -> int:
    """Requests count from 1, and the first one says hello."""
    return turn + 1


def prepared(plan: Plan, producer: int) -> bytes:
    """Every frame of one connection, all of one size."""
    value = bytes(plan.value_bytes)
    batch = encode(
        [Record(value)] * plan.records,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=0,
        now=time.time_ns() // 1_000_000,
    )
    return b"".join(_frames(plan, batch, producer))


def _frames(plan: Plan, batch: bytes, producer: int) -> Iterator[bytes]:
    for turn in range(plan.appends):
        stamped = stamp(batch, producer, 0, turn * plan.records)
        request = plan_request(turn + 1)
        yield b"".join(encode_request(request, Append(LogId(plan.log), stamped)))


async def _run(plan: Plan) -> Done:
    loop = asyncio.get_running_loop()
    # Producers of earlier rounds are others: their sequences have gone on.
    base = time.time_ns()
    clients: list[Client] = []
    for turn in range(plan.connections):
        frames = prepared(plan, base + turn)
        _, client = await loop.create_connection(
            lambda frames=frames: Client(plan, frames), "127.0.0.1", plan.port
        )
        await client.greeted()
        clients.append(client)
    began, cpu = now(), time.process_time()
    for client in clients:
        client.begin()
    await asyncio.gather(*(client.done for client in clients))
    took = (now() - began) / 1e9
    latencies = sorted(latency for client in clients for latency in client.latencies)
    batch_bytes = len(prepared(msgspec.structs.replace(plan, appends=1), base)) - HEADER.size - 12
    appends = plan.connections * plan.appends
    return Done(
        appends=appends,
        records=appends * plan.records,
        bytes=appends * batch_bytes,
        seconds=took,
        p50_ms=percentile(latencies, 50) / 1e6,
        p99_ms=percentile(latencies, 99) / 1e6,
        cpu_s=time.process_time() - cpu,
    )


def put(plan: Plan) -> Done:
    """Carry it out in another process, and wait for it."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.load"],
        input=msgspec.json.encode(plan),
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
        check=True,
    )
    return msgspec.json.decode(done.stdout, type=Done)


if __name__ == "__main__":
    given = msgspec.json.decode(sys.stdin.buffer.read(), type=Plan)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.stdout.buffer.write(msgspec.json.encode(runner.run(_run(given))))
