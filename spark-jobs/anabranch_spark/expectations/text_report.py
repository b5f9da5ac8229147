"""A report for a terminal."""

from collections.abc import Iterator

from anabranch_spark.expectations.outcome import Report, Result, Status
from anabranch_spark.expectations.words import count, shown

_MARKS = {Status.PASSED: "pass", Status.FAILED: "FAIL", Status.UNKNOWN: "????"}
_NAME_CHARS_MAX = 60


def text(report: Report) -> str:
    """Without colours, so that logs can hold it; values of strangers move no cursor."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    own = count(report.own_records, "record")
    if report.log_id:  # otherwise nothing is known of the fork
        where = shown(report.log)
        if report.parent:
            where += f", a fork of {shown(report.parent)} at {report.fork_point}"
        yield f"{where}: {own} of its own, judged at {shown(report.judged_at)}"
    names = [shown(each.name, _NAME_CHARS_MAX) for each in report.results]
    width = max((len(name) for name in names), default=0)
    for name, each in zip(names, report.results, strict=True):
        yield f"  {_MARKS[each.status]}  {name:<{width}}  {shown(each.reason, 300)}"
        yield from _samples(each)
    yield f"{report.verdict.value}: {shown(report.reason, 1_000)}"
    if report.promoted:
        yield f"promoted with exactly these {own}"


def _samples(result: Result) -> Iterator[str]:
    for each in result.samples:
        yield f"          at position {each.position}: {shown(each.value)}"
