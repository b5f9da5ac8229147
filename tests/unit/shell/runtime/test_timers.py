"""Timers against a model that looks through all of them every time."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from anabranch.shell.runtime.timers import Name, Timers

NAMES: list[Name] = [("a", "close"), ("a", "ring"), ("b", "close"), ("b", "ring")]


@dataclass
class Naive:
    """What is set, in the order in which it was set last."""

    pending: dict[Name, int] = field(default_factory=dict[Name, int])

    def set(self, name: Name, at: int) -> None:
        self.pending.pop(name, None)
        self.pending[name] = at

    def next(self) -> int | None:
        return min(self.pending.values(), default=None)

    def due(self, now: int) -> Name | None:
        at = self.next()
        if at is None or at > now:
            return None
        name = next(name for name, when in self.pending.items() if when == at)
        del self.pending[name]
        return name


steps = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.sampled_from(NAMES), st.integers(0, 9)),
        st.tuples(st.just("cancel"), st.sampled_from(NAMES), st.just(0)),
        st.tuples(st.just("due"), st.just(NAMES[0]), st.integers(0, 9)),
    ),
    max_size=60,
)


@given(steps)
def test_timers_fire_in_order_of_time_and_then_of_being_set(
    steps: list[tuple[str, Name, int]],
) -> None:
    timers, naive = Timers(), Naive()
    for what, name, time in steps:
        match what:
            case "set":
                timers.set(name, time)
                naive.set(name, time)
            case "cancel":
                timers.cancel(name)
                naive.pending.pop(name, None)
            case _:
                assert timers.due(time) == naive.due(time)
        assert timers.next() == naive.next()


def test_a_timer_that_is_moved_for_ever_keeps_no_memory() -> None:
    timers = Timers()
    for at in range(10_000):
        timers.set(("a", "close"), at)
    assert len(timers._heap) < 200
    assert timers.due(9_998) is None
    assert timers.due(9_999) == ("a", "close")
    assert timers.next() is None


def test_cancelling_what_is_not_set_changes_nothing() -> None:
    timers = Timers()
    timers.set(("a", "close"), 5)
    timers.cancel(("b", "close"))
    assert timers.next() == 5
