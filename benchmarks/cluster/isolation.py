"""A latency-critical workload on a log, alone and beside others (paper: figure 7).

Beside an analysis that reads the same log in bulk, as a severed fork at another broker (7a); beside
appends to a continuous fork (7b); and the first of these on Kafka, where one broker serves both.
"""

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import TypeVar

from anabranch.apps.processes.cluster import Pod
from anabranch.apps.processes.layout import Shape
from benchmarks import paper
from benchmarks.cluster import critical, flood, paced, scan
from benchmarks.cluster.cores import limited, pin
from benchmarks.cluster.local import Cluster, running, scratch
from benchmarks.cluster.worker import Worker, at_work
from benchmarks.peers.kafka import critical as kafka_critical
from benchmarks.peers.kafka import scan as kafka_scan
from benchmarks.peers.kafka.server import Kafka
from benchmarks.peers.kafka.server import running as kafka_running
from benchmarks.report import Chart, Found, Line, Row, row, versus
from benchmarks.size import Size

PER_S = 200
"""Appends of the latency-critical workload."""
SCANNED = 40_000
"""Records that the analysis reads over and over: several times what a broker's cache holds here."""
CACHE_BYTES = 32 << 20
SHARE = 0.5
"""Of one core: what the analysis and its broker may use together."""
MOST = 1.05

D = TypeVar("D")

_VALUE_BYTES = 4_080
_HERE, _THERE = 0, 1
"""Cores: of the latency-critical workload, and of what runs beside it."""


@dataclass(slots=True)
class _Phases:
    """What each round found, alone and beside the other."""

    alone: list[paced.Done] = field(default_factory=list[paced.Done])
    beside: list[paced.Done] = field(default_factory=list[paced.Done])
    others: list[float] = field(default_factory=list[float])
    """What the other got done, a second."""
    confined: bool = False


def run(size: Size) -> Found:
    settings = {"ANABRANCH_CACHE_BYTES": str(CACHE_BYTES)}
    with running(Shape(brokers=2, metadata=size.of(3, 1)), settings) as cluster:
        scanned = _beside_scan(cluster, size)
        forked = _beside_fork(cluster, size)
    with scratch() as folder, kafka_running(folder / "kafka") as kafka:
        peer = _kafka_beside_scan(kafka, size)
    rows = [
        *_rows("7a, bulk scan of an sFork", scanned, bar=True),
        row("  records scanned meanwhile", scanned.others, "records/s"),
        *_rows("7b, appends to a cFork", forked, bar=True),
        *_rows("7a on Kafka, bulk scan of the topic", peer, bar=False),
        row("  records scanned meanwhile", peer.others, "records/s"),
    ]
    confined = scanned.confined and peer.confined
    return Found(
        rows, [_means(scanned, forked, peer), _tails(scanned, forked, peer)], _notes(confined)
    )


def _notes(confined: bool) -> list[str]:
    how = f"no more than {SHARE:g} of it" if confined else "as much of it as they like (no cgroups)"
    return [
        (
            f"4 KiB records, {PER_S} appends/s, end to end from when each is due to a reader at "
            "the tail; alone and beside by turns"
        ),
        (
            f"core {_HERE}: the log's broker and its clients; core {_THERE}: the fork's broker and "
            f"its clients, {how}; etcd, the S3 server and the metadata: both cores"
        ),
        "Kafka: its one broker both cores; clients as ours",
    ]


def _beside_scan(cluster: Cluster, size: Size) -> _Phases:
    with ExitStack() as stack:
        service = stack.enter_context(cluster.connect())
        root = service.create("critical")
        broker = cluster.broker_of(root.describe())
        target = flood.Target(broker.pair.port, root.id)
        records = _fill(target, size)
        fork = root.sfork("analysis", past=records - 1)
        other = cluster.broker_of(fork.describe())
        plan = scan.Plan(
            address=cluster.url, log=fork.name, records=records, seconds=size.of(2.2, 0.3)
        )
        analysis = stack.enter_context(at_work(scan.MODULE, plan, scan.Done))
        load = stack.enter_context(_critical(cluster, root.name, size))
        pids = _apart(broker, load, other, analysis)
        confined = stack.enter_context(limited("analysis", SHARE, pids))
        return _phases(load, analysis, lambda done: done.records_per_s, size, confined)


def _beside_fork(cluster: Cluster, size: Size) -> _Phases:
    with ExitStack() as stack:
        service = stack.enter_context(cluster.connect())
        root = service.create("forked")
        fork = root.cfork("appended")
        broker, other = cluster.broker_of(root.describe()), cluster.broker_of(fork.describe())
        beside = stack.enter_context(_critical(cluster, fork.name, size, reads=False))
        load = stack.enter_context(_critical(cluster, root.name, size))
        pids = _apart(broker, load, other, beside)
        confined = stack.enter_context(limited("fork", SHARE, pids))
        return _phases(load, beside, lambda _: PER_S, size, confined)


