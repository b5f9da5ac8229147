"""Alarms against a list that is sorted each time, with a driver whose timer comes when it likes."""

from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.core import alarms as module
from anabranch.core.alarms import Alarm, Alarms
from anabranch.core.machine import Effect, SetTimer
from anabranch.core.types import MS

steps = st.lists(
    st.tuples(
        st.sampled_from(["after", "after", "cancel", "wait", "ring"]),
        st.integers(0, 20),
        st.booleans(),
    ),
    max_size=60,
)


class Table:
    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self.alarms = Alarms(self.effects)
        self.due: list[tuple[int, int, Alarm]] = []
        self.rung: list[int] = []
        self.expected: list[int] = []
        self._numbers = 0

    def set(self, delay_ms: int, *, again: bool) -> None:
        """`again`: when it rings it sets another one, at once."""
        number = self._numbers
        self._numbers += 1

        def ring() -> None:
            self.rung.append(number)
            if again:
                self.set(delay_ms + 1, again=False)

        alarm = self.alarms.after(delay_ms, ring)
        self.due.append((self.alarms.now + delay_ms * MS, number, alarm))

    @property
    def timer(self) -> int | None:
        timers = [each.at for each in self.effects if isinstance(each, SetTimer)]
        return timers[-1] if timers else None

    def ring(self) -> None:
        now = self.alarms.now
        ready = sorted(each[:2] for each in self.due if each[0] <= now)
        self.due = [each for each in self.due if each[0] > now]
        self.expected += [number for _, number in ready]
        self.alarms.ring()


@settings(max_examples=150)
@given(steps)
def test_each_rings_once_in_order_and_none_that_was_cancelled(
    steps: list[tuple[str, int, bool]],
) -> None:
    table = Table()
    for what, amount, again in steps:
        match what:
            case "after":
                table.set(amount, again=again)
            case "cancel" if table.due:
                at = amount % len(table.due)
                _, _, alarm = table.due.pop(at)
                alarm.cancel()
                alarm.cancel()
            case "wait":
                table.alarms.now += amount * MS
            case "ring":
                table.ring()
            case _:
                pass
        assert table.rung == table.expected
        if table.due:
            first = min(at for at, _, _ in table.due)
            assert table.timer is not None
            assert table.timer <= first, "the driver comes in time for the next"


def test_a_million_cancelled_alarms_are_swept_out() -> None:
    """Each append sets and cancels one: they must not wait for their time in memory."""
    alarms = Alarms([])
    kept = [alarms.after(5_000_000, lambda: None) for _ in range(10)]
    for _ in range(20_000):
        alarms.after(1_000_000, lambda: None).cancel()
    assert len(alarms._heap) < 2 * (module._SWEEP_FROM + len(kept)) + 10
    rung: list[int] = []
    alarms.after(1, lambda: rung.append(1))
    alarms.now = MS
    alarms.ring()
    assert rung == [1]


def test_how_late_the_timer_is_tells_how_long_the_machine_stood_still() -> None:
    alarms = Alarms([])
    assert alarms.overdue == 0
    alarms.after(10, lambda: None)
    alarms.now = 10 * MS
    assert alarms.overdue == 0
    alarms.now = 35 * MS
    assert alarms.overdue == 25 * MS
    alarms.ring()
    assert alarms.overdue == 0
