"""What HTTP counts: requests by route and status, and how long their answers took to begin."""

from bisect import bisect_left
from collections.abc import Iterable

from prometheus_client.core import (
    CollectorRegistry,
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from anabranch.shell.telemetry.metric_help import HELP

_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_BOUNDS = [*map(str, _BOUNDS_S), "+Inf"]
NO_ROUTE = "none"
"""Of requests that were refused before anything looked at what they ask."""


class HttpMeter(Collector):
    """Routes are those of the application, so there are few, whatever is asked for."""

    def __init__(self) -> None:
        self.open = 0
        self.held_bytes = 0
        self._requests: dict[tuple[str, str, int], int] = {}
        self._began: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """One request, and when its answer began."""
        key = (method, route, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        began = self._began.get(route)
        if began is None:
            began = self._began[route] = [0] * len(_BOUNDS)
        began[bisect_left(_BOUNDS_S, seconds)] += 1
        self._seconds[route] = self._seconds.get(route, 0.0) + seconds

    def render(self) -> bytes:
        return generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        requests = CounterMetricFamily(
            "anabranch_http_requests_total",
            HELP["anabranch_http_requests_total"],
            labels=("method", "route", "status"),
        )
        for (method, route, status), count in sorted(self._requests.items()):
            requests.add_metric((method, route, str(status)), count)
        yield requests
        began = HistogramMetricFamily(
            "anabranch_http_answer_seconds",
            HELP["anabranch_http_answer_seconds"],
            labels=("route",),
        )
        for route, counts in sorted(self._began.items()):
            total, buckets = 0, list[tuple[str, float]]()
            for bound, count in zip(_BOUNDS, counts, strict=True):
                total += count
                buckets.append((bound, total))
            began.add_metric((route,), buckets, self._seconds[route])
        yield began
        yield GaugeMetricFamily("anabranch_http_open", HELP["anabranch_http_open"], value=self.open)
        yield GaugeMetricFamily(
            "anabranch_http_held_bytes", HELP["anabranch_http_held_bytes"], value=self.held_bytes
        )
