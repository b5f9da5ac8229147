"""A fork as a client has it, durable in etcd, beside one transaction of etcd (paper: figure 5).

A fork is usable when it is acknowledged: the answer says which broker serves it, and the fork takes
appends and answers reads there. Both are checked.
"""

import asyncio
from itertools import count
from statistics import median

from anabranch.apps.processes.layout import Shape
from anabranch.client import aio
from anabranch.client.bolt.log import Log
from anabranch.core.records.record import Record, encode
from anabranch.shell.etcd.api.client import EtcdClient, absent, prefix_end, put_op
from benchmarks import paper
from benchmarks.cluster.local import Cluster, running
from benchmarks.report import Chart, Found, Line, Row, row, versus
from benchmarks.size import Size
from benchmarks.timing import now, percentile

MILLION = 1_000_000
BATCH = 100_000
"""Records of a batch, as many as one may hold: a long parent is made of few large ones."""


def run(size: Size) -> Found:
    lengths = size.of([MILLION, 5 * MILLION, 10 * MILLION], [10, 1_000])
    each, rounds = size.of((100, 7), (3, 2))
    with running(Shape(brokers=size.of(4, 2), metadata=size.of(3, 1))) as cluster:
        etcd = cluster.etcd()
        measured = _Measured(cluster, etcd)
        try:
            asyncio.run(measured.rounds(lengths, each, rounds))
        finally:
            etcd.close()
    return _found(lengths, measured)


class _Measured:
    def __init__(self, cluster: Cluster, etcd: EtcdClient) -> None:
        self._cluster = cluster
        self._etcd = etcd
        self._keys = count()
        self.entry_bytes = 0
        """What one fork is in the journal."""
        self.txns: list[float] = []
        """p50 of each round, in microseconds."""
        self.forks: dict[int, list[float]] = {}
        self.p99: dict[int, list[float]] = {}
        self.questions: list[float] = []
        """The same way to the metadata and back, with nothing to be journaled."""
        self.usable: list[float] = []
        """To the first acknowledged append to a new fork."""

    async def rounds(self, lengths: list[int], each: int, rounds: int) -> None:
        async with aio.connect(self._cluster.url, timeout=60) as service:
            parents = {length: await _parent(service, length) for length in lengths}
            shortest = parents[lengths[0]]
            await self._look(shortest)
            await self._turns(parents, each, rounds)
            for _ in range(rounds):
                self.questions.append(await _question_us(shortest, each))
                self.usable.append(await _first_append_us(shortest, each))

    async def _turns(self, parents: dict[int, Log], each: int, rounds: int) -> None:
        """A transaction, then a fork of every parent, over and over."""
        for length in parents:
            self.forks[length], self.p99[length] = [], []
        for turn in range(rounds + 1):
            txns: list[int] = []
            forks: dict[int, list[int]] = {length: [] for length in parents}
            for _ in range(each):
                txns.append(self._txn_ns())
                for length, parent in parents.items():
                    forks[length].append(await _fork_ns(parent))
            if not turn:
                continue  # the first one warms up
            self.txns.append(_p50_us(txns))
            for length, took in forks.items():
                self.forks[length].append(_p50_us(took))
                self.p99[length].append(percentile(sorted(took), 99) / 1e3)

    async def _look(self, parent: Log) -> None:
        """How long the journal's entry of a fork is; and that a fork is what it should be."""
        fork = await parent.cfork()
        journal = self._cluster.journal
        newest = self._etcd.range(journal, prefix_end(journal), limit=1, descending=True)
        assert newest.one is not None
        self.entry_bytes = len(newest.one.key) + len(newest.one.value)
        tail = fork.description.tail
        appended = await fork.append(b"mine")
        assert appended.position == tail, (appended, tail)
        found = [record.value async for record in fork.read(tail - 1, 2)]
        assert found == [bytes(1), b"mine"], found
        await fork.squash()

    def _txn_ns(self) -> int:
        """As the journal's: it holds if a key isn't there, and puts it."""
        key = b"/benchmark/%010d" % next(self._keys)
        value = bytes(self.entry_bytes - len(key))
        began = now()
        answer = self._etcd.txn((absent(key),), (put_op(key, value),))
        took = now() - began
        assert answer.succeeded
        return took


async def _parent(service: aio.Service, length: int) -> Log:
    """A root of so many records, in batches of equal content."""
    log = await service.create(f"parent-{length}")
    whole, rest = divmod(length, BATCH)
    batches = [_batch(BATCH)] * whole + ([_batch(rest)] if rest else [])
    for batch in batches:
        await log.append_batch(batch, timeout=120)
    return log


def _batch(records: int) -> bytes:
    made = [Record(bytes(1))] * records
    return encode(made, producer_id=-1, producer_epoch=-1, base_sequence=-1, now=0)


async def _fork_ns(parent: Log) -> int:
    began = now()
    fork = await parent.cfork()
    took = now() - began
    assert fork.description.address, "the answer doesn't say where the fork is served"
    await fork.squash()
    return took


async def _question_us(log: Log, each: int) -> float:
    took: list[int] = []
    for _ in range(each):
        began = now()
        await log.describe()
        took.append(now() - began)
    return _p50_us(took)


async def _first_append_us(parent: Log, each: int) -> float:
    took: list[int] = []
    for _ in range(each):
        began = now()
        fork = await parent.cfork()
        await fork.append(b"first")
        took.append(now() - began)
        await fork.squash()
    return _p50_us(took)


def _p50_us(took: list[int]) -> float:
    return percentile(sorted(took), 50) / 1e3


def _found(lengths: list[int], measured: _Measured) -> Found:
    transaction = f"one transaction of etcd, {measured.entry_bytes} B"
    rows: list[Row] = [row(f"{transaction}, p50", measured.txns, "us")]
    for length in lengths:
        took = measured.forks[length]
        what = f"fork of {length:,} records, client to usable, p50"
        rows.append(versus(what, took, "us", "the transaction", measured.txns, at_most=1.5))
        rows.append(row("  p99", measured.p99[length], "us"))
    longest, shortest = measured.forks[lengths[-1]], measured.forks[lengths[0]]
    against = f"{lengths[0]:,} records'"
    what = f"fork of {lengths[-1]:,} records, p50"
    rows.append(versus(what, longest, "us", against, shortest, at_most=1.1))
    rows.append(row("a question to the metadata, through a broker, p50", measured.questions, "us"))
    rows.append(row("fork, and its first append acknowledged, p50", measured.usable, "us"))
    chart = Chart(
        title="One fork through a broker, durable in etcd",
        x="records of the parent",
        y="p50, microseconds",
        lines=_lines(lengths, measured),
        log_x=True,
        log_y=True,
    )
    return Found(rows, [chart], _NOTES)


def _lines(lengths: list[int], measured: _Measured) -> list[Line]:
    def every(value: float) -> list[tuple[float, float]]:
        return [(length, value) for length in lengths]

    copied = (float(paper.FORK_COPY_ENTRIES), paper.FORK_COPY_US)
    return [
        Line("Anabranch", [(n, median(measured.forks[n])) for n in lengths]),
        Line("one transaction of etcd", every(median(measured.txns))),
        Line("the paper's Bolt", every(paper.FORK_US)),
        Line("the paper's copy of the metadata", [copied]),
    ]


_NOTES = [
    "one member of etcd, which syncs; three metadata members; one client",
    (
        f"parents are made of batches of {BATCH:,} records: forks of up to 25 million entries are "
        "measured in the state machine by `fork`"
    ),
]
