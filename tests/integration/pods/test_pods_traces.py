"""A trace of what real processes did, as a collector gets it."""

from tests.collector import Collector
from tests.integration.pods.crew import PATIENCE_S, Crew, log_at

import anabranch

TRACE, SPAN = 77, 88


def test_an_append_and_a_read_are_traced_through_all_processes(crew: Crew) -> None:
    named = f"00-{TRACE:032x}-{SPAN:016x}-01"
    traced = anabranch.Settings(timeout_ms=round(PATIENCE_S * 1_000), traceparent=named)
    with Collector.listening() as collector:
        crew.start(1, 2, otlp_endpoint=collector.endpoint, trace_one_in=1)
        first, second = crew.brokers
        with log_at(first, "orders") as here, log_at(second, "orders") as there:
            here.append(b"a", timeout=PATIENCE_S)
            assert [record.value for record in there.read(0)] == [b"a"]
            with anabranch.connect(f"anabranch://{first.address}", settings=traced) as service:
                assert len(list(service.log("orders").read(0))) == 1
        part = collector.until("read", trace=TRACE)
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
    (read,) = (span for span in part if span["name"] == "read")
    assert read["parentSpanId"] == f"{SPAN:016x}"
    assert first.metric("anabranch_spans_lost_total") == 0
