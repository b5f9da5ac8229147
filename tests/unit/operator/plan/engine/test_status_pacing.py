"""Counters-only status writes are spread over time; all other actions are performed at once."""

from anabranch.core.types import MS
from anabranch_operator.api.anabranch_names import LogId
from anabranch_operator.plan.engine.actions import ApplyStatus, Promote
from anabranch_operator.plan.engine.object_state import ObjectState
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.status_pacing import StatusPacer

REF = Ref("Fork", "demo", "f")
COUNTERS = ApplyStatus(ref=REF, uid="u", status={"tail": 1}, cosmetic=True)
PHASE = ApplyStatus(ref=REF, uid="u", status={"phase": "Ready"})
SECOND = 1_000 * MS


def pacer() -> StatusPacer:
    made = StatusPacer(object_ms=30_000, writes_per_s=10)
    made.restart(0)
    return made


def written(at: int) -> ObjectState:
    state = ObjectState()
    state.written_at = at
    return state


def test_an_object_shows_new_counters_no_sooner_than_after_its_pause() -> None:
    state = written(at=0)
    assert pacer().admit(state, (COUNTERS,), 10 * SECOND) == ()
    assert state.deferred_until == 30 * SECOND
    assert state.defers(29 * SECOND)
    assert not state.defers(30 * SECOND)


def test_nothing_else_waits_for_deferred_counters() -> None:
    state, promote = written(at=0), Promote(log=LogId(1))
    assert pacer().admit(state, (COUNTERS, promote), SECOND) == (promote,)
    assert pacer().admit(state, (PHASE,), SECOND) == (PHASE,)
    assert state.deferred_until is None


def test_objects_that_are_due_together_get_times_of_their_own() -> None:
    pace, now = pacer(), 60 * SECOND
    states = [written(at=0) for _ in range(3)]
    admitted = [pace.admit(each, (COUNTERS,), now) for each in states]
    assert admitted == [(COUNTERS,), (), ()]
    assert [each.deferred_until for each in states[1:]] == [now + 100 * MS, now + 200 * MS]


def test_an_object_keeps_the_time_that_was_reserved_for_it() -> None:
    pace, now = pacer(), 60 * SECOND
    first, second = written(at=0), written(at=0)
    pace.admit(first, (COUNTERS,), now)
    pace.admit(second, (COUNTERS,), now)
    assert pace.admit(second, (COUNTERS,), now + 50 * MS) == ()
    assert second.deferred_until == now + 100 * MS
    assert pace.admit(second, (COUNTERS,), now + 100 * MS) == (COUNTERS,)
