"""The conversation with one server, in every engine's dialect."""

from collections.abc import Callable

import pytest
from tests.unit.client.session.stage import BACK_OFF_MS, Stage

from anabranch.client.session.effects import Dial, Transmit
from anabranch.core.errors import (
    AnabranchError,
    BadFrame,
    Overloaded,
    Unauthenticated,
    Unauthorized,
    Unavailable,
)
from anabranch.core.wire.session import Cancel


def test_nothing_is_said_before_the_welcome_but_hello(stage: Stage) -> None:
    stage.ask()
    assert [type(each) for each in stage.effects()] == [Dial]
    stage.line.connected()
    assert [type(each).__name__ for each in stage.sent()] == ["Hello"]
    stage.ask()
    assert stage.sent() == []
    stage.hear(0, stage.engine.welcome)
    assert stage.sent() == [stage.engine.question, stage.engine.question]
    assert stage.line.up


def test_a_connection_s_token_goes_before_the_settings(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(token="old")
    stage.line.dial()
    stage.line.connected("new")
    assert [each.token for each in stage.sent()] == ["new"]
    stage.line.broken("it broke")
    stage.line.dial()
    stage.line.connected()
    assert [each.token for each in stage.sent()] == ["old"]


def test_answers_reach_who_asked_and_nobody_else(stage: Stage) -> None:
    (first, one), (second, two) = stage.ask(), stage.ask()
    stage.connect()
    stage.hear(two, stage.engine.answer)
    assert (first.got, second.got) == ([], [stage.engine.answer])
    stage.line.unheard(one)
    stage.hear(one, stage.engine.answer)
    stage.hear(77, stage.engine.answer)
    assert first.got == []
    assert stage.line.up


def test_who_asks_no_more_has_the_server_spared(stage: Stage) -> None:
    _, waiting = stage.ask()
    stage.line.cancel(waiting)
    stage.connect()
    assert stage.sent()[1:] == []  # only hello
    _, sent = stage.ask()
    stage.line.cancel(sent)
    assert stage.sent() == [stage.engine.question, Cancel(sent)]


def test_a_broken_connection_tells_who_asked_whether_it_was_sent(stage: Stage) -> None:
    asked, _ = stage.ask()
    stage.connect()
    stage.line.broken("it broke")
    waiting, _ = stage.ask()
    stage.line.broken("nobody listens")
    assert (asked.losses, waiting.losses) == ([True], [False])
    assert stage.falls == [True, False]
    assert stage.commons.trouble == "host:1: nobody listens"


def test_a_line_without_back_off_is_dialed_when_somebody_asks(stage: Stage) -> None:
    stage.line.dial()
    stage.line.broken("nobody listens")
    stage.advance(5_000)
    stage.effects()
    stage.ask()
    assert [type(each) for each in stage.effects()] == [Dial]


@pytest.mark.parametrize("wanted", [True, False])
def test_after_a_back_off_a_line_is_dialed_if_it_is_wanted(
    make_stage: Callable[..., Stage], wanted: bool
) -> None:
    stage = make_stage(back_off_ms=BACK_OFF_MS)
    stage.wanted = wanted
    stage.line.dial()
    stage.effects()
    stage.line.broken("nobody listens")
    stage.line.dial()
    stage.advance(BACK_OFF_MS - 1)
    assert stage.effects() == []
    stage.advance(1)
    assert [type(each) for each in stage.effects()] == [Dial] * wanted
    assert stage.line.resting != wanted


def test_who_asks_during_a_back_off_is_served_when_it_is_over(
    make_stage: Callable[..., Stage],
) -> None:
    stage = make_stage(back_off_ms=BACK_OFF_MS)
    stage.line.dial()
    stage.line.broken("nobody listens")
    stage.effects()
    caller, request = stage.ask()
    assert stage.effects() == []
    stage.advance(BACK_OFF_MS)
    stage.connect()
    stage.hear(request, stage.engine.answer)
    assert caller.got == [stage.engine.answer]


def test_a_silent_server_that_owes_an_answer_is_probed_and_then_left(
    make_stage: Callable[..., Stage],
) -> None:
    stage = make_stage(silence_ms=100)
    caller, _ = stage.ask()
    stage.connect()
    stage.advance(100)
    stage.effects()
    stage.advance(100)
    assert stage.sent() == [stage.engine.dialect.probe]
    stage.advance(99)
    assert not stage.hung_up()
    stage.advance(1)
    assert stage.hung_up()
    assert caller.losses == [True]
    assert "silent for 200 ms" in stage.commons.trouble


def test_a_probe_that_is_answered_is_a_sign_of_life(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(silence_ms=100)
    stage.ask()
    stage.connect()
    stage.advance(200)
    probe = next(
        each.request
        for each in stage.effects()
        if isinstance(each, Transmit) and each.message == stage.engine.dialect.probe
    )
    for _ in range(3):
        stage.advance(60)
        stage.hear(probe, stage.engine.answer)
    assert stage.line.up


def test_a_server_that_owes_nothing_may_be_silent(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(silence_ms=100)
    stage.line.dial()
    stage.connect()
    stage.effects()
    stage.advance(1_000)
    assert stage.effects() == []


def test_a_server_that_takes_the_connection_and_says_nothing_is_left(
    make_stage: Callable[..., Stage],
) -> None:
    stage = make_stage(silence_ms=100)
    stage.line.dial()
    stage.line.connected()
    stage.advance(300)
    assert stage.hung_up()


@pytest.mark.parametrize("error", [Unauthenticated("it is wrong", "a"), Unauthorized()])
def test_a_server_that_lets_nobody_in_rejects(stage: Stage, error: AnabranchError) -> None:
    stage.line.dial()
    stage.line.connected()
    stage.refuse(0, error)
    assert [each.code for each in stage.rejections] == [error.code]


def test_a_lapsed_token_is_renewed_with_the_next_connection(stage: Stage) -> None:
    stage.line.dial()
    stage.connect("first")
    stage.line.broken("it broke")
    stage.line.dial()
    stage.line.connected("first")
    stage.refuse(0, Unauthenticated("it has expired", "a"))
    assert stage.rejections == []
    stage.line.dial()
    stage.connect("second")
    assert stage.line.up


@pytest.mark.parametrize(
    "error", [Overloaded("connections", 1, "connections_max"), Unavailable("it", "it stops")]
)
def test_a_refusal_that_may_pass_is_tried_again(stage: Stage, error: AnabranchError) -> None:
    stage.line.dial()
    stage.line.connected()
    stage.refuse(0, error)
    assert stage.rejections == []
    assert stage.falls == [False]


def test_what_is_no_welcome_ends_the_connection(stage: Stage) -> None:
    stage.line.dial()
    stage.line.connected()
    stage.hear(0, stage.engine.answer)
    assert stage.hung_up()
    assert "welcome was expected" in stage.commons.trouble


def test_a_server_of_another_cluster_is_left(stage: Stage) -> None:
    stage.stranger = "it belongs to another"
    caller, _ = stage.ask()
    stage.connect()
    assert stage.hung_up()
    assert stage.greetings == []
    assert caller.losses == [False]


def test_a_request_that_can_t_be_read_is_told_to_who_asked(stage: Stage) -> None:
    caller, request = stage.ask()
    stage.connect()
    stage.hear(request, BadFrame("torn"))
    assert [type(each) for each in caller.got] == [BadFrame]
    assert stage.line.up


def test_what_a_welcome_says_bounds_batches(stage: Stage) -> None:
    stage.line.dial()
    stage.connect()
    (greeting,) = stage.greetings
    assert (greeting.cluster, stage.commons.batch_bytes_max) == ("c", 1_000)
    assert stage.commons.batch_records_max == 10


def test_a_server_that_is_about_to_stop_is_left_and_let_alone(stage: Stage) -> None:
    caller, request = stage.ask()
    stage.connect()
    stage.line.leaving = "it drains"
    stage.hear(request, stage.engine.answer)
    assert stage.hung_up()
    assert stage.line.failures > 1
    assert caller.losses == [True]


def test_a_connection_that_nobody_uses_is_closed_and_opened_for_the_next_question(
    stage: Stage,
) -> None:
    stage.idle_after_ms = 10_000
    caller, request = stage.ask()
    stage.connect()
    stage.hear(request, stage.engine.answer)
    stage.line.unheard(request)
    stage.advance(9_000)
    assert not stage.hung_up()
    stage.advance(4_000)
    assert stage.hung_up()
    assert (stage.line.up, stage.line.resting, stage.line.failures) == (False, True, 0)
    assert stage.falls == [], "it didn't break"
    assert stage.commons.troubles == {}, "nothing stands in the way"
    other, again = stage.ask()
    assert [type(each) for each in stage.effects()] == [Dial]
    stage.connect()
    stage.hear(again, stage.engine.answer)
    assert (len(caller.got), len(other.got)) == (1, 1)


def test_a_connection_on_which_somebody_waits_isnt_idle(stage: Stage) -> None:
    stage.idle_after_ms = 1_000
    _, request = stage.ask()
    stage.connect()
    for _ in range(10):
        stage.advance(1_000)
        stage.hear(request, stage.engine.answer)
    assert stage.line.up, "a subscription hears something now and then"


def test_a_server_that_never_closes_idle_connections_keeps_them(stage: Stage) -> None:
    _, request = stage.ask()
    stage.connect()
    stage.line.unheard(request)
    stage.advance(200_000)
    assert stage.line.up
