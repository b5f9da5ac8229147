"""What one broker process takes of 4 KiB records in batches, beside Kafka's, at equal durability.

Equal means: Anabranch's data go to an S3 server that doesn't sync (its metadata do, in etcd), and
Kafka acknowledges from the page cache; and the embedded server, which syncs all before it
acknowledges, beside a topic with flush.messages=1, which does too.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median

from anabranch.apps.processes.layout import Shape
from benchmarks import server
from benchmarks.cluster import flood
from benchmarks.cluster.local import Cluster, running, scratch
from benchmarks.cluster.worker import Worker, at_work
from benchmarks.peers.kafka.server import Kafka
from benchmarks.peers.kafka.server import running as kafka_running
from benchmarks.report import Chart, Found, Line, Row, row, versus
from benchmarks.server import cpu_s
from benchmarks.size import Size
from benchmarks.timing import interleaved

PLAN = flood.Plan(
    targets=[], connections=8, in_flight=16, seconds=1.5, value_bytes=4_080, records=16
)
AT_LEAST = 0.5
"""Of Kafka's."""


@dataclass(slots=True)
class _Subject:
    """One that takes appends, with whoever it needs for that."""

    pids: Mapping[str, int]
    worker: Worker[flood.Done]
    p50: list[float] = field(default_factory=list[float])
    p99: list[float] = field(default_factory=list[float])
    cpu: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    """Microseconds a record, of each process."""

    def rate(self) -> float:
        before = {name: cpu_s(pid) for name, pid in self.pids.items()}
        done = self.worker.once()
        for name, pid in self.pids.items():
            us = (cpu_s(pid) - before[name]) / max(1, done.all_records) * 1e6
            self.cpu.setdefault(name, []).append(us)
        self.p50.append(done.p50_ms)
        self.p99.append(done.p99_ms)
        return done.records_per_s


def run(size: Size) -> Found:
    with ExitStack() as stack:
        folder = stack.enter_context(scratch())
        kafka = stack.enter_context(kafka_running(folder / "kafka"))
        cluster = stack.enter_context(running(Shape(brokers=1, metadata=size.of(3, 1))))
        embedded = stack.enter_context(server.running())
        kafka.create("cached")
        kafka.create("synced", flush_messages="1")

        def subject(target: flood.Target, pids: Mapping[str, int]) -> _Subject:
            plan = flood.Plan(
                targets=[target],
                connections=PLAN.connections,
                in_flight=PLAN.in_flight,
                seconds=size.of(PLAN.seconds, 0.3),
                value_bytes=PLAN.value_bytes,
                records=PLAN.records,
            )
            return _Subject(pids, stack.enter_context(at_work(flood.MODULE, plan, flood.Done)))

        subjects = {
            OURS: subject(*_of_cluster(cluster)),
            KAFKA: subject(*_of_kafka(kafka, "cached")),
            EMBEDDED: subject(*_of_embedded(embedded)),
            SYNCED: subject(*_of_kafka(kafka, "synced")),
        }
        works: dict[str, Callable[[], float]] = {name: each.rate for name, each in subjects.items()}
        for each in subjects.values():
            each.rate()
        rates = interleaved(size.of(5, 1), works)
    return _found(subjects, rates)


OURS, KAFKA = "one broker of the cluster", "Kafka, acknowledging from the page cache"
EMBEDDED, SYNCED = "the embedded server, every sync", "Kafka, flush.messages=1"


def _of_cluster(cluster: Cluster) -> tuple[flood.Target, dict[str, int]]:
    with cluster.connect() as service:
        log = service.create("orders")
    local = cluster.local
    pids = {
        "broker": local.brokers[0].pid,
        "S3 server": local.s3.pid,
        "etcd": local.etcd.members[0].pid,
    }
    pids |= {member.name: member.pid for member in local.metadata}
    return flood.Target(local.brokers[0].pair.port, log.id), pids


def _of_kafka(kafka: Kafka, topic: str) -> tuple[flood.Target, dict[str, int]]:
    return flood.Target(kafka.port, topic=topic), {"Kafka": kafka.pid}


def _of_embedded(embedded: server.Server) -> tuple[flood.Target, dict[str, int]]:
    with embedded.connect() as service:
        log = service.create("orders")
    return flood.Target(embedded.port, log.id), {"server": embedded.pid}


def _found(subjects: Mapping[str, _Subject], rates: Mapping[str, list[float]]) -> Found:
    rows: list[Row] = []
    for ours, peer in ((OURS, KAFKA), (EMBEDDED, SYNCED)):
        rows.append(row(f"{peer}", rates[peer], "records/s"))
        rows += _more(subjects[peer])
        rows.append(versus(ours, rates[ours], "records/s", "Kafka", rates[peer], at_least=AT_LEAST))
        rows += _more(subjects[ours])
    bars = [(_SHORT[name], median(rates[name])) for name in (OURS, KAFKA, EMBEDDED, SYNCED)]
    chart = Chart(
        title="4 KiB records in batches of 64 KiB",
        x="",
        y="records a second",
        lines=[Line("taken", list(bars))],
    )
    return Found(rows, [chart], _NOTES)


_SHORT = {
    OURS: "cluster's broker",
    KAFKA: "Kafka",
    EMBEDDED: "embedded, synced",
    SYNCED: "Kafka, synced",
}


def _more(subject: _Subject) -> list[Row]:
    cpu = [row(f"  CPU of {name}", each, "us/record") for name, each in subject.cpu.items()]
    return [row("  p50", subject.p50, "ms"), row("  p99", subject.p99, "ms"), *cpu]


_NOTES = [
    (
        f"batches of {PLAN.records} records, {PLAN.connections} clients with {PLAN.in_flight} "
        "batches in flight each; all processes share the machine's cores, the load's among them"
    ),
    (
        "Kafka: one topic of one partition, acks=all, batches without a producer; ours: each batch "
        "is checked for its producer's sequence and checksum"
    ),
]
