"""Whose the requests to the object store were."""

from typing import Any

import pytest

from anabranch.core.bolt.protocol.messages import Read
from anabranch.core.types import LogId
from anabranch.core.usage import Share, Usage
from anabranch.shell.telemetry.metrics import Bill, render

ROOT, FORK, QUIET = map(LogId, (1, 2, 3))


def test_an_objects_logs_bear_its_put_by_their_bytes() -> None:
    usage = Usage()
    usage.wrote([(ROOT, 300), (FORK, 100)])
    usage.read([(FORK, 50)])
    shares = dict(usage.by_log())
    assert shares[ROOT] == Share(puts=0.75, put_bytes=300)
    assert shares[FORK] == Share(puts=0.25, gets=1.0, put_bytes=100, got_bytes=50)


def test_the_log_that_was_idle_longest_joins_the_others() -> None:
    usage = Usage(logs_max=2)
    usage.wrote([(QUIET, 10), (ROOT, 30)])
    usage.read([(ROOT, 1)])
    usage.wrote([(FORK, 5)])
    assert [log for log, _ in usage.by_log()] == [ROOT, FORK]
    assert usage.others == Share(puts=0.25, put_bytes=10)


def test_a_get_is_borne_by_the_logs_it_was_written_to(stage: Any, props: Any) -> None:
    content = props.Content(b"a", b"b")
    stage.request(1, Read(props.LOG, 0, 10, 1_000, 0))
    stage.answer(props.resolved(content.slice(), tail=2))
    stage.read_object(content.bytes)
    ((log, share),) = stage.broker.usage.by_log()
    assert log == content.slice().origin
    assert share == Share(gets=1.0, got_bytes=len(content.bytes))


def test_the_bill_is_a_metric_by_log() -> None:
    usage = Usage()
    usage.wrote([(ROOT, 300), (FORK, 100)])
    text = render({}, {}, Bill(usage, lambda share: share.puts * 2)).decode()
    assert 'anabranch_log_put_bytes_total{log="1"} 300.0' in text
    assert 'anabranch_log_cost_total{log="2"} 0.5' in text
    assert 'anabranch_log_cost_total{log="others"} 0.0' in text


@pytest.mark.parametrize("of", ["wrote", "read"])
def test_nothing_is_charged_for_nothing(of: str) -> None:
    usage = Usage()
    getattr(usage, of)([])
    assert list(usage.by_log()) == []
