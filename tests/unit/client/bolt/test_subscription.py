"""Subscriptions through the client's machine: every final record once, in order (AgileLog, 4.1)."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.client.bolt.world import World

from anabranch.client.bolt.subscription import Subscription, size_of
from anabranch.client.session.effects import Ended, Left, Taken
from anabranch.core.bolt.protocol.messages import Confirmed, Delivered, Failed, Subscribe
from anabranch.core.errors import BadFrame, Overloaded, Squashed, Unavailable
from anabranch.core.errors.refused import Refused
from anabranch.core.records.origins import Run
from anabranch.core.records.record import Record, encode
from anabranch.core.types import LogId
from anabranch.core.wire.session import Cancel, Credit


def delivered(first: int, count: int, *, speculative: bool = False, size: int = 0) -> Delivered:
    batch = encode([Record(b"x" * size)] * count, now=1)
    return Delivered([Run(first, count, 0, LogId(1), first, len(batch))], [batch], speculative)


def taken(world: World, subscription: Subscription) -> list[object]:
    """What the application gets: (first, end) of records, confirmations and failures."""
    events: list[object] = []
    while subscription.news:
        news = subscription.news.popleft()
        world.step(Taken(subscription, size_of(news)))
        if isinstance(news, Delivered):
            events += [(run.first, run.first + run.count) for run in news.runs]
        else:
            events.append(news)
    return events


def test_records_are_given_in_order(world: World) -> None:
    subscription = world.subscribe(start=5)
    request, asked = world.take(Subscribe)
    assert asked == Subscribe(LogId(1), 5, True, 1 << 20)
    world.hear(request, delivered(5, 3), delivered(8, 1))
    assert taken(world, subscription) == [(5, 8), (8, 9)]


def test_after_a_break_it_goes_on_behind_what_is_final(world: World) -> None:
    subscription = world.subscribe()
    world.hear(world.take()[0], delivered(0, 3))
    world.cut()
    world.advance(30)
    world.connect()
    _, asked = world.take(Subscribe)
    assert asked.start == 3
    assert taken(world, subscription) == [(0, 3)]


def test_what_was_speculative_when_it_broke_is_failed_and_delivered_anew(world: World) -> None:
    subscription = world.subscribe()
    world.hear(
        world.take()[0],
        delivered(0, 2),
        delivered(2, 4, speculative=True),
        Confirmed(3),
    )
    world.cut()
    world.advance(30)
    world.connect()
    request, asked = world.take(Subscribe)
    assert asked.start == 3
    world.hear(request, delivered(3, 2))
    assert taken(world, subscription) == [(0, 2), (2, 6), Confirmed(3), Failed(3), (3, 5)]


def test_a_confirmed_record_is_never_given_again(world: World) -> None:
    subscription = world.subscribe()
    request, _ = world.take()
    world.hear(request, delivered(0, 4, speculative=True), Confirmed(4), Failed(2), Confirmed(4))
    batch = encode([Record(b"x")] * 6, now=1)
    world.hear(request, Delivered([Run(2, 4, 2, LogId(9), 12, len(batch))], [batch], False))
    events = taken(world, subscription)
    assert events == [(0, 4), Confirmed(4), (4, 6)]


def test_a_run_that_begins_too_early_is_cut_with_its_origin(world: World) -> None:
    subscription = world.subscribe(start=3)
    batch = encode([Record(b"x")] * 6, now=1)
    run = Run(2, 4, 1, LogId(9), 12, len(batch))
    world.hear(world.take()[0], Delivered([run], [batch], False))
    news = subscription.news.popleft()
    assert isinstance(news, Delivered)
    assert news.runs == [Run(3, 3, 2, LogId(9), 13, len(batch))]


def test_records_that_are_missing_end_it(world: World) -> None:
    subscription = world.subscribe()
    world.hear(world.take()[0], delivered(0, 1), delivered(2, 1))
    assert taken(world, subscription) == [(0, 1)]
    assert isinstance(subscription.error, BadFrame)
    world.take(Cancel)


def test_the_end_of_its_log_ends_it_after_what_came_before(world: World) -> None:
    subscription = world.subscribe()
    request, _ = world.take()
    world.hear(request, delivered(0, 1), delivered(1, 1, speculative=True))
    world.hear(request, Refused.of(Squashed("orders--what-if", "asked", "orders")))
    assert isinstance(subscription.error, Squashed)
    assert taken(world, subscription) == [(0, 1), (1, 2), Failed(1)]
    world.cut()
    world.advance(30)
    world.connect()
    assert not world.requests


def test_a_server_without_room_is_asked_again(world: World) -> None:
    world.subscribe()
    world.refuse(Overloaded("subscriptions", 1, "subscriptions_max"))
    assert not world.requests
    world.advance(30)
    world.take(Subscribe)


def test_credit_is_given_back_as_the_application_takes(make_world: Callable[..., World]) -> None:
    world = make_world(subscription_bytes=10_000)
    world.connect()
    subscription = world.subscribe()
    request, asked = world.take()
    assert asked.credit_bytes == 10_000
    world.hear(request, delivered(0, 1, size=5_000), delivered(1, 1, size=5_000))
    size = size_of(subscription.news[0])
    assert not world.requests
    subscription.news.popleft()
    world.step(Taken(subscription, size))
    _, credit = world.take(Credit)
    assert credit == Credit(request, size)
    world.cut()
    world.advance(30)
    world.connect()
    _, asked = world.take(Subscribe)
    assert asked.credit_bytes == 10_000 - size, "what isn't taken yet still counts"
    taken(world, subscription)


def test_all_credit_is_given_back_when_nothing_is_held(make_world: Callable[..., World]) -> None:
    world = make_world(subscription_bytes=100_000)
    world.connect()
    subscription = world.subscribe()
    world.hear(world.take()[0], delivered(0, 1))
    taken(world, subscription)
    world.take(Credit)


def test_one_who_holds_too_much_is_served_once_he_has_taken(
    make_world: Callable[..., World],
) -> None:
    world = make_world(subscription_bytes=1_000)
    world.connect()
    subscription = world.subscribe()
    world.hear(world.take()[0], delivered(0, 1, size=5_000))
    world.cut()
    world.advance(30)
    world.connect()
    assert not world.requests
    taken(world, subscription)
    _, asked = world.take(Subscribe)
    assert asked == Subscribe(LogId(1), 1, True, 1_000)


def test_leaving_cancels_it(world: World) -> None:
    subscription = world.subscribe()
    request, _ = world.take()
    world.step(Left(subscription))
    _, cancel = world.take(Cancel)
    assert cancel.request == request
    world.hear(request, delivered(0, 1))
    assert not subscription.news


def test_closing_ends_it(world: World) -> None:
    subscription = world.subscribe()
    world.step(Ended())
    assert isinstance(subscription.error, Unavailable)


@given(st.data())
def test_the_applications_view_becomes_the_log(
    make_world: Callable[..., World], data: st.DataObject
) -> None:
    """Whatever is decided, and whenever a connection breaks, following the events gives the log."""
    world = make_world()
    world.connect()
    final: list[int] = []
    """What is settled in the log; beyond it there is a guess, which a decision may replace."""
    guess: list[int] = []
    serial = 0
    subscription = world.subscribe()
    view: list[int] = []
    certain = 0
    request, sent = 0, 0

    def follow() -> None:
        nonlocal certain
        while subscription.news:
            news = subscription.news.popleft()
            world.step(Taken(subscription, size_of(news)))
            match news:
                case Delivered(runs, _, speculative):
                    assert runs[0].first == len(view)
                    # The model keeps a record's identity in its origin.
                    view.extend(r.origin_first + n for r in runs for n in range(r.count))
                    certain = certain if speculative else len(view)
                case Confirmed(up_to):
                    assert certain < up_to <= len(view)
                    certain = up_to
                case Failed(since):
                    assert certain <= since < len(view)
                    del view[since:]
        assert view[:certain] == final[:certain]

    def one(place: int, identity: int, speculative: bool) -> Delivered:
        batch = encode([Record(b"")], now=1)
        return Delivered([Run(place, 1, 0, LogId(1), identity, len(batch))], [batch], speculative)

    for _ in range(data.draw(st.integers(1, 25))):
        if not world.connected:
            world.advance(3_000)
            world.connect()
        while world.requests:
            number, message = world.requests.popleft()
            if isinstance(message, Subscribe):
                request, sent = number, message.start
        match data.draw(st.sampled_from(["append", "guess", "push", "confirm", "fail", "cut"])):
            case "append" if not guess:
                final.append(serial := serial + 1)
            case "append" | "guess":
                guess.append(serial := serial + 1)
            case "push" if sent < len(final + guess):
                world.hear(request, one(sent, (final + guess)[sent], sent >= len(final)))
                sent += 1
            case "confirm" if guess:
                final, guess = final + guess, []
                if sent:
                    world.hear(request, Confirmed(min(sent, len(final))))
            case "fail" if guess:
                world.hear(request, Failed(len(final)))
                sent = min(sent, len(final))
                guess = [serial := serial + 1, *guess]
            case "cut":
                world.cut()
            case _:
                pass
        if data.draw(st.booleans()):
            follow()
    follow()
    assert view == (final + guess)[: len(view)]
