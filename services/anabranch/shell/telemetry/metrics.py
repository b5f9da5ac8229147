"""What the process counts, as text that Prometheus reads; nothing is kept between two readings."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client.core import CollectorRegistry, CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from anabranch.core.usage import Share, Usage
from anabranch.shell.telemetry.metric_help import HELP

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


RENDERS_MAX = 10
"""So many pages of metrics are rendered at once, and then one a second."""


class KeptPage:
    """A page of metrics, rendered anew unless so many ask that the process would do little else.

    Whoever is one too many gets the last page, which is at most a second old.
    """

    def __init__(
        self, render: Callable[[], bytes], now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._render = render
        self._now_s = now_s
        self._left = float(RENDERS_MAX)
        self._counted_s = now_s()
        self._page = b""

    def __call__(self) -> bytes:
        now_s = self._now_s()
        self._left = min(RENDERS_MAX, self._left + now_s - self._counted_s)
        self._counted_s = now_s
        if self._left >= 1:
            self._left -= 1
            self._page = self._render()
        return self._page


class _Reading(Collector):
    def __init__(self, counters: Mapping[str, Any], gauges: Mapping[str, Any]) -> None:
        self._counters = counters
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        for subject, numbers in self._counters.items():
            yield from _families(CounterMetricFamily, subject, numbers)
        for subject, numbers in self._gauges.items():
            yield from _families(GaugeMetricFamily, subject, numbers)


class _Billing(Collector):
    def __init__(self, bill: Bill) -> None:
        self._bill = bill

    def collect(self) -> Iterable[Metric]:
        usage, price = self._bill.usage, self._bill.price
        figures: dict[str, Callable[[Share], float]] = {
            "anabranch_log_puts_total": lambda share: share.puts,
            "anabranch_log_put_bytes_total": lambda share: share.put_bytes,
            "anabranch_log_gets_total": lambda share: share.gets,
            "anabranch_log_got_bytes_total": lambda share: share.got_bytes,
            "anabranch_log_cost_total": price,
        }
        shares = [*((str(log), share) for log, share in usage.by_log()), ("others", usage.others)]
        for name, figure in figures.items():
            metric = CounterMetricFamily(name, HELP[name], labels=["log"])
            for log, share in shares:
                metric.add_metric([log], figure(share))
            yield metric


def _families(
    kind: type[CounterMetricFamily | GaugeMetricFamily], subject: str, numbers: Any
) -> Iterable[Metric]:
    labels = numbers.labels if isinstance(numbers, Labelled) else ()
    rows = numbers.rows if isinstance(numbers, Labelled) else [((), numbers)]
    found: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
    for values, owner in rows:
        for name, value in _numbers(owner):
            if name not in found:
                found[name] = kind(*_declared(kind, subject, name), labels=labels)
            found[name].add_metric(values, value)
    return found.values()


def _declared(kind: type[Metric], subject: str, name: str) -> tuple[str, str]:
    """The served name and the help text of one number: the slot of an object."""
    suffix = "_total" if kind is CounterMetricFamily else ""
    served = f"{PREFIX}_{subject}_{name}{suffix}"
    assert served in HELP, f"{served} is missing in metric_help.py"
    return served, HELP[served]


def _numbers(owner: Any) -> Iterable[tuple[str, float]]:
    names: Iterable[str] = owner.__slots__
    return ((name, getattr(owner, name)) for name in names)
