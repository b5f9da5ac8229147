"""As many appends as a broker takes, or so many a second: a worker.

Each connection keeps so many in flight for so long, as often as it is told to; with a rate it sends
what is due instead, whatever is answered.
"""

import asyncio
import time
from typing import cast

import msgspec

from anabranch.apps.processes.ports import HOST
from anabranch.core.records.record import Record, encode
from benchmarks.cluster.dialects import Dialect, Frames, Produce, Refused
from benchmarks.cluster.worker import Tell, Turn, serve
from benchmarks.timing import now, percentile

MODULE = "benchmarks.cluster.flood"
BUCKET_MS = 20
"""Acknowledgements are counted by intervals of this length."""

_NS = 1_000_000_000
_TICK_S = 0.005


class Target(msgspec.Struct, frozen=True):
    """A log at its broker, or a topic."""

    port: int
    log: int = 0
    topic: str = ""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    targets: list[Target]
    """Connections go to them in turn."""
    connections: int
    in_flight: int
    seconds: float
    value_bytes: int
    records: int = 1
    """In each append."""
    warm_s: float = 0.5
    """Before the seconds begin."""
    per_s: int = 0
    """Appends of all connections together; 0: as many as are answered."""
    appends_max: int = 0
    """Of each connection each time, at most; 0: as many as there is time for."""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    began: int
    """On the machine's clock, in nanoseconds: when the seconds began."""
    seconds: float
    """As planned, or what it took."""
    appends: int
    """Acknowledged within them: at least one."""
    records: int
    bytes: int
    """Of whole batches."""
    p50_ms: float
    p99_ms: float
    cpu_s: float
    buckets: list[int]
    """Appends acknowledged in each interval since `began`."""
    all_records: int
    """Also those acknowledged before and after."""

    @property
    def appends_per_s(self) -> float:
        return self.appends / self.seconds

    @property
    def records_per_s(self) -> float:
        return self.records / self.seconds


class Tally:
    """What was acknowledged, and when."""

    def __init__(self, plan: Plan) -> None:
        self.began = now() + int(plan.warm_s * _NS)
        self.ends = self.began + int(plan.seconds * _NS)
        self.last = self.began
        self.latencies: list[int] = []
        self.buckets: list[int] = []

    def over(self, at: int) -> bool:
        """The time is over, and there is something to say of it."""
        return at >= self.ends and bool(self.latencies)

    def count(self, sent_at: int, at: int) -> None:
        if at < self.began or self.over(at):
            return
        self.last = max(at, self.ends - 1)
        self.latencies.append(at - sent_at)
        bucket = (at - self.began) // (BUCKET_MS * 1_000_000)
        self.buckets += [0] * (bucket + 1 - len(self.buckets))
        self.buckets[bucket] += 1


class Connection(asyncio.Protocol):
    """Keeps so many appends in flight until the time is over, then hears the rest."""

    def __init__(self, plan: Plan, dialect: Dialect) -> None:
        self._plan, self._dialect = plan, dialect
        self._sent_at: list[int] = []
        self._heard = self._begun = 0
        loop = asyncio.get_running_loop()
        self._greeted: asyncio.Future[None] = loop.create_future()
        self.done: asyncio.Future[None] = loop.create_future()
        """That the last append of this time is acknowledged."""
        self._tally: Tally | None = None
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        hello = self._dialect.hello()
        if hello:
            self._transport.write(hello)
        else:
            self._greeted.set_result(None)

    @property
    def appends(self) -> int:
        return self._heard

    async def greeted(self) -> None:
        await self._greeted

    def begin(self, tally: Tally) -> None:
        self._tally = tally
        self._sent_at, self._heard = [], 0
        self.done = asyncio.get_running_loop().create_future()
        if self._plan.per_s:
            self._begun = now()
            self._send_due(tally)
        else:
            self._send(self._plan.in_flight)

    def data_received(self, data: bytes) -> None:
        if not self._greeted.done():
            self._greeted.set_result(None)
            return
        assert self._tally is not None
        try:
            count = self._dialect.heard(data)
        except Refused as refused:
            self.done.set_exception(refused)
            self._transport.abort()
            return
        at = now()
        # Acknowledgements come in the order of the appends.
        for sent_at in self._sent_at[self._heard : self._heard + count]:
            self._tally.count(sent_at, at)
        self._heard += count
        over = self._tally.over(at)
        if not over and not self._plan.per_s:
            self._send(count)
        if over or not self._plan.per_s:
            self._end_if_all_heard()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionResetError("the broker hung up"))

    def _end_if_all_heard(self) -> None:
        if self._heard == len(self._sent_at) and not self.done.done():
            self.done.set_result(None)

    def _send_due(self, tally: Tally) -> None:
        """A little now, and more in a moment: what came while the process slept is made up for."""
        at = now()
        if tally is not self._tally:
            return  # that time was over before this moment came
        if tally.over(at):
            self._end_if_all_heard()
            return
        due = (at - self._begun) * self._plan.per_s // self._plan.connections // _NS + 1
        self._send(due - len(self._sent_at))
        asyncio.get_running_loop().call_later(_TICK_S, self._send_due, tally)

    def _send(self, count: int) -> None:
        if self._plan.appends_max:
            count = min(count, self._plan.appends_max - len(self._sent_at))
        for _ in range(count):
            self._sent_at.append(now())
            self._transport.writelines(self._dialect.next())


def batch_of(plan: Plan) -> bytes:
    records = [Record(bytes(plan.value_bytes))] * plan.records
    return encode(
        records,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        now=time.time_ns() // 1_000_000,
    )


def _dialect(target: Target, batch: bytes, records: int, producer: int) -> Dialect:
    if target.topic:
        return Produce(target.topic, batch)
    return Frames(target.log, batch, records, producer)


async def work(plan: Plan, turn: Turn, tell: Tell) -> None:
    loop = asyncio.get_running_loop()
    batch, producers = batch_of(plan), time.time_ns()
    connections: list[Connection] = []
    for number in range(plan.connections):
        target = plan.targets[number % len(plan.targets)]
        dialect = _dialect(target, batch, plan.records, producers + number)
        _, connection = await loop.create_connection(
            lambda dialect=dialect: Connection(plan, dialect), HOST, target.port
        )
        await connection.greeted()
        connections.append(connection)
    while await turn():
        tally, cpu = Tally(plan), time.process_time()
        for connection in connections:
            connection.begin(tally)
        await asyncio.gather(*(connection.done for connection in connections))
        appends = sum(connection.appends for connection in connections)
        tell(_done(plan, tally, len(batch), appends, time.process_time() - cpu))


def _done(plan: Plan, tally: Tally, batch_bytes: int, appends: int, cpu_s: float) -> Done:
    latencies = sorted(tally.latencies)
    # Shorter if all that was to be appended is; longer if nothing was acknowledged in time.
    took = tally.last + 1 - tally.began if now() > tally.ends else now() - tally.began
    return Done(
        began=tally.began,
        seconds=took / _NS,
        appends=len(latencies),
        records=len(latencies) * plan.records,
        bytes=len(latencies) * batch_bytes,
        p50_ms=percentile(latencies, 50) / 1e6,
        p99_ms=percentile(latencies, 99) / 1e6,
        cpu_s=cpu_s,
        buckets=tally.buckets,
        all_records=appends * plan.records,
    )


if __name__ == "__main__":
    serve(Plan, work)
