"""A plan lives for as long as a task reads, and no longer than its lease afterwards."""

import threading

import anabranch
from anabranch_spark.source import lease
from anabranch_spark.source.lease import Renewal


def test_a_plan_is_renewed_at_once_and_again_until_the_task_is_done(
    log: anabranch.Log, service: anabranch.Service
) -> None:
    log.append(b"x")
    with log.plan_scan(lease=600) as plan:
        renewals = list[int]()
        often = threading.Event()

        class Counting(anabranch.ScanPlan):
            def renew(self, lease: float = 0, *, timeout: float | None = None) -> anabranch.Plan:
                renewed = plan.renew(lease, timeout=timeout)
                renewals.append(renewed.expires)
                if len(renewals) == 3:
                    often.set()
                return renewed

        counting = Counting.__new__(Counting)
        with Renewal(counting, 0.4):
            assert often.wait(60)
        done = len(renewals)
        assert not [each for each in threading.enumerate() if each.name == "anabranch-lease"]
        assert len(renewals) == done


def test_renewals_end_with_their_plan(log: anabranch.Log) -> None:
    log.append(b"x")
    plan = log.plan_scan()
    plan.end()
    with Renewal(plan, 4 * lease.RENEWALS):
        (thread,) = [each for each in threading.enumerate() if each.name == "anabranch-lease"]
        thread.join(60)
        assert not thread.is_alive()
