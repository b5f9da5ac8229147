"""One judgement of a fork, from its description to a report."""

from collections.abc import Callable
from datetime import UTC, datetime

from pyspark.sql import Column

import anabranch
from anabranch.errors import AnabranchError
from anabranch_spark.expectations.judge import Judgement, judge
from anabranch_spark.expectations.outcome import Report, Status
from anabranch_spark.expectations.suite import Suite
from anabranch_spark.gate.reading import Reader, appended_to, found, inherited_from
from anabranch_spark.gate.task import Found, Task, objection
from anabranch_spark.spark_failures import SPARK_FAILURES, cause

FAILURES = (AnabranchError, OSError, *SPARK_FAILURES)
"""What may go wrong with a service, a store or Spark: nothing is known of the data then."""

Says = Callable[[str], object]


class Gate:
    """Judges one fork, as often as it is asked to."""

    def __init__(
        self, service: anabranch.Service, reader: Reader, task: Task, suite: Suite, says: Says
    ) -> None:
        self._service, self._reader = service, reader
        self._task, self._suite, self._says = task, suite, says
        self._judged: anabranch.Log | None = None

    def judge(self, attempt: int) -> Report:
        """Never raises what a service or Spark may raise: then the verdict is unknown."""
        try:
            return self._judge(attempt)
        except FAILURES as error:
            return unjudged(self._task, cause(error), attempt=attempt)

    def promote(self, own_records: int) -> None:
        """Promote the fork that was judged last, and no other one that has got its name since: that
        may have as many records.
        """
        assert self._judged is not None, "nothing was judged"
        self._judged.promote(expect_own=own_records)

    def _log(self) -> anabranch.Log:
        return self._service.log(self._task.log, engine="bolt")

    def _judge(self, attempt: int) -> Report:
        """The fork is counted before it is read: what is appended later is in no report."""
        self._judged = log = self._log()
        before = found(log)
        if (reason := objection(self._task, before)) is not None:
            return unjudged(self._task, reason, attempt=attempt, known=before)
        self._says(f"judging {before.own_records:,} records of {self._task.log}")
        now = datetime.now(UTC)
        judgement = self._of(before, appended_to(before.id), now)
        if judgement.own_records != before.own_records:
            # Forks of this one were promoted into it, so that it has records of theirs.
            self._says("asking for the origins of what the fork inherited")
            judgement = self._of(before, self._not_inherited(before), now)
        after = found(self._log())
        if (reason := _incomplete(before, after, judgement)) is not None:
            return unjudged(self._task, reason, attempt=attempt, known=before)
        of_suite = judgement.of_suite
        return Report(
            verdict=of_suite.verdict,
            reason=of_suite.reason,
            log=self._task.log,
            log_id=before.id,
            parent=before.parent or "",
            fork_point=before.fork_point,
            start=before.start,
            end=before.tail,
            own_records=before.own_records,
            judged_at=_moment(now),
            attempt=attempt,
            results=of_suite.results,
        )

    def _of(self, before: Found, own: Column, now: datetime) -> Judgement:
        return judge(self._suite, self._reader.fork(self._task.log, before, own), now=now)

    def _not_inherited(self, before: Found) -> Column:
        assert before.parent is not None
        parent = self._service.log(before.parent, engine="bolt")
        return ~inherited_from([parent.id, *self._reader.inherited_origins(parent, before)])


def _incomplete(before: Found, after: Found, judgement: Judgement) -> str | None:
    """Why what was judged isn't what the service counts."""
    if after.id != before.id:
        return "another fork got its name while it was judged"
    if judgement.own_records != before.own_records:
        return (
            f"it has {before.own_records} records of its own, and {judgement.own_records} were "
            "found"
        )
    return None


def unjudged(task: Task, reason: str, *, attempt: int = 1, known: Found | None = None) -> Report:
    """A report that concludes nothing."""
    return Report(
        verdict=Status.UNKNOWN,
        reason=reason,
        log=task.log,
        log_id=known.id if known else 0,
        parent=(known.parent if known else task.parent) or "",
        fork_point=known.fork_point if known else task.fork_point or 0,
        start=known.start if known else 0,
        end=known.tail if known else 0,
        own_records=known.own_records if known else 0,
        judged_at=_moment(datetime.now(UTC)),
        attempt=attempt,
    )


def _moment(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
