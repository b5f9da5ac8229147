"""Figure 18: the three applications of examples/erwin, on Erwin and on Corfu."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from statistics import fmean

from examples.erwin.bank import TransactionServer, audit
from examples.erwin.key_value import ReadClient, ReadServer, WriteServer, decode_put
from examples.erwin.shared_log import Entry, ErwinSharedLog, SharedLog
from examples.erwin.teller import Business, Day
from examples.erwin.word_count import Sink, Text, Worker
from examples.erwin.ycsb import READ_SHARE, Gets, Play, Workload, check

from anabranch.core.records.record import Record, decode, encode
from anabranch.core.types import MS, Position
from benchmarks.cluster.local import scratch
from benchmarks.distance.delay import Delay
from benchmarks.erwin.compare import ROUNDS, systems
from benchmarks.erwin.corfu.client import CorfuLog
from benchmarks.erwin.deployment import CORFU, ERWIN, Deployment, Setting, running
from benchmarks.erwin.workload import on_loop
from benchmarks.report import Chart, Found, Line, Row, versus
from benchmarks.size import Size
from benchmarks.timing import interleaved, now

SETTING = Setting(delay_us=500)
BATCHES = (500, 5_000)
"""Lines of a checkpoint: the paper's smallest and largest."""
BARS = {"KV load": 3.0, "KV a": 2.0, "audit, reads": 1.1, "audit, writes": 1.1, "words, 500": 1.1}
PAPER = {"KV load": 3.4, "KV a": 2.5, "KV b": 1.0, "words, 500": 1.66, "words, 5000": 1.17}

TEXT_WORKERS = Text(0).workers

_LOOK_S = 0.002


