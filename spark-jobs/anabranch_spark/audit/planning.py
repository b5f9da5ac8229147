"""Fix what of a log is audited, and ask the service what it keeps of that."""

from contextlib import ExitStack, suppress
from typing import NamedTuple

from anabranch import Log, ScanPlan
from anabranch.errors import OutOfRange, PlanOutdated
from anabranch_spark.audit.coverage import coverage_faults
from anabranch_spark.audit.judgement import Expected, contradiction
from anabranch_spark.audit.portions import portions

LEASE_S = 300.0
"""A wave is planned whole before it is read, and renewed from then on."""
ATTEMPTS = 5
"""A log that is trimmed while it is planned is planned anew."""


class Subject(NamedTuple):
    """A log that is being audited."""

    log: Log
    plan: ScanPlan
    expected: Expected


def planned(log: Log) -> Subject:
    """Plan first, so that everything named from here on stays in the store; then the sum, then the
    slices. Below the end, which is settled, no record moves, so all three are about the same ones.
    """
    for _ in range(ATTEMPTS - 1):
        with suppress(PlanOutdated, OutOfRange):
            return _planned(log)
    return _planned(log)


def _planned(log: Log) -> Subject:
    plan = log.plan_scan(lease=LEASE_S)
    with ExitStack() as failing:
        failing.callback(plan.end)
        subject = Subject(log, plan, _expected(log, plan))
        failing.pop_all()
    return subject


def _expected(log: Log, plan: ScanPlan) -> Expected:
    start, end = plan.description.start, plan.description.end
    kept = log.set_sum(start, end)
    slices = [each for page in plan.pages() for each in page]
    faults = coverage_faults(start, end, slices, log.name)
    return Expected(
        log=log.name,
        start=start,
        end=end,
        kept_sum=kept.sum,
        kept_records=kept.summed,
        unsummed=kept.unsummed,
        portions=portions(slices, kept.unsummed),
        coverage=[*faults, *contradiction(kept, start, end)],
    )
