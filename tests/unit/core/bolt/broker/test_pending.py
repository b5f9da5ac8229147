"""Requests that wait: each ends once, at its time or when its log moves, and no more than may."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.bolt.broker.parts import Bench

from anabranch.core.askers import REQUEST_BITS, seat_number
from anabranch.core.bolt.broker.pending import Wait, Waits
from anabranch.core.bolt.broker.watches import Watches
from anabranch.core.bolt.protocol.letters import Moved
from anabranch.core.types import LogId

LOG = LogId(1)


def waiting(waits_max: int = 4) -> tuple[Bench, Watches, Waits]:
    bench = Bench(waits_max=waits_max, watch_ms=10_000)
    watches = Watches(bench.context)
    return bench, watches, Waits(bench.context, watches)


def moved(version: int) -> Moved:
    return Moved(LOG, version, version, version, 0, 0)


@settings(max_examples=120)
@given(
    st.lists(
        st.tuples(st.sampled_from(["begin", "sleep", "move", "wait", "drop"]), st.integers(1, 20)),
        max_size=40,
    )
)
def test_each_is_woken_or_too_late_once_and_room_is_kept_to(steps: list[tuple[str, int]]) -> None:
    """The model: who sleeps, which move wakes them, and when they have waited long enough."""
    bench, watches, waits = waiting()
    open_: dict[int, Wait] = {}
    asleep: dict[int, tuple[int, int]] = {}
    ends: dict[int, str] = {}
    token = version = elapsed = 0

    def ended(token: int, how: str) -> None:
        assert token in asleep
        assert token not in ends
        ends[token] = how

    for what, much in steps:
        match what:
            case "begin":
                token += 1
                wait = waits.begin(token)
                assert (wait is not None) == (len(open_) < 4)
                if wait is None:
                    ((refused, message),) = bench.replies()
                    assert (refused, message.code) == (token, "overloaded")
                else:
                    open_[token] = wait
            case "sleep":
                for one, wait in open_.items():
                    if one not in asleep:
                        wakes_at = version + 1 + much % 3
                        asleep[one] = wakes_at, elapsed + much
                        waits.sleep(
                            wait,
                            LOG,
                            wakes=lambda each, at=wakes_at: each.version >= at,
                            again=lambda one=one: ended(one, "woken"),
                            at_most_ms=much,
                            too_late=lambda one=one: ended(one, "late"),
                        )
                        break
            case "move":
                version += 1
                watches.moved(moved(version))
            case "wait":
                bench.advance(much)
                elapsed += much
            case "drop" if open_:
                one = list(open_)[much % len(open_)]
                waits.drop(one)
                waits.drop(one)
                del open_[one]
                asleep.pop(one, None)
                ends.pop(one, None)
            case _:
                pass
        for one, (wakes_at, late_at) in list(asleep.items()):
            due = version >= wakes_at or elapsed >= late_at
            assert (one in ends) == due
            if due:
                assert ends.pop(one) == ("woken" if version >= wakes_at else "late") or (
                    elapsed >= late_at and version >= wakes_at
                )
                del asleep[one]
                waits.end(open_.pop(one))
        assert len(waits) == len(open_)
        assert waits.tokens() == list(open_)


def test_what_has_moved_already_needs_no_sleep() -> None:
    _, watches, waits = waiting()
    watches.listen(LOG, lambda _: None)
    watches.moved(moved(5))
    wait = waits.begin(1)
    assert wait is not None
    woken: list[bool] = []
    waits.sleep(
        wait,
        LOG,
        wakes=lambda each: each.version >= 5,
        again=lambda: woken.append(True),
        at_most_ms=10,
        too_late=lambda: woken.append(False),
    )
    assert woken == [True]


def test_the_time_that_is_left_is_counted_from_the_requests_arrival() -> None:
    bench, _, waits = waiting()
    bench.advance(7)
    wait = waits.begin(1)
    assert wait is not None
    assert waits.left_ms(wait, 30) == 30
    bench.advance(12)
    assert waits.left_ms(wait, 30) == 18
    bench.advance(30)
    assert waits.left_ms(wait, 30) < 0


def test_whom_the_metadata_may_have_done_something_for_is_known() -> None:
    _, _, waits = waiting()
    one, other = waits.begin(1), waits.begin(2)
    assert one is not None
    assert other is not None
    other.in_doubt = True
    assert waits.in_doubt() == [2]
    waits.end(other)
    waits.end(other)
    assert waits.in_doubt() == []
    assert waits.tokens() == [1]


def test_one_client_leaves_places_for_the_requests_of_others() -> None:
    bench, _, waits = waiting(waits_max=8)
    bad, good = (seat_number(0, seat) << REQUEST_BITS for seat in (1, 2))
    begun = [waits.begin(bad | request) for request in range(8)]
    assert [wait is not None for wait in begun] == [True] * 4 + [False] * 4
    assert {message.code for _, message in bench.replies()} == {"overloaded"}
    assert waits.begin(good) is not None
    waits.drop(bad)
    waits.drop(bad | 1)
    assert waits.begin(bad) is not None, "a place that was given back is free again"
