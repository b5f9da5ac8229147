"""What holds of a client with any engine, whatever its servers say and whenever it is closed."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.client.session.table import DIRECTORY, LOG, PLAYS, Table

from anabranch.client.session.effects import Connected, Left
from anabranch.core.belfast.protocol import messages as of_belfast
from anabranch.core.bolt.protocol import messages as of_bolt
from anabranch.core.bolt.protocol.commands import Receipt
from anabranch.core.errors import (
    AnabranchError,
    BadFrame,
    BadRequest,
    BrokerDraining,
    DeadlineExceeded,
    Forbidden,
    NotPrimary,
    Overloaded,
    QuotaExceeded,
    RecordVoided,
    SequenceGap,
    ShardElsewhere,
    Squashed,
    Unauthorized,
    Unavailable,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.producers import REMEMBERED
from anabranch.core.records.origins import Run
from anabranch.core.records.record import Record, encode

engines = pytest.mark.parametrize("engine", sorted(PLAYS))


def everything(table: Table) -> None:
    """A call, an append and a subscription at once."""
    table.ask()
    table.append()
    table.subscribe()


def connected(table: Table) -> None:
    table.open_all()
    table.tell_directory()
    table.open_all()


@engines
@pytest.mark.parametrize("state", ["dialing", "asked", "greeted", "refused", "broken"])
def test_closing_tells_all_that_wait_and_leaves_nothing_open(engine: str, state: str) -> None:
    table = Table(engine)
    if state != "dialing":
        table.open_all()
    everything(table)
    if state in ("greeted", "refused", "broken"):
        connected(table)
    if state == "refused":
        for line, request, _ in table.sent:
            table.hear(line, request, Refused.of(Overloaded("requests", 1, "requests_max")))
    if state == "broken":
        for line in list(table.cables):
            table.cut(line)
    table.close()
    assert not table.busy
    assert table.session.pending_bytes == 0
    assert [type(each.error) for each in table.calls] in ([Unavailable], [DeadlineExceeded])
    assert all(isinstance(each.outcome, AnabranchError) for each in table.pledges)
    assert all(isinstance(each.error, Unavailable) for each in table.subscriptions)
    table.advance(120_000)


@engines
def test_a_closed_client_refuses_what_it_is_asked_and_dials_nobody(engine: str) -> None:
    table = Table(engine)
    connected(table)
    table.ask()
    table.close()
    call, subscription = table.ask(), table.subscribe()
    with pytest.raises(Unavailable, match="it was closed"):
        table.append()
    assert isinstance(call.error, Unavailable)
    assert isinstance(subscription.error, Unavailable)
    assert call in table.answered
    table.close()
    table.advance(120_000)
    assert not table.busy


@engines
def test_what_was_closed_before_it_was_dialed_is_never_dialed(engine: str) -> None:
    table = Table(engine)
    for line in list(table.cables):
        table.dialed(line, well=False)
    table.close()
    table.ask()
    table.advance(120_000)
    assert not table.busy


@engines
def test_a_subscription_that_is_left_says_so_to_whoever_still_waits(engine: str) -> None:
    """Another task, or another thread, may close what one iterates over."""
    table = Table(engine)
    connected(table)
    subscription = table.subscribe()
    table.step(Left(subscription))
    assert isinstance(subscription.error, Unavailable)
    assert "it was closed" in subscription.error.message
    table.step(Left(subscription))
    table.advance(120_000)


@engines
@pytest.mark.parametrize("most", [0, REMEMBERED + 1])
def test_more_in_flight_than_a_log_remembers_is_refused(engine: str, most: int) -> None:
    with pytest.raises(BadRequest, match="batches_in_flight_max"):
        Table(engine, batches_in_flight_max=most)


@engines
def test_what_stands_in_the_way_is_told_while_it_does(engine: str) -> None:
    table = Table(engine)
    table.ask(timeout_ms=60_000)
    assert isinstance(table.session.obstacle, Unavailable)
    for line in list(table.cables):
        if table.cables[line].dialing:
            table.dialed(line, well=False)
    assert "nobody listens" in table.session.obstacle.message
    while not table.session.servers_up:
        table.advance(100)
        table.open_all()
    assert table.session.obstacle is None


@engines
def test_who_is_let_in_nowhere_is_told_by_whom_and_why(engine: str) -> None:
    table = Table(engine)
    call = table.ask(timeout_ms=1_000)
    for _ in range(100):
        if call.finished:
            break
        for line, cable in list(table.cables.items()):
            if cable.dialing:
                cable.dialing, cable.connected = False, True
                table.step(Connected(line))
                table.hear(line, 0, Refused.of(Unauthorized()))
        table.advance(100)
    assert isinstance(call.error, Unauthorized)


@engines
def test_a_deadline_is_kept_though_nobody_answers(engine: str) -> None:
    table = Table(engine, silence_ms=100_000)
    connected(table)
    call, pledge = table.ask(timeout_ms=700), table.append(timeout_ms=700)
    connected(table)
    table.advance(699)
    assert not call.finished
    assert pledge.outcome is None
    table.advance(1)
    assert isinstance(call.error, DeadlineExceeded)
    assert call.error.facts["deadline_ms"] == 700
    assert "has changed nothing: ask again" in call.error.message, "it was a question"
    assert isinstance(pledge.outcome, AnabranchError)
    assert pledge.outcome.code == "outcome-unknown"


batch = encode([Record(b"1"), Record(b"2")], now=1)
positions = st.integers(-2, 5)
REFUSALS: list[AnabranchError] = [
    Overloaded("requests", 1, "requests_max"),
    QuotaExceeded("log", "records", 1, 1, -5_000),
    QuotaExceeded("log", "records", 1, 1, 50),
    BrokerDraining("b"),
    SequenceGap("log", 1, 0, 3),
    SequenceGap("log", 1, 3, 0),
    Squashed("log", "it was", "p"),
    Forbidden("u", "get", "logs", "log", "n"),
    NotPrimary("n", "s", "b:1"),
    ShardElsewhere("n", "s"),
    RecordVoided("s"),
    BadRequest("it", "no"),
]
any_engine = st.one_of(
    st.sampled_from(REFUSALS).map(Refused.of), st.just(BadFrame("it can't be read"))
)
runs = st.builds(Run, positions, st.integers(0, 3), st.integers(0, 3), positions, positions)
said = {
    "bolt": st.one_of(
        any_engine,
        st.just(PLAYS["bolt"].welcome),
        st.builds(of_bolt.Appended, positions),
        st.just(of_bolt.Appended(None, Receipt(LOG, 0, 0))),
        st.builds(
            of_bolt.Delivered, st.lists(runs, max_size=2), st.lists(st.just(batch)), st.booleans()
        ),
        st.builds(of_bolt.Confirmed, positions),
        st.builds(of_bolt.Failed, positions),
        st.just(of_bolt.Done()),
    ),
    "belfast": st.one_of(
        any_engine,
        st.just(PLAYS["belfast"].welcome),
        st.just(DIRECTORY),
        st.just(of_belfast.Done()),
        st.builds(of_belfast.Elsewhere, st.sampled_from(["", "a:1", "b:1", "c:1"])),
        st.builds(of_belfast.Confirmed, st.integers(0, 2), positions),
    ),
}


def play_out(table: Table, data: st.DataObject, answers: st.SearchStrategy[Any]) -> None:
    """Some steps of which each is anything that may happen."""
    for _ in range(data.draw(st.integers(5, 40))):
        lines = list(table.cables)
        line = data.draw(st.sampled_from(lines))
        cable = table.cables[line]
        match data.draw(st.integers(0, 8)):
            case 0:
                table.ask(data.draw(st.sampled_from([50, 500, 5_000])))
            case 1:
                table.append(timeout_ms=data.draw(st.sampled_from([50, 500, 5_000])))
            case 2:
                table.subscribe()
            case 3 if cable.dialing:
                table.dialed(line, well=data.draw(st.booleans()))
            case 4:
                table.cut(line)
            case 5:
                table.advance(data.draw(st.sampled_from([1, 40, 600])))
            case 6:
                table.tell_directory()
            case _:
                numbers = [0, 77, *cable.requests]
                table.hear(line, data.draw(st.sampled_from(numbers)), data.draw(answers))


@engines
@settings(max_examples=120)
@given(data=st.data())
def test_whatever_servers_say_everything_that_was_asked_ends_once(
    engine: str, data: st.DataObject
) -> None:
    """Also nonsense: a server that says it costs answers, and never the client."""
    table = Table(engine, silence_ms=400)
    if not _ended(table, lambda: play_out(table, data, said[engine])):
        table.advance(60_000)
    if table.session.ended is None:
        assert all(call.finished for call in table.calls)
        assert all(pledge.outcome is not None for pledge in table.pledges)
        table.close()
    assert set(map(id, table.answered)) == set(map(id, table.calls))
    assert set(map(id, table.settled)) == set(map(id, table.pledges))
    assert all(each.error is not None for each in table.subscriptions)
    assert table.session.pending_bytes == 0


def _ended(table: Table, play: Callable[[], None]) -> bool:
    """A server may refuse to let the client in at all, which ends its session."""
    try:
        play()
    except AnabranchError as error:
        if error is not table.session.ended:
            raise
        return True
    return False


@engines
@settings(max_examples=60)
@given(data=st.data())
def test_once_servers_are_well_again_all_that_is_asked_is_answered(
    engine: str, data: st.DataObject
) -> None:
    """Whatever was said before by servers that are wrong in a way that may pass."""
    passing = [each for each in REFUSALS if each.code in ("overloaded", "quota-exceeded")]
    answers = st.sampled_from(passing).map(Refused.of)
    table = Table(engine, silence_ms=400)
    play_out(table, data, answers)
    last, answer = table.ask(60_000), _answer(engine)
    for _ in range(600):
        if last.finished:
            break
        connected(table)
        for line, request, message in table.sent:
            if type(message) is type(last._message):
                table.hear(line, request, answer)
        table.advance(100)
    assert last.answer is answer


def _answer(engine: str) -> Any:
    return of_bolt.Done() if engine == "bolt" else of_belfast.Done()
