"""Calls and connections through the client's machine: asked until answered, done once (spec D4)."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.client.bolt.world import World

from anabranch.client.session.effects import Connected, Disconnected, Dropped, Ended, Heard
from anabranch.core.bolt.protocol.commands import Receipt
from anabranch.core.bolt.protocol.messages import (
    PROTOCOL_VERSION,
    ClientMessage,
    CreateLog,
    Guarded,
    Hello,
    Ping,
    Read,
    Redeem,
    Survey,
    Welcome,
)
from anabranch.core.bolt.protocol.queries import Census
from anabranch.core.errors import (
    BadFrame,
    DeadlineExceeded,
    Deposed,
    ForkBlocked,
    Overloaded,
    ReadBlocked,
    ReceiptPending,
    Unauthenticated,
    Unauthorized,
    Unavailable,
    UnknownLog,
    VersionMismatch,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.types import LogId
from anabranch.core.wire.session import Cancel

CENSUS = Census("c", 1, 0, 0, 0, 0, 0)


def test_nothing_is_asked_before_the_welcome(make_world: Callable[..., World]) -> None:
    world = make_world(token="secret", client="me")
    call = world.ask(Survey())
    world.dialing, world.connected = False, True
    world.step(Connected())
    request, hello = world.take(Hello)
    assert hello == Hello(PROTOCOL_VERSION, "me", "secret")
    assert not world.requests
    world.hear(request, Welcome(PROTOCOL_VERSION, "c", "s", 1, 1, 1))
    request, _ = world.take(Survey)
    world.hear(request, CENSUS)
    assert call.answer == CENSUS
    assert world.answered == [call]


def test_a_call_is_asked_again_under_the_same_request_id_on_the_next_connection(
    world: World,
) -> None:
    message = CreateLog("orders", b"0123456789abcdef")
    call = world.ask(message)
    world.take(CreateLog)
    world.cut()
    assert not call.finished
    world.advance(30)
    world.connect()
    request, again = world.take(CreateLog)
    assert again is message
    world.hear(request, CENSUS)
    assert call.answer is CENSUS


def test_what_changes_something_goes_under_the_guard_that_is_held_when_it_is_asked(
    world: World,
) -> None:
    message = CreateLog("orders", b"0123456789abcdef")
    world.session.guard("scope", 3)
    call = world.ask(message)
    world.session.guard("scope", 4)
    assert world.take(Guarded)[1] == Guarded("scope", 3, message)
    world.cut()
    world.advance(30)
    world.connect()
    request, again = world.take(Guarded)
    assert again == Guarded("scope", 3, message), "its turn was the earlier one"
    world.hear(request, Refused.of(Deposed("scope", 3)))
    assert isinstance(call.error, Deposed)
    world.ask(Survey())
    assert world.take(Survey)[1] == Survey()
    assert world.session.settings.guard == ("scope", 4)


def test_an_error_that_may_pass_is_tried_again_until_the_deadline(world: World) -> None:
    call = world.ask(Survey(), timeout_ms=200)
    world.refuse(Unavailable("the metadata", "no leader"))
    assert not call.finished
    tries = 1
    while not call.finished:
        if world.requests:
            tries += 1
            world.refuse(Overloaded("waits", 1, "waits_max"))
        world.advance(1)
    assert tries > 3
    assert isinstance(call.error, DeadlineExceeded), "the first try may have been done"
    assert isinstance(call.error.__cause__, Overloaded), "the last that stood in the way"


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (Survey(), "has changed nothing: ask again"),
        (CreateLog("orders", b"r" * 16), "may or may not have happened: repeat it"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_deadline_says_of_a_read_that_it_has_changed_nothing(
    world: World, message: ClientMessage, said: str
) -> None:
    call = world.ask(message, timeout_ms=200)
    world.advance(200)
    assert isinstance(call.error, DeadlineExceeded)
    assert said in call.error.message


def test_a_call_that_a_new_connection_repeats_is_answered_once(world: World) -> None:
    """The pauses that connections cut short are over for good."""
    busy = Overloaded("waits", 1, "waits_max")
    call = world.ask(Survey())
    for _ in range(7):
        while not world.requests:
            world.advance(1)
        world.refuse(busy)
    for answer in (Refused.of(busy), CENSUS):
        world.cut()
        while not world.dialing:
            world.advance(1)
        world.connect()
        world.hear(world.take(Survey)[0], answer)
    assert world.answered == [call]
    world.advance(5_000)
    assert world.answered == [call]
    assert not world.requests


def test_a_certain_refusal_is_what_a_deadline_tells(world: World) -> None:
    call = world.ask(Survey(), timeout_ms=50)
    while not call.finished:
        if world.requests:
            world.refuse(Overloaded("waits", 1, "waits_max"))
        world.advance(1)
    assert isinstance(call.error, Overloaded)


def test_other_errors_are_raised_at_once(world: World) -> None:
    call = world.ask(Survey())
    world.refuse(UnknownLog("orders"))
    assert isinstance(call.error, UnknownLog)
    assert not world.requests


@pytest.mark.parametrize(
    "error",
    [
        ForkBlocked("orders", "orders--what-if", 3),
        ReadBlocked("orders", 3, "orders--what-if"),
        ReceiptPending("orders", "orders--what-if"),
    ],
)
def test_what_an_undecided_fork_blocks_is_told_unless_one_waits_for_it(
    world: World, error: Any
) -> None:
    call = world.ask(Read(LogId(1), 3, 1, 1))
    world.refuse(error)
    assert call.error is not None
    assert call.error.code == error.code


def test_a_wait_goes_on_for_its_whole_time_and_asks_for_the_rest_of_it(world: World) -> None:
    call = world.ask(Redeem(Receipt(LogId(1), 0, 3), 1_000), timeout_ms=100, wait_ms=1_000)
    _, first = world.take(Redeem)
    assert first.wait_ms == 1_000
    world.cut()
    world.advance(400)
    world.connect()
    request, second = world.take(Redeem)
    assert 500 < second.wait_ms <= 600
    world.hear(request, Refused.of(ReceiptPending("orders", "orders--what-if")))
    world.advance(300)
    assert not call.finished
    request, third = world.take(Redeem)
    assert 500 < third.wait_ms < second.wait_ms
    world.advance(299)
    world.hear(request, Refused.of(ReceiptPending("orders", "orders--what-if")))
    assert isinstance(call.error, ReceiptPending)


def test_without_a_connection_a_deadline_says_so(make_world: Callable[..., World]) -> None:
    world = make_world()
    call = world.ask(Survey(), timeout_ms=100)
    world.dialing = False
    world.step(Disconnected("nobody listens"))
    world.advance(100)
    assert isinstance(call.error, Unavailable)
    assert "nobody listens" in call.error.message


def test_a_caller_that_leaves_has_its_request_cancelled(world: World) -> None:
    call = world.ask(Survey())
    request, _ = world.take(Survey)
    world.step(Dropped(call))
    _, cancel = world.take(Cancel)
    assert cancel.request == request
    world.hear(request, CENSUS)
    assert not call.finished
    world.cut()
    world.advance(30)
    world.connect()
    assert not world.requests


def test_an_answer_that_cant_be_read_fails_its_call_only(world: World) -> None:
    bad, good = world.ask(Survey()), world.ask(Survey())
    world.hear(world.take()[0], BadFrame("it is odd"))
    world.hear(world.take()[0], CENSUS)
    assert isinstance(bad.error, BadFrame)
    assert good.answer is CENSUS


@pytest.mark.parametrize("error", [Unauthorized(), VersionMismatch(9, PROTOCOL_VERSION)])
def test_a_server_that_wont_have_us_ends_the_session(
    make_world: Callable[..., World], error: Any
) -> None:
    world = make_world()
    call = world.ask(Survey())
    world.dialing, world.connected = False, True
    world.step(Connected())
    world.hear(world.take(Hello)[0], Refused.of(error))
    assert call.error is not None
    assert call.error.code == error.code
    assert world.ask(Survey()).error is call.error
    world.advance(60_000)
    assert not world.dialing


def test_what_is_shown_on_a_connection_goes_before_what_was_set(
    make_world: Callable[..., World],
) -> None:
    world = make_world(token="set")
    world.dialing, world.connected = False, True
    world.step(Connected(0, "from a file"))
    assert world.take(Hello)[1].token == "from a file"
    world = make_world(token="set")
    world.dialing, world.connected = False, True
    world.step(Connected())
    assert world.take(Hello)[1].token == "set"


def test_whose_token_has_lapsed_comes_again_with_another_but_only_if_there_may_be_one(
    make_world: Callable[..., World],
) -> None:
    lapsed = Unauthenticated("its time is over", "anabranch")
    for token, again in (("from a file", True), (None, False)):
        world = make_world()
        world.connect()
        world.cut()
        world.advance(60_000)
        assert world.dialing
        world.dialing, world.connected = False, True
        world.step(Connected(0, token))
        world.hear(world.take(Hello)[0], Refused.of(lapsed))
        world.advance(60_000)
        assert world.dialing is again


def test_a_token_that_never_was_good_ends_the_session(make_world: Callable[..., World]) -> None:
    world = make_world()
    call = world.ask(Survey())
    world.dialing, world.connected = False, True
    world.step(Connected(0, "from a file"))
    world.hear(world.take(Hello)[0], Refused.of(Unauthenticated("it is bad", "anabranch")))
    assert isinstance(call.error, Unauthenticated)


def test_a_server_without_room_is_tried_again(make_world: Callable[..., World]) -> None:
    world = make_world()
    world.dialing, world.connected = False, True
    world.step(Connected())
    world.take(Hello)
    world.hear(0, Refused.of(Overloaded("connections", 1, "connections_max")))
    assert not world.connected
    world.advance(30)
    assert world.dialing


def test_dialing_is_spaced_out_more_and_more(make_world: Callable[..., World]) -> None:
    world = make_world()
    pauses: list[int] = []
    for _ in range(10):
        assert world.dialing
        world.dialing = False
        world.step(Disconnected("nobody listens"))
        before = world.now
        while not world.dialing:
            world.advance(1)
        pauses.append((world.now - before) // 1_000_000)
    assert pauses[0] <= 11
    assert 500 <= pauses[-1] <= 1_001


def test_a_silent_server_that_owes_an_answer_is_probed_and_then_left(
    make_world: Callable[..., World],
) -> None:
    world = make_world(silence_ms=1_000)
    world.connect()
    world.ask(Read(LogId(1), 0, 1, 1))
    world.take(Read)
    world.advance(2_000)
    world.take(Ping)
    assert world.connected
    world.advance(1_000)
    assert not world.connected
    world.advance(30)
    world.connect()
    world.take(Read)


def test_a_sign_of_life_keeps_the_connection(make_world: Callable[..., World]) -> None:
    world = make_world(silence_ms=1_000)
    world.connect()
    world.ask(Read(LogId(1), 0, 1, 1))
    world.take(Read)
    for _ in range(10):
        world.advance(500)
        while world.requests:
            world.serve()
        while world.replies:
            world.deliver()
    assert world.connected


def test_a_server_that_owes_nothing_may_be_silent(make_world: Callable[..., World]) -> None:
    world = make_world(silence_ms=1_000)
    world.connect()
    world.advance(60_000)
    assert world.connected
    assert not world.requests


def test_nothing_is_heard_after_the_end(world: World) -> None:
    call = world.ask(Survey())
    request, _ = world.take(Survey)
    world.step(Ended())
    assert isinstance(call.error, Unavailable)
    world.step(Heard([(request, CENSUS)]))
    world.step(Disconnected("it broke"))
    assert call.answer is None
    assert not world.dialing
