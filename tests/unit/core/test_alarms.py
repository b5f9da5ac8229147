"""A machine's alarms: at their time, in the order in which they were set, not when cancelled."""

from anabranch.core.alarms import Alarms
from anabranch.core.machine import Effect, SetTimer
from anabranch.core.types import MS


def test_an_alarm_rings_at_a_time_finer_than_a_millisecond() -> None:
    effects: list[Effect] = []
    alarms = Alarms(effects)
    rung: list[str] = []
    alarms.at(1_500, lambda: rung.append("at"))
    assert effects == [SetTimer(Alarms.KEY, 1_500)]
    alarms.now = 1_499
    alarms.ring()
    assert rung == []
    alarms.now = 1_500
    alarms.ring()
    assert rung == ["at"]


def test_alarms_of_one_instant_ring_as_they_were_set_however_they_were() -> None:
    alarms = Alarms([])
    rung: list[int] = []
    alarms.after(2, lambda: rung.append(0))
    alarms.at(2 * MS, lambda: rung.append(1))
    alarms.after(2, lambda: rung.append(2)).cancel()
    alarms.at(MS, lambda: rung.append(3))
    alarms.now = 2 * MS
    alarms.ring()
    assert rung == [3, 0, 1]
