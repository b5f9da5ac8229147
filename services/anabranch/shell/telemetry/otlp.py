"""Spans on their way to a collector: OTLP over HTTP, as JSON, by a thread of its own.

A collector that is slow or gone costs spans, and nothing else.
"""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import msgspec

from anabranch.core.errors import BadRequest
from anabranch.core.types import Nanoseconds
from anabranch.shell.telemetry.log import Log

QUEUE_SPANS_MAX = 10_000
BATCH_SPANS_MAX = 500
BATCH_S = 1.0
_TIMEOUT_S = 5.0
_PATH = "/v1/traces"
_INTERNAL, _SERVER, _CLIENT = 1, 2, 3
KINDS = {"append": _SERVER, "read": _SERVER, "put": _CLIENT, "get": _CLIENT, "commit": _CLIENT}
_FAILED = 2
_TRACEPARENT = re.compile("(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


@dataclass(frozen=True, slots=True)
class Context:
    """Where a span stands: the trace, and in it the span above."""

    trace: int
    span: int


@dataclass(frozen=True, slots=True)
class Span:
    name: str
    trace: int
    id: int
    parent: int
    """0 if there is none."""
    start: Nanoseconds
    end: Nanoseconds
    attributes: Mapping[str, str | int] = field(default_factory=dict[str, str | int])
    failed: str = ""
    links: Sequence[Context] = ()


@dataclass(slots=True)
class SpanCounters:
    sent: int = 0
    lost: int = 0


class SpanExporter:
    def __init__(self, endpoint: str, service: str, node: str, log: Log) -> None:
        parts = urlsplit(endpoint)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise BadRequest(f"otlp_endpoint = {endpoint}", "write it as http://host:4318")
        self._secure = parts.scheme == "https"
        self._host = parts.netloc
        self._path = parts.path.rstrip("/") + _PATH
        self._resource = _attributes({"service.name": service, "service.instance.id": node})
        self._log = log
        self._queue = SimpleQueue[Span | None]()
        self._trouble = False
        self.counters = SpanCounters()
        self._thread = Thread(target=self._run, name="otlp", daemon=True)
        self._thread.start()

    def add(self, span: Span) -> None:
        if self._queue.qsize() >= QUEUE_SPANS_MAX:
            self.counters.lost += 1
        else:
            self._queue.put(span)

    def close(self) -> None:
        """What is queued is sent first, if anybody takes it."""
        self._queue.put(None)
        self._thread.join(2 * _TIMEOUT_S)

    def _run(self) -> None:
        over = False
        while not over:
            batch, over = self._batch()
            if batch:
                self._send(batch)

    def _batch(self) -> tuple[list[Span], bool]:
        first = self._queue.get()
        if first is None:
            return [], True
        batch = [first]
        end = time.monotonic() + BATCH_S
        while len(batch) < BATCH_SPANS_MAX:
            try:
                span = self._queue.get(timeout=max(0.0, end - time.monotonic()))
            except Empty:
                break
            if span is None:
                return batch, True
            batch.append(span)
        return batch, False

    def _send(self, batch: Sequence[Span]) -> None:
        try:
            status = self._post(msgspec.json.encode(_document(self._resource, batch)))
            wrong = "" if status == 200 else f"it answers with {status}"
        except (OSError, HTTPException, UnicodeError) as error:
            # UnicodeError: no host can have this name, or a span holds what isn't text.
            wrong = str(error) or type(error).__name__
        if wrong:
            self.counters.lost += len(batch)
            if not self._trouble:
                self._log.warning("traces are lost", collector=self._host, reason=wrong)
        else:
            self.counters.sent += len(batch)
        self._trouble = bool(wrong)

    def _post(self, body: bytes) -> int:
        kind = HTTPSConnection if self._secure else HTTPConnection
        connection = kind(self._host, timeout=_TIMEOUT_S)
        try:
            connection.request("POST", self._path, body, {"Content-Type": "application/json"})
            return connection.getresponse().status
        finally:
            connection.close()


def parse_traceparent(text: str) -> Context | None:
    """What W3C's header of that name says; None if it says nothing, or asks not to be traced."""
    found = _TRACEPARENT.fullmatch(text)
    if found is None:
        return None
    trace, span, flags = (int(part, 16) for part in found.groups())
    return Context(trace, span) if trace and span and flags & 1 else None


def _document(resource: Sequence[Any], batch: Sequence[Span]) -> dict[str, Any]:
    scope = {"scope": {"name": "anabranch"}, "spans": list(map(_span, batch))}
    return {"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [scope]}]}


def _span(span: Span) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "name": span.name,
        "kind": KINDS.get(span.name, _INTERNAL),
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.end),
        "attributes": _attributes(span.attributes),
        "links": [_named(link.trace, link.span) for link in span.links],
        **_named(span.trace, span.id),
    }
    if span.parent:
        shown["parentSpanId"] = f"{span.parent:016x}"
    if span.failed:
        shown["status"] = {"code": _FAILED, "message": span.failed}
    return shown


def _named(trace: int, span: int) -> dict[str, str]:
    return {"traceId": f"{trace:032x}", "spanId": f"{span:016x}"}


def _attributes(values: Mapping[str, str | int]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: str | int) -> dict[str, str]:
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}
