"""What a call to the object store costs its client: ours on obstore, beside boto3 in threads.

Both against one S3 server on this machine, by turns, 16 calls at a time. The server keeps nothing
safe from a loss of power: of its times only the ratio between two clients means anything.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from anabranch.apps.processes.servers import S3Server
from anabranch.core.limits import KIB, MIB
from anabranch.shell.objects.s3.settings import S3Settings
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.telemetry.log import Log
from benchmarks.report import SCRATCH, Chart, Found, Line, Row, row, versus
from benchmarks.size import Size

BUCKET = "benchmark"
AT_ONCE = 16
CONTENT = os.urandom(MIB)

Call = Callable[[int], Awaitable[object]]


class Ours:
    def __init__(self, settings: S3Settings) -> None:
        from anabranch.shell.objects.s3.store import S3Store

        clock = Clock()
        self._store = S3Store(settings, Log(clock.now), clock.now)

    async def put(self, size: int, number: int) -> None:
        await self._store.put(f"ours/{size}/{number}", [CONTENT[:size]])

    async def get(self, start: int, length: int, _: int) -> None:
        assert len(await self._store.get("there", start, length)) == length

    async def seed(self) -> None:
        """What both read."""
        await self._store.put("there", [CONTENT])

    async def close(self) -> None:
        await self._store.close()


class Boto:
    def __init__(self, settings: S3Settings) -> None:
        import boto3
        from botocore.config import Config

        self._threads = ThreadPoolExecutor(AT_ONCE)
        self._client: Any = boto3.client(
            "s3",
            endpoint_url=settings.endpoint,
            region_name=settings.region,
            aws_access_key_id=settings.access_key,
            aws_secret_access_key=settings.secret_key,
            config=Config(max_pool_connections=AT_ONCE, s3={"addressing_style": "path"}),
        )

    async def put(self, size: int, number: int) -> None:
        key = f"boto/{size}/{number}"
        told = {"Bucket": BUCKET, "Key": key, "Body": CONTENT[:size], "IfNoneMatch": "*"}
        await self._threaded(partial(self._client.put_object, **told))

    async def get(self, start: int, length: int, _: int) -> None:
        wanted = f"bytes={start}-{start + length - 1}"

        def got() -> bytes:
            found = self._client.get_object(Bucket=BUCKET, Key="there", Range=wanted)
            return found["Body"].read()

        assert len(await self._threaded(got)) == length

    async def close(self) -> None:
        self._threads.shutdown()

    async def _threaded(self, ask: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, ask)


def run(size: Size) -> Found:
    import uvloop

    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        server = S3Server(Path(folder) / "s3")
        server.start()
        try:
            server.make_bucket(BUCKET)
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                return runner.run(_measure(server, size))
        finally:
            server.kill()


async def _measure(server: S3Server, size: Size) -> Found:
    settings = S3Settings(
        bucket=BUCKET,
        endpoint=server.endpoint,
        region=server.region,
        access_key=server.access_key,
        secret_key=server.secret_key,
    )
    ours = Ours(settings)
    await ours.seed()
    clients = {"ours": ours, "boto3": Boto(settings)}
    serial = count()
    kinds: dict[str, Callable[[Any], Call]] = {
        "PUT 64 KiB": lambda client: partial(client.put, 64 * KIB),
        "PUT 1 MiB": lambda client: partial(client.put, MIB),
        "GET 64 KiB": lambda client: partial(client.get, 0, 64 * KIB),
        "GET 1 MiB": lambda client: partial(client.get, 0, MIB),
        "GET 4 KiB of 1 MiB": lambda client: partial(client.get, 500_000, 4 * KIB),
    }
    busy: dict[tuple[str, str], list[float]] = {}
    rates: dict[tuple[str, str], list[float]] = {}
    calls = size.of(128, AT_ONCE)
    for turn in range(size.of(5, 1) + 1):
        for kind, of in kinds.items():
            for name in sorted(clients, reverse=bool(turn % 2)):
                cpu_ms, rate = await _round(of(clients[name]), calls, serial)
                if turn:  # the first one warms up
                    busy.setdefault((kind, name), []).append(cpu_ms)
                    rates.setdefault((kind, name), []).append(rate)
    for client in clients.values():
        await client.close()
    return _found(list(kinds), busy, rates)


async def _round(call: Call, calls: int, serial: "count[int]") -> tuple[float, float]:
    """Milliseconds of this process's processor time a call, and calls a second."""
    left = iter(range(calls))

    async def worker() -> None:
        for _ in left:
            await call(next(serial))

    cpu, wall = time.process_time(), time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    took = time.perf_counter() - wall
    return (time.process_time() - cpu) * 1e3 / calls, calls / took


def _found(
    kinds: list[str],
    busy: dict[tuple[str, str], list[float]],
    rates: dict[tuple[str, str], list[float]],
) -> Found:
    rows: list[Row] = []
    for kind in kinds:
        ours, boto = busy[kind, "ours"], busy[kind, "boto3"]
        rows.append(versus(f"{kind}: CPU", ours, "ms", "boto3", boto, at_most=0.5))
        rows.append(row(f"{kind}: CPU of boto3", boto, "ms"))
        ours, boto = rates[kind, "ours"], rates[kind, "boto3"]
        rows.append(versus(f"{kind}: {AT_ONCE} at once", ours, "calls/s", "boto3", boto))
    lines = [
        Line(name, [(kind, median(busy[kind, name])) for kind in kinds])
        for name in ("boto3", "ours")  # the bars lie on each other: the shorter in front
    ]
    chart = Chart(title="CPU of a call to the object store", x="", y="ms", lines=lines)
    return Found(rows, [chart])
