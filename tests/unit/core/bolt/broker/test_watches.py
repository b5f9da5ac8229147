"""What brokers hear of logs' moves: each listener the latest, none of it backwards."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.bolt.broker.parts import Bench

from anabranch.core.bolt.broker.watches import Watches
from anabranch.core.bolt.protocol.letters import Moved, Unwatch, Watch
from anabranch.core.types import LogId

LOG = LogId(1)
WATCH_MS = 100


def watching() -> tuple[Bench, Watches]:
    bench = Bench(watch_ms=WATCH_MS)
    return bench, Watches(bench.context)


def moved(version: int, *, after: int = -1, diverges: int = 5, log: LogId = LOG) -> Moved:
    return Moved(log, version, version, version, 0, diverges, after=after)


@settings(max_examples=120)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["listen", "leave", "hear", "hear", "anew", "wait"]),
            st.integers(0, 9),
        ),
        max_size=40,
    )
)
def test_a_listener_hears_of_every_move_that_is_new_and_of_no_older_one(
    steps: list[tuple[str, int]],
) -> None:
    bench, watches = watching()
    heard: dict[int, list[int]] = {}
    expected: dict[int, list[int]] = {}
    latest, anew = -1, False
    for what, much in steps:
        match what:
            case "listen":
                seen: list[int] = []
                serial = watches.listen(LOG, lambda each, seen=seen: seen.append(each.version))
                heard[serial] = seen
                expected[serial] = []
            case "leave" if heard:
                serial = list(heard)[much % len(heard)]
                watches.leave(LOG, serial)
                assert heard.pop(serial) == expected.pop(serial)
            case "hear":
                known = watches.latest(LOG)
                before = known.version if known else -1
                watches.moved(moved(much))
                watched = watches.latest(LOG) is not None
                if watched and (much > before or (much == before and anew)):
                    latest, anew = much, False
                    for each in expected.values():
                        each.append(latest)
            case "anew":
                anew = anew or watches.latest(LOG) is not None
                watches.ask_anew(LOG)
            case "wait":
                bench.advance(10 * much)
                if watches.latest(LOG) is None:
                    anew = False
            case _:
                pass
        assert heard == expected


def test_a_log_is_watched_once_and_a_little_longer_than_anybody_listens() -> None:
    bench, watches = watching()
    one = watches.listen(LOG, lambda _: None)
    other = watches.listen(LOG, lambda _: None)
    assert bench.told() == [Watch([(LOG, 0)])]
    watches.moved(moved(7))
    bench.advance(WATCH_MS)
    assert bench.told() == [Watch([(LOG, 7)])], "a lost message costs one interval"
    watches.leave(LOG, one)
    watches.leave(LOG, other)
    again = watches.listen(LOG, lambda _: None)
    assert bench.told() == []
    watches.leave(LOG, again)
    bench.advance(WATCH_MS)
    assert bench.told() == [Unwatch([LOG])]
    assert watches.latest(LOG) is None
    bench.advance(10 * WATCH_MS)
    assert bench.told() == []


def test_one_who_missed_a_move_takes_nothing_for_unchanged() -> None:
    """What diverges is counted from the move before: without that one, all of it may have."""
    _, watches = watching()
    seen: list[Moved] = []
    watches.listen(LOG, seen.append)
    watches.moved(moved(3, after=-1, diverges=5))
    watches.moved(moved(5, after=3, diverges=5))
    watches.moved(moved(9, after=7, diverges=5))
    assert [each.diverges for each in seen] == [5, 5, 0]


def test_a_new_leader_is_told_of_all_that_is_watched_and_how_far_it_was_heard() -> None:
    bench, watches = watching()
    for log in (1, 2, 3):
        watches.listen(LogId(log), lambda _: None)
    watches.moved(moved(4, log=LogId(2)))
    watches.ask_anew(LogId(3))
    bench.told()
    watches.repeat_all()
    assert bench.told() == [Watch([(LogId(1), 0), (LogId(2), 4), (LogId(3), 0)])]
    nobody = Watches(bench.context)
    nobody.repeat_all()
    assert bench.told() == []


def test_a_listener_may_leave_while_it_is_told() -> None:
    _, watches = watching()
    seen: list[str] = []

    def first(_: Moved) -> None:
        seen.append("first")
        watches.leave(LOG, serial)

    serial = watches.listen(LOG, first)
    watches.listen(LOG, lambda _: seen.append("second"))
    watches.moved(moved(1))
    watches.moved(moved(2))
    assert seen == ["first", "second", "second"]
