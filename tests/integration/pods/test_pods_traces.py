"""A trace of what real processes did, as a collector gets it."""

import socket

from tests.collector import Collector
from tests.integration.pods.crew import PATIENCE_S, Crew, Pod, log_at

from anabranch.core.types import LogId
from anabranch.core.wire.frames import encode_request, server_messages
from anabranch.core.wire.messages import PROTOCOL_VERSION, Hello, Read
from anabranch.shell.peers import parse_address

TRACE, SPAN = 77, 88


def read_as_part_of(trace: int, broker: Pod, log: LogId) -> None:
    """By a client that names a trace of its own."""
    host, port = parse_address(broker.address)
    hello = Hello(PROTOCOL_VERSION, "test", None, f"00-{trace:032x}-{SPAN:016x}-01")
    with socket.create_connection((host, port), PATIENCE_S) as connection:
        for number, message in ((1, hello), (2, Read(log, 0, 10, 1_000))):
            connection.sendall(b"".join(encode_request(number, message)))
        reader = server_messages()
        answered: set[int] = set()
        while answered != {1, 2}:
            answered |= {request for request, _ in reader.feed(connection.recv(1 << 16))}


def test_an_append_and_a_read_are_traced_through_all_processes(crew: Crew) -> None:
    with Collector.listening() as collector:
        crew.start(1, 2, otlp_endpoint=collector.endpoint, trace_one_in=1)
        first, second = crew.brokers
        with log_at(first, "orders") as here, log_at(second, "orders") as there:
            here.append(b"a", timeout=PATIENCE_S)
            assert [record.value for record in there.read(0)] == [b"a"]
            read_as_part_of(TRACE, first, here.id)
        named = collector.until("read", trace=TRACE)
        spans = collector.until("object", "append", "put", "commit", "journal", "read", "get")
    (whole,) = (span for span in spans if span["name"] == "object")
    together = {span["name"]: span for span in spans if span["traceId"] == whole["traceId"]}
    assert set(together) == {"object", "append", "put", "commit", "journal"}
    assert together["journal"]["service"] == "anabranch-metadata"
    assert together["put"]["service"] == "anabranch-broker"
    assert together["journal"]["parentSpanId"] == together["commit"]["spanId"]
    assert {together[name]["parentSpanId"] for name in ("append", "put", "commit")} == {
        whole["spanId"]
    }
    (read,) = (span for span in named if span["name"] == "read")
    assert read["parentSpanId"] == f"{SPAN:016x}"
    assert first.metric("anabranch_spans_lost_total") == 0
