"""What the operator counts, as text that Prometheus reads."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from anabranch_operator.api import names
from anabranch_operator.api.pool import PoolStatus
from anabranch_operator.plan.engine.operator import Operator
from anabranch_operator.plan.engine.world import RESOURCES

PREFIX = "anabranch_operator_"
HELP: Mapping[str, str] = {
    "anabranch_operator_reconcile_total": (
        "Plans, by kind and by result: steady (nothing to do), acted or failed"
    ),
    "anabranch_operator_reconcile_seconds": "Seconds from a plan to the outcome of its last action",
    "anabranch_operator_steady_total": "Plans that had nothing to do",
    "anabranch_operator_api_requests_total": (
        "Requests to the API server, watches aside, by verb, kind and status"
    ),
    "anabranch_operator_service_requests_total": (
        "Requests to the log service, by request and error code"
    ),
    "anabranch_operator_watch_events_total": "Events received from watches, by kind",
    "anabranch_operator_resyncs_total": "Lists that were compared with a watch, by kind",
    "anabranch_operator_missed_deletions_total": (
        "Deletions that a watch missed and a list showed, by kind"
    ),
    "anabranch_operator_gates_total": "Promotion gates whose verdict was found, by result",
    "anabranch_operator_leader": "1 if this operator leads and acts, else 0",
    "anabranch_operator_certificate_expiry_seconds": (
        "Time at which a certificate expires, in seconds since 1970, by Secret"
    ),
    "anabranch_operator_canary_age_seconds": (
        "Seconds for which the watch has been behind the Lease as it was read directly"
    ),
    "anabranch_operator_queue_age_seconds": (
        "Seconds for which the oldest object in the queue has waited for its plan"
    ),
    "anabranch_operator_queued": "Objects that wait for their plans",
    "anabranch_operator_synced": "1 once every kind of object has been listed, else 0",
    "anabranch_operator_service_reachable": "1 while the log service answers, else 0",
    "anabranch_operator_orphans": "Logs and forks that outlive their resources and must be ended",
    "anabranch_operator_malformed": "Resources whose spec can't be read",
    "anabranch_operator_forks": "Forks, by phase",
    "anabranch_operator_logs": "Logs, by phase",
    "anabranch_operator_paused": "Resources with the annotation anabranch.dev/paused, by kind",
    "anabranch_operator_fork_info": "1 for each fork, with its parent, phase and broker as labels",
    "anabranch_operator_pool_desired": "Brokers that are wanted, by pool",
    "anabranch_operator_pool_replicas": "Pods that aren't ending, by pool",
    "anabranch_operator_pool_ready": "Brokers that serve logs, or could, by pool",
    "anabranch_operator_pool_spare": "Ready brokers that serve no log, by pool",
    "anabranch_operator_pool_updated": "Pods that were made from the present spec, by pool",
    "anabranch_operator_pool_waiting": "Exclusive forks that wait for an idle broker, by pool",
    "anabranch_operator_shard_group_desired": "Shards that are wanted, by group",
    "anabranch_operator_shard_group_resting": (
        "Shards without a quota because they straggled, by group"
    ),
    "anabranch_operator_shards": "Shards, by group and by how the log counts on them",
}
"""Every metric of the operator, by the name that is served."""

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """Counted where it happens; what the machine knows is read when somebody asks."""

    def __init__(
        self, machine: Operator, now: Callable[[], int], canary_age_s: Callable[[], float]
    ) -> None:
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.registry = registry
        self.reconciles = self._counter("anabranch_operator_reconcile_total", "kind", "result")
        self.steady = self._counter("anabranch_operator_steady_total")
        self.requests = self._counter(
            "anabranch_operator_api_requests_total", "verb", "kind", "code"
        )
        self.asked = self._counter("anabranch_operator_service_requests_total", "request", "code")
        self.watched = self._counter("anabranch_operator_watch_events_total", "kind")
        self.resyncs = self._counter("anabranch_operator_resyncs_total", "kind")
        self.missed = self._counter("anabranch_operator_missed_deletions_total", "kind")
        self.gates = self._counter("anabranch_operator_gates_total", "result")
        seconds = "anabranch_operator_reconcile_seconds"
        self.seconds = Histogram(
            seconds, HELP[seconds], ["kind"], buckets=_SECONDS, registry=registry
        )
        self.leader = self._gauge("anabranch_operator_leader")
        self.certificates = self._gauge("anabranch_operator_certificate_expiry_seconds", "name")
        self._gauge("anabranch_operator_canary_age_seconds").set_function(canary_age_s)
        registry.register(_Knows(machine, now))

    def page(self) -> bytes:
        return generate_latest(self.registry)

    def _counter(self, name: str, *labels: str) -> Counter:
        return Counter(name, HELP[name], labels, registry=self.registry)

    def _gauge(self, name: str, *labels: str) -> Gauge:
        return Gauge(name, HELP[name], labels, registry=self.registry)


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
        yield _gauge("anabranch_operator_queue_age_seconds", age_ns / 1e9)
        yield _gauge("anabranch_operator_queued", counters.queued)
        yield _gauge("anabranch_operator_synced", machine.synced)
        reachable = world.service.looked and world.service.trouble is None
        yield _gauge("anabranch_operator_service_reachable", reachable)
        yield _gauge("anabranch_operator_orphans", sum(1 for _ in world.orphans()))
        yield _gauge("anabranch_operator_malformed", len(world.malformed))
        if machine.leads:  # so that no two tell of the same
            yield from self._resources()
            yield from self._pools()
            yield from self._shards()

    def _resources(self) -> Iterator[Metric]:
        world = self._machine.world
        phases = (fork.status.phase.value for fork in world.forks.values())
        yield _counts("anabranch_operator_forks", "phase", phases)
        phases = (log.status.phase.value for log in world.logs.values())
        yield _counts("anabranch_operator_logs", "phase", phases)
        paused = (
            kind
            for kind in RESOURCES
            for each in world.of_kind(kind)
            if each.annotations.get(names.PAUSED) == "true"
        )
        yield _counts("anabranch_operator_paused", "kind", paused)
        labels = ["namespace_of", "fork", "parent", "kind", "phase", "broker"]
        family = _family("anabranch_operator_fork_info", *labels)
        for ref, fork in world.forks.items():
            spec, status = fork.spec, fork.status
            told = (spec.parent.name, spec.type.value, status.phase.value, status.broker or "")
            family.add_metric([ref.namespace, ref.name, *told], 1)
        yield family

    def _pools(self) -> Iterator[Metric]:
        figures: dict[str, Callable[[PoolStatus], int]] = {
            "anabranch_operator_pool_desired": lambda pool: pool.desired,
            "anabranch_operator_pool_replicas": lambda pool: pool.replicas,
            "anabranch_operator_pool_ready": lambda pool: pool.ready,
            "anabranch_operator_pool_spare": lambda pool: pool.spare,
            "anabranch_operator_pool_updated": lambda pool: pool.updated,
            "anabranch_operator_pool_waiting": lambda pool: pool.waiting,
        }
        for name, figure in figures.items():
            family = _family(name, "pool")
            for pool in self._machine.world.pools.values():
                family.add_metric([pool.ref.name], figure(pool.status))
            yield family

    def _shards(self) -> Iterator[Metric]:
        groups = list(self._machine.world.shards.values())
        desired = _family("anabranch_operator_shard_group_desired", "group")
        resting = _family("anabranch_operator_shard_group_resting", "group")
        standing = _family("anabranch_operator_shards", "group", "standing")
        for group in groups:
            name, seats = group.ref.name, group.status.seats
            desired.add_metric([name], group.spec.shards)
            resting.add_metric([name], sum(each.resting for each in seats))
            for word in sorted({each.standing for each in seats}):
                count = sum(each.standing == word for each in seats)
                standing.add_metric([name, word], count)
        yield from (desired, resting, standing)


def _family(name: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, HELP[name], labels=labels)


def _gauge(name: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, HELP[name], value=float(value))


def _counts(name: str, label: str, words: Iterable[str]) -> GaugeMetricFamily:
    family = _family(name, label)
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    for word, count in sorted(counts.items()):
        family.add_metric([word], count)
    return family
