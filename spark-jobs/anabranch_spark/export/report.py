"""What an export reports."""

import msgspec

from anabranch_spark.export.ranges import Range
from anabranch_spark.jobs.verdict import Verdict


class Written(msgspec.Struct, frozen=True):
    """One range, and where its records are."""

    start: int
    end: int
    where: str
    """The name of a file, the id of an Iceberg snapshot, the version of a Delta table."""

    @property
    def positions(self) -> Range:
        return Range(self.start, self.end)


class Report(msgspec.Struct):
    """The report of one run."""

    log: str
    form: str
    target: str
    verdict: Verdict = Verdict.UNKNOWN
    reason: str = ""
    """Why it isn't done."""
    log_id: int | None = None
    generation: int | None = None
    settled: int | None = None
    branch: str | None = None
    start: int | None = None
    """Where this run began: the first position that earlier runs hadn't exported."""
    end: int | None = None
    """Where it was to end. The next run begins there, or after the last of `written`."""
    records: int = 0
    """Those that this run wrote."""
    written: list[Written] = []

    @property
    def next(self) -> int | None:
        """The first position that isn't exported now."""
        return self.written[-1].end if self.written else self.start
