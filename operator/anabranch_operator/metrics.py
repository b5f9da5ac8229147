"""What the operator counts, as text that Prometheus reads."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from anabranch_operator.api import names
from anabranch_operator.plan.engine.operator import Operator
from anabranch_operator.plan.engine.world import RESOURCES

PREFIX = "anabranch_operator"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """Counted where it happens; what the machine knows is read when somebody asks."""

    def __init__(
        self, machine: Operator, now: Callable[[], int], canary_age_s: Callable[[], float]
    ) -> None:
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.registry = registry
        self.reconciles = self._counter(
            "reconcile",
            "Plans by kind, and by whether they had nothing to do (steady), acted, or failed",
            "kind",
            "result",
        )
        self.steady = self._counter("steady", "Plans that had nothing to do")
        self.seconds = Histogram(
            f"{PREFIX}_reconcile_seconds",
            "From a plan to the outcome of its last action",
            ["kind"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.requests = self._counter(
            "api_requests", "Requests to the API server; watches aside", "verb", "kind", "code"
        )
        self.asked = self._counter(
            "service_requests", "Requests to the log service", "request", "code"
        )
        self.watched = self._counter("watch_events", "What watches have told", "kind")
        self.resyncs = self._counter("resyncs", "Lists compared with watches", "kind")
        self.missed = self._counter(
            "missed_deletions", "What a list showed to be gone, and no watch had", "kind"
        )
        self.gates = self._counter("gates", "Gates that were decided", "result")
        self.leader = Gauge(f"{PREFIX}_leader", "1 while this one acts", registry=registry)
        self.certificates = Gauge(
            f"{PREFIX}_certificate_expiry_seconds",
            "When a certificate ends, in seconds since 1970",
            ["name"],
            registry=registry,
        )
        age = Gauge(
            f"{PREFIX}_canary_age_seconds",
            "How long the watch has been behind what is known of the Lease",
            registry=registry,
        )
        age.set_function(canary_age_s)
        registry.register(_Knows(machine, now))

    def page(self) -> bytes:
        return generate_latest(self.registry)

    def _counter(self, name: str, words: str, *labels: str) -> Counter:
        return Counter(f"{PREFIX}_{name}", words, labels, registry=self.registry)


class _Knows(Collector):
    def __init__(self, machine: Operator, now: Callable[[], int]) -> None:
        self._machine = machine
        self._now = now

    def collect(self) -> Iterable[Metric]:
        machine = self._machine
        counters, world = machine.counters, machine.world
        age_ns = 0
        if counters.oldest_queued_at is not None:
            age_ns = max(0, self._now() - counters.oldest_queued_at)
        yield _gauge("queue_age_seconds", "How long the oldest waits for its plan", age_ns / 1e9)
        yield _gauge("queued", "Objects that wait for their plans", counters.queued)
        yield _gauge("synced", "1 once every kind has been listed", machine.synced)
        reachable = world.service.looked and world.service.trouble is None
        yield _gauge("service_reachable", "1 while the log service answers", reachable)
        orphans = sum(1 for _ in world.orphans())
        yield _gauge("orphans", "Logs and forks whose resources are gone, still to end", orphans)
        yield _gauge("malformed", "Resources that can't be understood", len(world.malformed))
        if machine.leads:  # so that no two tell of the same
            yield from self._resources()
            yield from self._pools()
            yield from self._shards()

    def _resources(self) -> Iterator[Metric]:
        world = self._machine.world
        phases = (fork.status.phase.value for fork in world.forks.values())
        yield _counts("forks", "Forks by phase", "phase", phases)
        phases = (log.status.phase.value for log in world.logs.values())
        yield _counts("logs", "Logs by phase", "phase", phases)
        paused = (
            kind
            for kind in RESOURCES
            for each in world.of_kind(kind)
            if each.annotations.get(names.PAUSED) == "true"
        )
        yield _counts("paused", "Resources left alone", "kind", paused)
        labels = ["namespace_of", "fork", "parent", "kind", "phase", "broker"]
        family = GaugeMetricFamily(f"{PREFIX}_fork_info", "1 for each fork", labels=labels)
        for ref, fork in world.forks.items():
            spec, status = fork.spec, fork.status
            told = (spec.parent.name, spec.type.value, status.phase.value, status.broker or "")
            family.add_metric([ref.namespace, ref.name, *told], 1)
        yield family

    def _pools(self) -> Iterator[Metric]:
        told = {
            "desired": "Brokers that there should be",
            "replicas": "Pods that aren't on their way out",
            "ready": "Brokers that serve, or could",
            "spare": "Brokers that serve nothing",
            "updated": "Pods that are what the spec says",
            "waiting": "Forks that wait for a broker of their own",
        }
        for name, words in told.items():
            family = GaugeMetricFamily(
                f"{PREFIX}_pool_{name}", f"{words}, by pool", labels=["pool"]
            )
            for pool in self._machine.world.pools.values():
                family.add_metric([pool.ref.name], getattr(pool.status, name))
            yield family

    def _shards(self) -> Iterator[Metric]:
        groups = list(self._machine.world.shards.values())
        desired = _of_groups("shard_group_desired", "Shards that there should be, by group")
        resting = _of_groups("shard_group_resting", "Shards without a quota, by group")
        standing = _of_groups("shards", "Shards by group and standing", "standing")
        for group in groups:
            name, seats = group.ref.name, group.status.seats
            desired.add_metric([name], group.spec.shards)
            resting.add_metric([name], sum(each.resting for each in seats))
            for word in sorted({each.standing for each in seats}):
                count = sum(each.standing == word for each in seats)
                standing.add_metric([name, word], count)
        yield from (desired, resting, standing)


def _of_groups(name: str, words: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{PREFIX}_{name}", words, labels=["group", *labels])


def _gauge(name: str, words: str, value: Any) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{PREFIX}_{name}", words, value=float(value))


def _counts(name: str, told: str, label: str, words: Iterable[str]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"{PREFIX}_{name}", told, labels=[label])
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    for word, count in sorted(counts.items()):
        family.add_metric([word], count)
    return family
