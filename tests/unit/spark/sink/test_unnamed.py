"""Which writers without a name a log may forget."""

from collections.abc import Sequence

from anabranch import WriterState
from anabranch_spark.sink.options import UNNAMED
from anabranch_spark.sink.unnamed import BEGUN_MS, KEPT_MAX, PARTS_MAX, TASK_MS, to_release

NOW = 1_800_000_000_000
OWN = f"{UNNAMED}own"


def state(name: str, age_ms: int, *, complete: int = 0, parts: int = 1) -> WriterState:
    return WriterState(name, complete, [(part, 1) for part in range(parts)], [], NOW - age_ms)


def released(*known: WriterState) -> Sequence[str]:
    return to_release([*known, state(OWN, 0)], OWN)


def test_writers_with_a_name_are_never_released() -> None:
    named = ("run-tuesday", "nightly", "spark-6d7b1e42", "own")
    assert not released(*(state(name, 100 * BEGUN_MS) for name in named))


def test_a_write_that_is_done_is_remembered_while_a_task_of_it_may_run() -> None:
    young, old = f"{UNNAMED}young", f"{UNNAMED}old"
    assert released(state(young, TASK_MS - 1), state(old, TASK_MS)) == [old]


def test_a_write_that_goes_on_is_remembered_and_one_whose_driver_has_died_is_not() -> None:
    young, old = f"{UNNAMED}young", f"{UNNAMED}old"
    begun = (state(young, BEGUN_MS - 1, complete=-1), state(old, BEGUN_MS, complete=-1))
    assert released(*begun) == [old]


def test_many_writes_in_an_hour_leave_room_for_others() -> None:
    """The oldest go first, by number and by parts."""
    many = [state(f"{UNNAMED}{nth}", nth) for nth in range(KEPT_MAX + 3)]
    assert released(*many) == [f"{UNNAMED}{nth}" for nth in range(KEPT_MAX, KEPT_MAX + 3)]
    large = [state(f"{UNNAMED}{nth}", nth, parts=PARTS_MAX // 2) for nth in range(4)]
    assert released(*large) == [f"{UNNAMED}2", f"{UNNAMED}3"]


def test_the_write_itself_stays() -> None:
    assert not to_release([state(OWN, 100 * BEGUN_MS, parts=2 * PARTS_MAX), state("x", 0)], OWN)
