"""What a gate leaves for Kubernetes: its termination message, which the operator reads."""

import msgspec

from anabranch_spark.expectations.outcome import Report, Status

BYTES_MAX = 4_096
"""Kubernetes cuts what is longer, and half a report is no JSON."""


class Message(msgspec.Struct, rename="camel", omit_defaults=True):
    own_records: int | None = None
    """Promote the fork with exactly so many; only there if they were all judged."""
    verdict: str = ""
    reason: str = ""


def message(report: Report) -> bytes:
    """A count only with a verdict: whatever couldn't be judged mustn't look like a judgement."""
    own = report.own_records if report.verdict is not Status.UNKNOWN else None
    passed = report.verdict is Status.PASSED
    reason = "" if passed else report.reason
    verdict = "" if passed else report.verdict.value
    for length in (len(reason), 900, 300, 0):
        found = Message(own_records=own, verdict=verdict, reason=reason[:length])
        text = msgspec.json.encode(found)
        if len(text) <= BYTES_MAX:
            return text
    raise AssertionError("a count and a verdict have room")
