"""The operator reads what a gate leaves, and never half of it."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec import json
from msgspec.structs import replace

from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.log.gate_reports import reported
from anabranch_spark.expectations import Report, Status
from anabranch_spark.gate.message import BYTES_MAX, message

REPORT = Report(
    verdict=Status.PASSED,
    reason="all 3 expectations pass",
    log="orders--repriced",
    log_id=2,
    parent="orders",
    fork_point=7,
    start=0,
    end=10,
    own_records=3,
    judged_at="2026-07-01T12:00:00Z",
)


def as_the_operator_reads_it(text: bytes) -> int | None:
    ended = {"name": "gate", "state": {"terminated": {"message": text.decode()}}}
    body = {"status": {"containerStatuses": [ended]}}
    pod = Observed(ref=Ref("Pod", "shop", "gate-x"), uid="u", version=1, body=body)
    return reported([pod])


def test_a_pass_reports_its_count_and_nothing_else() -> None:
    assert message(REPORT) == b'{"ownRecords":3}'
    assert as_the_operator_reads_it(message(REPORT)) == 3
    assert as_the_operator_reads_it(message(replace(REPORT, own_records=0))) == 0


def test_a_refusal_says_its_reason() -> None:
    text = message(replace(REPORT, verdict=Status.FAILED, reason="1 of 3 expectations fail: a"))
    assert json.decode(text) == {
        "ownRecords": 3,
        "verdict": "failed",
        "reason": "1 of 3 expectations fail: a",
    }


def test_what_couldnt_be_judged_reports_no_count() -> None:
    text = message(replace(REPORT, verdict=Status.UNKNOWN, reason="the service is away"))
    assert json.decode(text) == {"verdict": "unknown", "reason": "the service is away"}
    assert as_the_operator_reads_it(text) is None


@given(st.text(), st.sampled_from(Status), st.integers(0, 1 << 53), st.integers(1, 30))
def test_no_message_is_cut(reason: str, verdict: Status, own: int, times: int) -> None:
    found = replace(REPORT, verdict=verdict, reason=reason * 40 * times, own_records=own)
    text = message(found)
    assert len(text) <= BYTES_MAX
    assert ("ownRecords" in json.decode(text)) == (verdict is not Status.UNKNOWN)
