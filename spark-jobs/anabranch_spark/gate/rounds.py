"""Judging, and promoting what was judged: again if the fork has moved between the two."""

from collections.abc import Callable

from msgspec.structs import replace

from anabranch.errors import ForkMoved
from anabranch_spark.expectations.outcome import Report, Status

TRIES = 5


def rounds(
    judge: Callable[[int], Report],
    promote: Callable[[int], object] | None,
    *,
    tries: int = TRIES,
    says: Callable[[str], object] = lambda _: None,
) -> Report:
    """The last report. `judge` gets the number of the attempt, from 1, and `promote` the number of
    records that were judged; without it nothing is promoted.
    """
    assert tries >= 1
    moved: list[str] = []
    report = judge(1)
    while promote is not None and report.verdict is Status.PASSED:
        try:
            promote(report.own_records)
        except ForkMoved as error:
            moved.append(f"{error.facts['found']} records after {error.facts['expected']}")
            says(f"the fork has moved: {moved[-1]}")
        else:
            return replace(report, promoted=True)
        if len(moved) == tries:
            reason = (
                f"the fork got records while it was judged, {tries} times ({'; '.join(moved)}): "
                "stop appending, and judge it again"
            )
            return replace(report, verdict=Status.UNKNOWN, reason=reason)
        report = judge(len(moved) + 1)
    return report