class CorfuSharedLog:
    """Corfu as the applications see it: an append has its position when it returns."""

    def __init__(self, log: CorfuLog) -> None:
        self._log = log

    async def append(self, value: bytes) -> None:
        await self._log.append(encode([Record(value)], now=now() // MS))

    async def read(self, start: Position) -> list[Entry]:
        entries: list[Entry] = []
        while batch := await self._log.read(start):
            (record,) = decode(batch)
            entries.append(Entry(start, record.value or b""))
            start += 1
        return entries

    async def follow(self, start: Position) -> AsyncGenerator[list[Entry], None]:
        while True:
            entries = await self.read(start)
            if entries:
                yield entries
                start = entries[-1].position + 1
            else:
                await asyncio.sleep(_LOOK_S)


class DistantGets:
    """A client of a read server that is as far away as every node of the log."""

    def __init__(self, client: ReadClient, delay_us: int) -> None:
        self._client, self._way = client, Delay(delay_us)

    async def get(self, key: bytes) -> bytes | None:
        await self._travel()
        value = await self._client.get(key)
        await self._travel()
        return value

    def close(self) -> None:
        self._way.stop()
        self._client.close()

    async def _travel(self) -> None:
        arrived: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._way.after(partial(arrived.set_result, None))
        await arrived


Latencies = dict[str, float]
"""The mean latency of each figure in ms."""


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    works: dict[str, Callable[[], Latencies]] = {
        name: partial(_once, setting, size) for name, setting in systems(SETTING).items()
    }
    found = interleaved(count, works)
    rows = [_row(what, found) for what in found[ERWIN][0]]
    ratios = [(row.what.partition(":")[0], row.ratio or 0.0) for row in rows]
    chart = Chart(
        title="Latency of applications (figure 18)",
        x="application",
        y="Corfu's mean over Erwin's",
        lines=[
            Line("here", ratios),
            Line("the paper's", [(what, PAPER.get(what, 0.0)) for what, _ in ratios]),
        ],
    )
    return Found(rows, [chart], _notes(size, count))


def _row(what: str, found: dict[str, list[Latencies]]) -> Row:
    ours, theirs = ([each[what] for each in found[name]] for name in (ERWIN, CORFU))
    named = f"{what}: Corfu's over Erwin's, mean"
    return versus(named, theirs, "ms", "Erwin's", ours, at_least=BARS.get(what))


def _once(setting: Setting, size: Size) -> Latencies:
    with running(setting) as deployment:
        return on_loop(_played(deployment, size))


async def _played(deployment: Deployment, size: Size) -> Latencies:
    """All of them, one after the other, on one log; each checks its output."""
    found: Latencies = {}
    async with _opened(deployment) as log:
        for name in READ_SHARE:
            found[f"KV {name}"] = await _key_value(log, name, deployment.setting.delay_us, size)
        found |= await _audit(log, size)
        for lines in BATCHES:
            found[f"words, {lines}"] = await _words(log, size, lines)
    return found


@asynccontextmanager
async def _opened(deployment: Deployment) -> AsyncGenerator[SharedLog]:
    if deployment.setting.system == CORFU:
        async with deployment.corfu() as corfu:
            yield CorfuSharedLog(corfu)
    else:
        async with deployment.erwin() as erwin:
            yield ErwinSharedLog(erwin)


async def _end(log: SharedLog) -> Position:
    entries = await log.read(0)
    return entries[-1].position + 1 if entries else 0


async def _key_value(log: SharedLog, name: str, delay_us: int, size: Size) -> float:
    start = await _end(log)
    workload = Workload(name, size.of(1_000, 50), clients=2)
    async with ReadServer(log, start) as server:

        async def connect() -> Gets:
            return DistantGets(await ReadClient.connect(server.port), delay_us)

        measured = await Play(workload, WriteServer(log), connect).run()
        entries = await log.read(start)
        await server.reached(entries[-1].position + 1)
        wrong = check(measured, [decode_put(value) for _, value in entries], server.values)
    assert not wrong, wrong
    return 1_000 * measured.mean_s


async def _audit(log: SharedLog, size: Size) -> Latencies:
    start = await _end(log)
    business = Business(size.of(1_000, 50), clients=2, servers=2, accounts=50)
    with scratch() as folder:
        servers = [
            TransactionServer(log, folder / f"server-{number}.db")
            for number in range(business.servers)
        ]
        measured = await Day(business, servers).run()
        balances, wrong = audit(await log.read(start))
        held = {
            account: cents for server in servers for account, cents in server.balances().items()
        }
        for server in servers:
            server.close()
    assert not wrong, wrong
    assert balances == held, "the audit log ends with the databases' balances"
    return {
        "audit, reads": 1_000 * fmean(measured.reads),
        "audit, writes": 1_000 * fmean(measured.writes),
    }


async def _words(log: SharedLog, size: Size, batch_lines: int) -> float:
    """The workers take turns: side by side they would wait for one another's processor."""
    text = Text(lines=size.of(5 * TEXT_WORKERS, 2) * batch_lines, batch_lines=batch_lines)
    sink, latencies = Sink(), list[float]()
    for number, source in enumerate(text.sources()):
        worker = Worker(log, number, source, batch_lines, sink)
        await worker.run()
        latencies += worker.latencies
    words = Counter(word for source in text.sources() for line in source for word in line.split())
    assert sink.totals == words
    return 1_000 * fmean(latencies)


def _notes(size: Size, count: int) -> list[str]:
    where = (
        f"{SETTING.delay_us} us one way for every message, also between a read server and its "
        f"clients; one shard of {SETTING.copies} replicas, {SETTING.sequencers} sequencers of "
        f"Erwin and one of Corfu, durability {SETTING.durability} on both sides"
    )
    what = (
        f"KV: {size.of(1_000, 50)} requests by 2 clients, keys of 24 bytes, values of 1,000; a put "
        "is measured at the write server, a get at the client. Audit: 2 clients, 2 servers on "
        f"SQLite, half of the transactions read. Words: {TEXT_WORKERS} workers that take turns, "
        "a batch's latency from reading it to emitting it"
    )
    how = f"medians of {count} rounds of means, each on fresh processes, by turns"
    paper = (
        "the paper: KV 3.4x, 2.5x and about 1x; word count 1.66x with batches of 500 and 1.17x "
        "with batches of 5,000; the audit log's gain is larger for reads than for writes"
    )
    return [where, what, how, paper]
