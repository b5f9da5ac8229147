"""Statuses: conditions keep their transition times, and only changes are written."""

from anabranch.core.types import MS
from anabranch_operator.api.conditions import Condition, Reason, Type
from anabranch_operator.api.log import LogPhase, LogStatus
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.status import Said, conditions, document, stamp, write

LOG = Ref("Log", "demo", "orders")
EARLIER, NOW = 1_000_000 * MS, 2_000_000 * MS
READY = Said(Type.READY, True, Reason.SERVING, "it serves")


def log(status: LogStatus) -> Observed:
    return Observed(ref=LOG, uid="u", version=1, body={"status": document(status)})


def test_the_time_of_a_transition_is_kept_while_the_status_is_the_same() -> None:
    (before,) = conditions((), [READY], 1, EARLIER)
    (after,) = conditions([before], [Said(Type.READY, True, Reason.SERVING, "still")], 2, NOW)
    assert after.last_transition_time == stamp(EARLIER // MS)
    assert (after.message, after.observed_generation) == ("still", 2)


def test_a_changed_status_has_a_new_time() -> None:
    (before,) = conditions((), [READY], 1, EARLIER)
    (after,) = conditions([before], [Said(Type.READY, False, Reason.LOG_LOST)], 1, NOW)
    assert after.last_transition_time == stamp(NOW // MS)
    (unknown,) = conditions([before], [Said(Type.READY, None, Reason.LOG_LOST)], 1, NOW)
    assert unknown.status == "Unknown"


def test_a_status_that_is_so_already_isnt_written() -> None:
    status = LogStatus(phase=LogPhase.READY, tail=3, conditions=conditions((), [READY], 1, NOW))
    assert write(log(status), status) == ()


def test_only_counters_that_moved_may_wait() -> None:
    before, grown = LogStatus(tail=3), LogStatus(tail=4)
    (written,) = write(log(before), grown)
    assert written.cosmetic
    (written,) = write(log(before), LogStatus(phase=LogPhase.READY, tail=4))
    assert not written.cosmetic


def test_conditions_of_others_are_left_alone() -> None:
    status = LogStatus(conditions=conditions((), [READY], 1, NOW))
    foreign = Condition(
        type="Audited",
        status="True",
        reason="Done",
        message="",
        last_transition_time=stamp(0),
        observed_generation=1,
    )
    shown = LogStatus(conditions=[*status.conditions, foreign])
    assert write(log(shown), status) == ()


def test_a_time_after_the_last_year_is_written_as_the_last_one() -> None:
    assert stamp(10**17) == "9999-12-31T23:59:59Z"