def _kafka_beside_scan(kafka: Kafka, size: Size) -> _Phases:
    with ExitStack() as stack:
        topic = "critical"
        kafka.create(topic)
        records = _fill(flood.Target(kafka.port, topic=topic), size)
        plan = scan.Plan(
            address=kafka.address, log=topic, records=records, seconds=size.of(2.2, 0.3)
        )
        analysis = stack.enter_context(at_work(kafka_scan.MODULE, plan, scan.Done))
        told = _paced(kafka.address, topic, size)
        load = stack.enter_context(at_work(kafka_critical.MODULE, told, paced.Done))
        pin(load.pid, _HERE)
        pin(analysis.pid, _THERE)
        for _ in range(size.of(3, 0)):
            load.once()  # its cold latencies are ten times its warm ones
        confined = stack.enter_context(limited("analysis", SHARE, [analysis.pid]))
        return _phases(load, analysis, lambda done: done.records_per_s, size, confined)


def _apart(broker: Pod, load: Worker[paced.Done], other: Pod, beside: Worker[D]) -> list[int]:
    """Each pair on its core; the processes of the second."""
    assert broker is not other, "a fork is served by another broker than its root"
    for pid in (broker.pid, load.pid):
        pin(pid, _HERE)
    pids = [other.pid, beside.pid]
    for pid in pids:
        pin(pid, _THERE)
    return pids


@contextmanager
def _critical(
    cluster: Cluster, log: str, size: Size, *, reads: bool = True
) -> Generator[Worker[paced.Done]]:
    plan = _paced(cluster.url, log, size, reads=reads)
    with at_work(critical.MODULE, plan, paced.Done) as worker:
        yield worker


def _paced(address: str, log: str, size: Size, *, reads: bool = True) -> paced.Plan:
    return paced.Plan(
        address=address,
        log=log,
        per_s=PER_S,
        seconds=size.of(2.0, 0.1),
        value_bytes=_VALUE_BYTES,
        reads=reads,
    )


def _fill(target: flood.Target, size: Size) -> int:
    """What the analysis reads; how many records."""
    plan = flood.Plan(
        targets=[target],
        connections=4,
        in_flight=4,
        seconds=600,
        value_bytes=_VALUE_BYTES,
        records=20,
        warm_s=0,
        appends_max=size.of(SCANNED, 400) // 20 // 4,
    )
    with at_work(flood.MODULE, plan, flood.Done) as worker:
        return worker.once().all_records


def _phases(
    load: Worker[paced.Done],
    other: Worker[D],
    got: Callable[[D], float],
    size: Size,
    confined: bool,
) -> _Phases:
    """Alone and beside, there and back."""
    found = _Phases(confined=confined)

    def alone() -> None:
        found.alone.append(load.once())

    def beside() -> None:
        other.begin()
        found.beside.append(load.once())
        found.others.append(got(other.heard()))

    load.once()  # the first ones warm up
    other.once()
    order = [alone, beside]
    for _ in range(size.of(5, 1)):
        for phase in order:
            phase()
        order.reverse()
    return found


def _rows(what: str, phases: _Phases, *, bar: bool) -> list[Row]:
    rows: list[Row] = []
    most = MOST if bar else None
    for name, of in _FIGURES.items():
        alone, beside = list(map(of, phases.alone)), list(map(of, phases.beside))
        rows.append(row(f"{name}, alone", alone, "ms"))
        rows.append(versus(f"{name}, beside: {what}", beside, "ms", "alone", alone, at_most=most))
    return rows


_FIGURES: dict[str, Callable[[paced.Done], float]] = {
    "mean": lambda done: done.mean_ms,
    "p99": lambda done: done.p99_ms,
}


def _chart(title: str, figure: str, all_phases: tuple[_Phases, ...]) -> Chart:
    """Beside over alone."""
    of = _FIGURES[figure]
    names = ("7a", "7b", "7a on Kafka")
    shares = [
        (name, median(of(b) / of(a) for a, b in zip(each.alone, each.beside, strict=True)))
        for name, each in zip(names, all_phases, strict=True)
    ]
    lines = [Line("measured", list(shares))]
    if figure == "mean":
        told = (paper.BOLT_BESIDE_SCAN, paper.BOLT_WITH_FORKS, paper.KAFKA_BESIDE_SCAN)
        lines.append(Line("the paper", list(zip(_PAPER, told, strict=True))))
    return Chart(title=title, x="", y="times the latency alone", lines=lines)


_PAPER = ("7a (paper)", "7b (paper)", "Kafka (paper)")


def _means(*all_phases: _Phases) -> Chart:
    return _chart("End to end beside others: mean", "mean", all_phases)


def _tails(*all_phases: _Phases) -> Chart:
    return _chart("and p99", "p99", all_phases)
