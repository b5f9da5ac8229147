"""What the process counts, as text that Prometheus reads; nothing is kept between two readings."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client.core import CollectorRegistry, CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from anabranch.core.bolt.broker.usage import Share, Usage

PREFIX = "anabranch"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Bill:
    """What each log has used of the object store, and what that costs."""

    usage: Usage
    price: Callable[[Share], float]


class Labelled:
    """Numbers of several parts of a process, each under its own labels."""

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.labels = labels
        self.rows: list[tuple[tuple[str, ...], object]] = []
        """The labels' values, and an object whose slots are plain numbers."""


def render(
    counters: Mapping[str, Any], gauges: Mapping[str, Any], bill: Bill | None = None
) -> bytes:
    """By subject, objects whose slots are plain numbers; the bill by log; and this process."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_Reading(counters, gauges))
    if bill is not None:
        registry.register(_Billing(bill))
    return generate_latest(registry)


class _Reading(Collector):
    def __init__(self, counters: Mapping[str, Any], gauges: Mapping[str, Any]) -> None:
        self._counters = counters
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        for subject, numbers in self._counters.items():
            yield from _families(CounterMetricFamily, subject, numbers, "since it started")
        for subject, numbers in self._gauges.items():
            yield from _families(GaugeMetricFamily, subject, numbers, "now")


class _Billing(Collector):
    def __init__(self, bill: Bill) -> None:
        self._bill = bill

    def collect(self) -> Iterable[Metric]:
        usage, price = self._bill.usage, self._bill.price
        told: dict[str, tuple[str, Callable[[Share], float]]] = {
            "puts": ("PUTs of objects, in parts of one", lambda share: share.puts),
            "put_bytes": ("Bytes put", lambda share: share.put_bytes),
            "gets": ("GETs, in parts of one", lambda share: share.gets),
            "got_bytes": ("Bytes got", lambda share: share.got_bytes),
            "cost": ("What these requests cost", price),
        }
        shares = [*((str(log), share) for log, share in usage.by_log()), ("others", usage.others)]
        for name, (words, figure) in told.items():
            prefixed = f"{PREFIX}_log_{name}"
            metric = CounterMetricFamily(prefixed, f"{words}, by log", labels=["log"])
            for log, share in shares:
                metric.add_metric([log], figure(share))
            yield metric


def _families(
    kind: type[CounterMetricFamily | GaugeMetricFamily], subject: str, numbers: Any, when: str
) -> Iterable[Metric]:
    labels = numbers.labels if isinstance(numbers, Labelled) else ()
    rows = numbers.rows if isinstance(numbers, Labelled) else [((), numbers)]
    found: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
    for values, owner in rows:
        for name, value in _numbers(owner):
            if name not in found:
                told = f"{_words(name)} of the {subject} {when}"
                found[name] = kind(f"{PREFIX}_{subject}_{name}", told, labels=labels)
            found[name].add_metric(values, value)
    return found.values()


def _numbers(owner: Any) -> Iterable[tuple[str, float]]:
    names: Iterable[str] = owner.__slots__
    return ((name, getattr(owner, name)) for name in names)


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize()
