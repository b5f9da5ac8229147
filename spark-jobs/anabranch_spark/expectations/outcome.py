"""What was found of each expectation, and the verdict on all: only what was judged can pass."""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction

from msgspec import Struct

from anabranch_spark.expectations.suite import PARSED, Suite

REPORT_VERSION = 1
REASON_CHARS_MAX = 600
"""Of a whole report, so that a Kubernetes condition has room for it."""


class Status(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """It wasn't judged, whatever the reason."""


class Sample(Struct, frozen=True):
    """A record that misses an expectation."""

    position: int
    value: str
    """What it has there, shortened, and printable."""


class Bin(Struct, frozen=True):
    low: float
    high: float
    count: int


class Histogram(Struct, frozen=True, kw_only=True):
    """How the values of a ranged column are spread; approximate."""

    bins: tuple[Bin, ...]
    min: float | None = None
    """The bounds that were declared."""
    max: float | None = None
    times: bool = False
    """The numbers are seconds since 1970."""


class Result(Struct, frozen=True, kw_only=True):
    """What was found of one expectation."""

    name: str
    expect: str
    status: Status
    reason: str
    """One sentence."""
    judged: int | None = None
    """Records that it was held against."""
    misses: int | None = None
    at_least: float | None = None
    """The share of them that had to keep to it."""
    samples: tuple[Sample, ...] = ()
    histogram: Histogram | None = None


class Report(Struct, frozen=True, kw_only=True):
    """A whole judgement. Fields are only ever added within a version."""

    version: int = REPORT_VERSION
    verdict: Status
    reason: str
    log: str
    log_id: int
    parent: str
    fork_point: int
    start: int
    end: int
    """The positions that were read: from `start`, before `end`."""
    own_records: int
    """How many records of its own the fork has, as they were judged."""
    judged_at: str
    attempt: int = 1
    """How often the fork was judged, because it had moved."""
    promoted: bool = False
    results: tuple[Result, ...] = ()


class OfSuite(Struct, frozen=True, kw_only=True):
    """A verdict, its reason, and a result for each expectation of the suite."""

    verdict: Status
    reason: str
    results: tuple[Result, ...]


def keeps(judged: int, misses: int, at_least: float) -> bool:
    """Whether enough records keep to it. Exact: 0.99 of 100 is 99, and no record less."""
    assert 0 <= misses <= judged
    return judged - misses >= Fraction(str(at_least)) * judged


def conclude(suite: Suite, found: Sequence[Result]) -> OfSuite:
    """Pass only if each expectation has exactly one result, and that is a pass."""
    times = Counter(result.name for result in found)
    by_name = {result.name: result for result in found}
    results: list[Result] = []
    for name, kind in declared(suite).items():
        result = by_name.get(name)
        if result is None:
            result = unknown(name, kind, "it wasn't judged")
        elif times[name] > 1 or result.expect != kind:
            result = unknown(name, kind, "it was judged as something else, or more than once")
        results.append(result)
    strangers = by_name.keys() - declared(suite).keys()
    failed = [each.name for each in results if each.status is Status.FAILED]
    unjudged = [each.name for each in results if each.status not in (Status.PASSED, Status.FAILED)]
    if unjudged or strangers:
        verdict = Status.UNKNOWN
    else:
        verdict = Status.FAILED if failed else Status.PASSED
    shown = [each for each in results if each.status is not Status.PASSED]
    reason = _reason(verdict, shown, len(results))
    return OfSuite(verdict=verdict, reason=reason, results=tuple(results))


def declared(suite: Suite) -> dict[str, str]:
    """Every expectation's name and kind, that of parsing first."""
    kinds = {each.name: str(each.__struct_config__.tag) for each in suite.expectations}
    return {PARSED: PARSED} | kinds


def unknown(name: str, kind: str, why: str) -> Result:
    return Result(name=name, expect=kind, status=Status.UNKNOWN, reason=why)


def _reason(verdict: Status, shown: Sequence[Result], count: int) -> str:
    """Without values: whoever may see a fork's state needn't be allowed to read it."""
    if verdict is Status.PASSED:
        return f"all {count} expectations pass"
    failed = sum(each.status is Status.FAILED for each in shown)
    parts = [f"{failed} of {count} expectations fail"] if failed else []
    if len(shown) > failed:
        parts.append(f"{len(shown) - failed} of {count} couldn't be judged")
    text = " and ".join(parts) or "there are results of expectations that nobody declared"
    separator = ": "
    for number, each in enumerate(shown):
        addition = f"{separator}{each.name} ({each.reason})"
        if len(text) + len(addition) > REASON_CHARS_MAX - len("; and 000 more"):
            return f"{text}; and {len(shown) - number} more"
        text += addition
        separator = "; "
    return text
