"""Appends to an Erwin log: acknowledged when all members hold them, each once in the log."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.client.erwin.world import World, acknowledged, ready

from anabranch.client.erwin.pledge import Pledge
from anabranch.core.errors import (
    AnabranchError,
    DeadlineExceeded,
    OutcomeUnknown,
    QuotaExceeded,
    StaleView,
    Unavailable,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.producers import SEQUENCE_SPACE


@pytest.mark.parametrize("mode", ["m", "st"])
def test_an_append_is_acknowledged_when_the_last_member_holds_it(mode: str) -> None:
    world = ready(mode)
    pledge = world.append(b"x")
    world.flow(but="q1")
    assert pledge.outcome is None
    world.flow()
    assert acknowledged(pledge)
    assert world.values() == [b"first"]


def test_a_lost_answer_is_no_second_append() -> None:
    world = ready()
    pledge = world.append(b"x")
    world.arrive("q0", 9)
    world.snap("q0")
    world.settle(3)
    assert acknowledged(pledge)
    assert world.values() == [b"first", b"x"]


def test_a_batch_of_a_view_that_has_ended_is_sent_again_under_its_id() -> None:
    world = ready()
    pledge = world.append(b"x")
    sent_as = pledge.id
    world.arrive("q1", 9)
    world.change_view("q1", ["q1", "q2"])
    world.settle(3)
    assert pledge.outcome == sent_as
    assert world.values() == [b"first", b"x"]


def test_what_came_only_to_a_member_that_is_gone_is_in_the_next_view_once() -> None:
    world = ready()
    pledge = world.append(b"x")
    world.arrive("q0", 9)
    world.change_view("q1", ["q1", "q2"])
    world.settle(3)
    assert acknowledged(pledge)
    assert world.values() == [b"first", b"x"]


def test_the_next_view_is_found_soon_however_long_a_member_was_away() -> None:
    world = ready(view_ms=20)
    world.nodes["q0"].refusing = True
    world.snap("q0")
    pledge = world.append(b"x")
    world.flow()
    for _ in range(200):
        world.pass_ms(10)
        world.flow()
    assert pledge.outcome is None
    world.change_view("q1", ["q1", "q2"])
    for name in ("q1", "q2"):
        world.learn(name)
    # Every node may be asked once, after a pause each, before one that knows the view is.
    world.pass_ms(20 * (len(world.nodes) + 1))
    world.flow()
    world.pass_ms(20)
    world.flow()
    assert acknowledged(pledge)


def test_records_gather_while_the_window_is_full() -> None:
    world = ready(batches_in_flight_max=2)
    pledges = [world.append(f"{i}".encode()) for i in range(6)]
    assert [pledge.count for pledge in dict.fromkeys(pledges)] == [1, 1, 4]
    world.settle(3)
    assert all(map(acknowledged, pledges))
    assert world.values() == [b"first", b"0", b"1", b"2", b"3", b"4", b"5"]


def test_members_forget_what_nobody_asks_the_position_of() -> None:
    world = World(2, ("a", "b"))
    for i in range(20):
        pledge = world.append(f"{i}".encode())
        world.settle(2)
        world.session.appender.release(pledge)
    world.append(b"last")
    world.settle(2)
    member = world.leader.member
    assert member is not None
    assert len(member.known) <= 2


def test_a_position_that_may_be_asked_for_keeps_its_id_known() -> None:
    world = ready()
    wanted = world.append(b"x")
    world.settle(2)
    world.append(b"y")
    world.settle(2)
    member = world.leader.member
    assert member is not None
    assert wanted.id in member.known


def test_a_producer_that_was_forgotten_begins_anew() -> None:
    world = ready()
    world.forget_producers()
    pledge = world.append(b"x")
    world.settle(3)
    assert acknowledged(pledge)
    assert world.values() == [b"first", b"x"]


def test_a_lost_view_fails_what_cant_be_proved_and_nothing_else() -> None:
    world = ready(batches_in_flight_max=1)
    sent, waiting = world.append(b"sent"), world.append(b"waiting")
    world.arrive("q0", 9)
    world.change_view("q0", ["q0", "q1"], lost=True)
    world.settle(4)
    assert isinstance(sent.outcome, OutcomeUnknown)
    assert acknowledged(waiting)
    assert world.values() == [b"first", b"waiting"]


@pytest.mark.parametrize("mode", ["m", "st"])
def test_what_the_only_member_refused_is_appended_again_after_a_lost_view(mode: str) -> None:
    """A member in memory was restarted, and the client hears of the next view only afterwards."""
    world = World(1, ("a",), mode)
    world.append(b"first")
    world.settle(2)
    pledge = world.append(b"x")
    world.change_view("q0", ["q0"], lost=True)
    world.settle(4)
    assert acknowledged(pledge)
    assert world.values() == [b"first", b"x"]


def test_what_the_only_member_cannot_tell_of_is_unknown_after_a_lost_view() -> None:
    world = World(1)
    world.append(b"first")
    world.settle(2)
    pledge = world.append(b"x")
    world.nodes["q0"].unsure = True
    world.arrive("q0", 9)
    world.hear("q0", 9)
    world.change_view("q0", ["q0"], lost=True)
    world.settle(4)
    assert isinstance(pledge.outcome, OutcomeUnknown)
    assert world.values() == [b"first"]


def test_retry_unknown_appends_it_again_after_a_lost_view() -> None:
    world = ready()
    pledge = world.append(b"x", retry_unknown=True)
    world.arrive("q0", 9)
    world.change_view("q0", ["q0", "q1"], lost=True)
    world.settle(4)
    assert acknowledged(pledge)
    assert world.values() == [b"first", b"x"]


def test_an_append_whose_deadline_passes_says_who_did_not_answer() -> None:
    world = ready()
    pledge = world.append(b"x", timeout_ms=1_000)
    world.arrive("q0", 9)
    world.pass_ms(1_000)
    assert isinstance(pledge.outcome, OutcomeUnknown)
    assert "q1" in pledge.outcome.message


def test_an_append_that_was_never_sent_may_be_repeated() -> None:
    world = World()
    for node in world.nodes.values():
        node.refusing = True
    world.snap("q0")
    pledge = world.append(b"x", timeout_ms=1_000)
    world.pass_ms(1_000)
    assert isinstance(pledge.outcome, Unavailable)
    assert "no sequencing replica has told" in pledge.outcome.message


def test_a_member_that_cant_be_reached_is_named() -> None:
    world = ready()
    world.nodes["q1"].refusing = True
    world.snap("q1")
    pledge = world.append(b"x", timeout_ms=1_000)
    world.flow()
    for _ in range(20):
        world.pass_ms(50)
        world.flow()
    assert isinstance(pledge.outcome, OutcomeUnknown)
    assert "q1 can't be reached" in pledge.outcome.message


@pytest.mark.parametrize("mode", ["m", "st"])
def test_a_request_is_appended_once_whoever_repeats_it(mode: str) -> None:
    world = ready(mode)
    first = world.request("r", b"x", b"y")
    world.settle(2)
    again = world.request("r", b"x", b"y")
    world.settle(2)
    assert acknowledged(first)
    assert first.outcome == again.outcome
    assert world.values() == [b"first", b"x", b"y"]


def test_a_request_whose_deadline_passes_may_be_repeated_under_its_id() -> None:
    world = ready()
    pledge = world.request("r", b"x")
    world.arrive("q0", 9)
    world.pass_ms(10_000)
    assert isinstance(pledge.outcome, DeadlineExceeded)
    assert pledge.outcome.request_id == "r"


def test_a_new_identity_begins_before_sequences_wrap() -> None:
    world = ready()
    series = world.session.appender._series  # pyright: ignore[reportPrivateUsage]
    numbers = series._numbers  # pyright: ignore[reportPrivateUsage]
    numbers._next = SEQUENCE_SPACE - 2  # pyright: ignore[reportPrivateUsage]
    first, second = world.append(b"x"), world.append(b"y")
    assert first.id is not None
    assert second.id is not None
    assert (first.id.sequence, second.id.sequence) == (SEQUENCE_SPACE - 2, 0)
    assert first.id.producer != second.id.producer


def test_a_mistake_is_told_at_once() -> None:
    world = ready()
    pledge = world.append(b"x")
    line = world.nodes["q0"].line
    assert line is not None
    request, _ = world.nodes["q0"].inbox.pop()
    error = Unavailable("it", "not now")
    world.nodes["q0"].outbox.append((request, Refused.of(error)))
    world.hear("q0")
    assert pledge.outcome is None
    assert pledge.refusal is not None
    assert pledge.refusal.message == error.message


def refuse(world: World, node: str, error: AnabranchError) -> None:
    """Have one member refuse what came last."""
    request, _ = world.nodes[node].inbox.pop()
    world.nodes[node].outbox.append((request, Refused.of(error)))
    world.hear(node)


OVER = QuotaExceeded("audit", "append_records_per_s", 1, 9, 8_000)


def test_an_append_that_all_members_refuse_over_the_quota_is_certainly_not_in_the_log() -> None:
    world = ready(batches_in_flight_max=1)
    pledge, behind = (world.append(value, timeout_ms=1_000) for value in (b"x", b"y"))
    for node in ("q0", "q1"):
        assert pledge.outcome is None
        refuse(world, node, OVER)
    world.pass_ms(1_000)
    assert isinstance(pledge.outcome, QuotaExceeded)
    assert isinstance(behind.outcome, QuotaExceeded)


def test_an_append_that_one_member_took_before_others_were_over_the_quota_may_be_ordered() -> None:
    world = ready()
    pledge = world.append(b"x", timeout_ms=1_000)
    world.arrive("q0", 9)
    world.hear("q0")
    refuse(world, "q1", OVER)
    assert not world.nodes["q0"].inbox
    world.pass_ms(1_000)
    assert not world.nodes["q0"].inbox, "it waits as long as it is told"
    assert isinstance(pledge.outcome, OutcomeUnknown)
    assert isinstance(pledge.outcome.__cause__, QuotaExceeded)


def test_closing_fails_what_was_sent_with_its_outcome_unknown() -> None:
    world = ready(batches_in_flight_max=1)
    sent, waiting = world.append(b"x"), world.append(b"y")
    world.session.appender.close(Unavailable("this client", "it was closed"))
    assert isinstance(sent.outcome, OutcomeUnknown)
    assert isinstance(waiting.outcome, Unavailable)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 3)),
        st.tuples(st.just("request"), st.integers(0, 1)),
        st.tuples(st.just("arrive"), st.integers(0, 6)),
        st.tuples(st.just("hear"), st.integers(0, 6)),
        st.tuples(st.just("snap"), st.integers(0, 6)),
        st.tuples(st.just("refuse"), st.integers(0, 2)),
        st.tuples(st.just("view"), st.integers(0, 17)),
        st.tuples(st.just("order"), st.integers(1, 3)),
        st.tuples(st.just("learn"), st.integers(0, 2)),
        st.tuples(st.just("forget"), st.just(0)),
        st.tuples(st.just("flow"), st.just(0)),
        st.tuples(st.just("time"), st.integers(1, 700)),
    ),
    max_size=60,
)


def play(world: World, steps: list[tuple[str, int]]) -> list[tuple[bytes, Pledge]]:
    """Perform the steps; every record that was appended is returned, with its pledge."""
    made: list[tuple[bytes, Pledge]] = []
    names = list(world.nodes)
    for number, (what, which) in enumerate(steps):
        name = names[which % len(names)]
        match what:
            case "append":
                value = f"{number}".encode()
                retry_unknown = which == 3
                made.append((value, world.append(value, 5_000, retry_unknown=retry_unknown)))
            case "request":
                made.append(
                    (f"r{which}".encode(), world.request(f"r{which}", f"r{which}".encode()))
                )
            case "arrive":
                world.arrive(name, 2)
            case "hear":
                world.hear(name, 2)
            case "snap":
                world.snap(name)
            case "refuse":
                world.nodes[name].refusing = not world.nodes[name].refusing
            case "view":
                members = world.directory.members
                kept = members[which % len(members)]
                others = [f"q{i}" for i in range(3) if f"q{i}" != kept]
                world.change_view(kept, [kept, others[which % 2]], lost=which == 17)
            case "order":
                world.order(which)
            case "learn":
                world.learn(name)
            case "flow":
                world.flow()
            case "forget":
                # Producers are forgotten when they were silent for longer than appends are tried.
                if all(pledge.outcome is not None for _, pledge in made):
                    world.forget_producers()
            case _:
                world.pass_ms(which)
    return made


@pytest.mark.parametrize("mode", ["m", "st"])
@given(steps=STEPS)
def test_no_acknowledged_append_is_lost_and_none_is_there_twice(
    mode: str, steps: list[tuple[str, int]]
) -> None:
    """Whatever is lost on the way, and whenever views change."""
    lossless = [each for each in steps if each != ("view", 17)]
    world = ready(mode, batches_in_flight_max=4)
    made = play(world, lossless)
    world.settle()
    found = Counter(world.values())
    places = {value: place for place, value in enumerate(world.values())}
    order: list[int] = []
    for value, pledge in made:
        outcome = pledge.outcome
        assert outcome is not None, "every append ends by its deadline"
        if acknowledged(pledge):
            assert found[value] == 1, (value, "acknowledged")
            if not pledge.request_id:
                order.append(places[value])
        elif isinstance(outcome, OutcomeUnknown | DeadlineExceeded):
            assert found[value] <= (2 if pledge.retry_unknown else 1)
        else:
            assert isinstance(outcome, AnabranchError)
            assert not isinstance(outcome, StaleView)
            assert found[value] == 0 or pledge.request_id, (value, outcome)
    if mode == "m":
        assert order == sorted(order), "one client's appends are in the order in which it made them"


@given(steps=STEPS)
def test_a_lost_view_loses_records_and_repeats_none(steps: list[tuple[str, int]]) -> None:
    world = ready(batches_in_flight_max=4)
    made = play(world, steps)
    world.settle()
    found = Counter(world.values())
    for value, pledge in made:
        assert pledge.outcome is not None
        if not pledge.retry_unknown and not pledge.request_id:
            assert found[value] <= 1
