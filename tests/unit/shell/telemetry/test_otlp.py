"""Spans on their way: whatever they say and whatever the collector is, only spans are lost."""

import io
import re
import threading
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.collector import Collector

from anabranch.shell.telemetry.log import Log
from anabranch.shell.telemetry.otlp import (
    BATCH_SPANS_MAX,
    QUEUE_SPANS_MAX,
    Context,
    Span,
    SpanExporter,
    parse_traceparent,
)


def exporter_to(endpoint: str) -> tuple[SpanExporter, io.StringIO]:
    lines = io.StringIO()
    return SpanExporter(endpoint, "service", "node", Log(lambda: 0, stream=lines)), lines


def sent(endpoint: str, spans: Sequence[Span]) -> tuple[SpanExporter, str]:
    exporter, lines = exporter_to(endpoint)
    for span in spans:
        exporter.add(span)
    exporter.close()
    return exporter, lines.getvalue()


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://127.0.0.1:1",
        "http://a..b:4318",
        "http://user:secret@127.0.0.1:4318",
        "http://127.0.0.1:1/with space",
        "https://127.0.0.1:1",
        f"http://{'a' * 64}.example:4318",
    ],
)
def test_a_collector_that_cant_be_reached_costs_spans_and_one_line(endpoint: str) -> None:
    """However it can't: the thread that sends goes on."""
    exporter, said = sent(endpoint, [Span("put", 1, 2, 0, 1, 2)] * 3)
    assert (exporter.counters.sent, exporter.counters.lost) == (0, 3)
    assert said.count("traces are lost") == 1


def test_a_span_that_cant_be_written_costs_its_batch_and_no_later_one() -> None:
    """Errors name files, and names of files needn't be text."""
    with Collector.listening() as collector:
        exporter, lines = exporter_to(collector.endpoint)
        exporter._send([Span("put", 1, 2, 0, 1, 2, failed="/data/\udcff is full")])
        exporter.add(Span("get", 1, 3, 0, 1, 2))
        collector.until("get")
        exporter.close()
    assert (exporter.counters.sent, exporter.counters.lost) == (1, 1)
    assert "traces are lost" in lines.getvalue()


def test_all_spans_come_in_batches_and_none_twice() -> None:
    count = 2 * BATCH_SPANS_MAX + 7
    with Collector.listening() as collector:
        spans = [Span(f"span {number}", 1, number + 1, 0, 1, 2) for number in range(count)]
        exporter, said = sent(f"{collector.endpoint}/prefix/", spans)
        told = collector.until("span 0", f"span {count - 1}")
        assert collector.paths == {"/prefix/v1/traces"}
    assert sorted(int(each["spanId"], 16) for each in told) == list(range(1, count + 1))
    assert (exporter.counters.sent, said) == (count, "")


def test_more_than_may_wait_is_lost_and_counted() -> None:
    exporter, _ = exporter_to("http://127.0.0.1:1")
    held, begun = threading.Event(), threading.Event()

    def hold(batch: Sequence[Span]) -> None:
        begun.set()
        held.wait()

    exporter._send = hold
    exporter.add(Span("first", 1, 2, 0, 1, 2))
    for _ in range(BATCH_SPANS_MAX - 1):
        exporter.add(Span("more", 1, 2, 0, 1, 2))
    assert begun.wait(20)
    for _ in range(QUEUE_SPANS_MAX + 5):
        exporter.add(Span("waits", 1, 2, 0, 1, 2))
    assert exporter.counters.lost == 5
    held.set()
    exporter.close()


WELL_FORMED = re.compile("(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
parts = st.text("0123456789abcdef", min_size=1, max_size=1)


@given(st.integers(1, (1 << 128) - 1), st.integers(1, (1 << 64) - 1), st.integers(0, 255))
def test_a_traceparent_names_a_trace_that_may_be_traced(trace: int, span: int, flags: int) -> None:
    found = parse_traceparent(f"00-{trace:032x}-{span:016x}-{flags:02x}")
    assert found == (Context(trace, span) if flags & 1 else None)


@given(
    st.from_regex(
        "[0-9a-fA-F+_x -]{2}-[0-9a-f+_ ]{32}-[0-9a-fA-F+_]{16}-[0-9a-f+]{2}", fullmatch=True
    )
    | st.text(max_size=60)
)
@example(f"00-+{'1' * 31}-{'1' * 16}-01")
@example(f"00-{'1_' * 15}11-{'1' * 16}-01")
@example("00-" + "\u0661" * 32 + f"-{'1' * 16}-01")
@example(f"00-{'A' * 32}-{'1' * 16}-01")
@example(f"ff-{'1' * 32}-{'1' * 16}-01")
def test_what_w3c_calls_malformed_is_ignored(text: str) -> None:
    if WELL_FORMED.fullmatch(text) is None:
        assert parse_traceparent(text) is None
