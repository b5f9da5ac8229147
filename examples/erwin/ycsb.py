"""YCSB's workloads on the key-value store: Load writes, A reads as often as it writes, B mostly
reads (Cooper et al., SoCC '10; LazyLog, 6.11).
"""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from typing import NamedTuple, Protocol

from examples.erwin.key_value import ReadClient, ReadServer, WriteServer, decode_put
from examples.erwin.shared_log import SharedLog

from anabranch.core.types import Position

KEY_BYTES = 24
VALUE_BYTES = 1_000
"""YCSB's record: ten fields of 100 bytes."""
ZIPFIAN = 0.99
"""YCSB's constant: how much more often the most popular keys are asked for."""
READ_SHARE = {"load": 0.0, "a": 0.5, "b": 0.95}

_STAMP = struct.Struct("<QQ")


class Put(NamedTuple):
    """A put as its client saw it: two puts overlap unless one ended before the other began."""

    key: bytes
    stamp: bytes
    began: float
    ended: float


class Gets(Protocol):
    async def get(self, key: bytes) -> bytes | None: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class Measured:
    """The latencies of a workload's requests, in seconds, and its puts for the check."""

    gets: list[float] = field(default_factory=list[float])
    puts: list[Put] = field(default_factory=list[Put])
    broken_gets: int = 0
    """Gets that returned a value that no client has put under this key."""

    @property
    def mean_s(self) -> float:
        took = [*self.gets, *(put.ended - put.began for put in self.puts)]
        return sum(took) / len(took)


class Keys:
    """Keys by popularity: the popular ones lie anywhere among all, as YCSB's scrambled ones do."""

    def __init__(self, count: int, rng: Random) -> None:
        self._keys = [b"user%020d" % number for number in range(count)]
        rng.shuffle(self._keys)
        self._weights = list(accumulate(1 / rank**ZIPFIAN for rank in range(1, count + 1)))
        self._rng = rng

    def __getitem__(self, index: int) -> bytes:
        return self._keys[index % len(self._keys)]

    def draw(self) -> bytes:
        (key,) = self._rng.choices(self._keys, cum_weights=self._weights)
        return key


@dataclass(frozen=True, slots=True)
class Workload:
    """One of YCSB's, by so many clients with one request at a time each."""

    name: str
    requests: int
    clients: int = 1
    keys: int = 1_000
    seed: int = 1


class Play:
    """One workload against one store."""

    def __init__(
        self,
        workload: Workload,
        writer: WriteServer,
        connect: Callable[[], Awaitable[Gets]],
    ) -> None:
        self._workload, self._writer, self._connect = workload, writer, connect
        self._share = READ_SHARE[workload.name]
        self._now = asyncio.get_running_loop().time
        self.measured = Measured()

    async def run(self) -> Measured:
        async with asyncio.TaskGroup() as clients:
            for number in range(self._workload.clients):
                clients.create_task(self._client(number))
        return self.measured

    async def _client(self, number: int) -> None:
        work = self._workload
        rng = Random(work.seed * 1_000 + number)
        keys = Keys(work.keys, Random(work.seed))
        reads = await self._connect()
        try:
            for index in range(number, work.requests, work.clients):
                if rng.random() < self._share:
                    await self._get(reads, keys.draw())
                else:
                    key = keys[index] if work.name == "load" else keys.draw()
                    await self._put(key, _STAMP.pack(number, index), rng)
        finally:
            reads.close()

    async def _get(self, reads: Gets, key: bytes) -> None:
        began = self._now()
        value = await reads.get(key)
        self.measured.gets.append(self._now() - began)
        if value is not None and not value.endswith(key):
            self.measured.broken_gets += 1

    async def _put(self, key: bytes, stamp: bytes, rng: Random) -> None:
        body = rng.randbytes(VALUE_BYTES - len(stamp) - len(key))
        began = self._now()
        await self._writer.put(key, stamp + body + key)
        self.measured.puts.append(Put(key, stamp, began, self._now()))


async def play(log: SharedLog, start: Position, workload: Workload) -> list[str]:
    """Run one workload on a log, from `start` on, and return what was wrong."""
    async with ReadServer(log, start) as server:
        writer = WriteServer(log)
        measured = await Play(workload, writer, lambda: ReadClient.connect(server.port)).run()
        entries = await log.read(start)
        if entries:
            await server.reached(entries[-1].position + 1)
        wrong = check(measured, [decode_put(value) for _, value in entries], server.values)
    if measured.broken_gets:
        wrong.append(f"{measured.broken_gets} gets returned the value of another key")
    return wrong


def check(
    measured: Measured, logged: list[tuple[bytes, bytes]], values: dict[bytes, bytes]
) -> list[str]:
    """Every answered put is in the log once, in an order that clients can't tell from one put at a
    time, and the read server holds the last value of each key.
    """
    wrong: list[str] = []
    last: dict[bytes, bytes] = {}
    place: dict[bytes, list[int]] = {}
    for number, (key, value) in enumerate(logged):
        last[key] = value
        place.setdefault(value[: _STAMP.size], []).append(number)
    if last != values:
        wrong.append("the read server's values aren't those that the log ends with")
    counts = [len(place.get(put.stamp, [])) for put in measured.puts]
    if any(count != 1 for count in counts):
        wrong.append(f"{counts.count(0)} answered puts are missing, others are there twice")
        return wrong
    if len(logged) != len(measured.puts):
        wrong.append(f"{len(logged)} puts are in the log, and {len(measured.puts)} were answered")
    # In the log's order, no put may begin after a later one has ended.
    ended = float("inf")
    for put in sorted(measured.puts, key=lambda put: place[put.stamp][0], reverse=True):
        if put.began > ended:
            wrong.append(f"a put of {put.key!r} lies before one that had ended when it began")
            break
        ended = min(ended, put.ended)
    return wrong
