"""What the process counts, as text that Prometheus reads; nothing is kept between two readings."""

from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client.core import CollectorRegistry, CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

PREFIX = "anabranch"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def render(counters: Mapping[str, Any], gauges: Mapping[str, Any]) -> bytes:
    """By subject, objects whose slots are plain numbers; and this process."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_Reading(counters, gauges))
    return generate_latest(registry)


class _Reading(Collector):
    def __init__(self, counters: Mapping[str, Any], gauges: Mapping[str, Any]) -> None:
        self._counters = counters
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        for subject, numbers in self._counters.items():
            for name, value in _numbers(numbers):
                told = f"{_words(name)} of the {subject} since it started"
                yield CounterMetricFamily(f"{PREFIX}_{subject}_{name}", told, value=value)
        for subject, numbers in self._gauges.items():
            for name, value in _numbers(numbers):
                told = f"{_words(name)} of the {subject} now"
                yield GaugeMetricFamily(f"{PREFIX}_{subject}_{name}", told, value=value)


def _numbers(owner: Any) -> Iterable[tuple[str, float]]:
    names: Iterable[str] = owner.__slots__
    return ((name, getattr(owner, name)) for name in names)


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize()
