"""The words of a history keep their meaning when they are stored, and say what is known."""

from typing import Any

import msgspec
import pytest

from anabranch.core.history.calls import (
    UNTOLD,
    AnyCall,
    Append,
    Confirmation,
    Create,
    Delete,
    Delivery,
    Failure,
    Fate,
    Final,
    Fork,
    History,
    Look,
    MarkCursor,
    Promote,
    Read,
    ReadCursor,
    Redeem,
    Squash,
    Stream,
    Trim,
    Verdict,
)
from anabranch.core.types import NEVER, Kind, LogId

ROOT, FORK = LogId(1), LogId(2)

CALLS: list[AnyCall] = [
    Create(client=1, log=ROOT, invoked=0, returned=1, verdict=Verdict.OK, name="root"),
    Fork(
        client=1,
        log=FORK,
        invoked=2,
        name="fork",
        parent=ROOT,
        kind=Kind.SEVERED,
        fork_point=3,
        past=2,
        lives=100,
        cascades=True,
    ),
    Append(client=1, log=ROOT, invoked=3, records=[1, 2], verdict=Verdict.REFUSED, code="x"),
    Read(client=1, log=ROOT, invoked=4, first=0, records=[1], origins=[(ROOT, 0)], tail=2),
    Look(client=1, log=ROOT, invoked=5, start=0, tail=2, settled=2),
    Promote(client=1, log=FORK, invoked=6, squashed=["other"]),
    Squash(client=1, log=FORK, invoked=7),
    Delete(client=1, log=ROOT, invoked=8),
    Trim(client=1, log=ROOT, invoked=9, before=1),
    Redeem(client=1, log=ROOT, invoked=10, records=[1], into=ROOT, position=0),
    MarkCursor(client=1, log=ROOT, invoked=11, name="c", position=1),
    ReadCursor(client=1, log=ROOT, invoked=12, name="c"),
    Stream(
        client=1,
        log=ROOT,
        invoked=13,
        start=0,
        pushes=[Delivery(1, 0, [1], speculative=True), Confirmation(2, 1), Failure(3, 1)],
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: type(call).__name__)
@pytest.mark.parametrize("form", [msgspec.json, msgspec.msgpack], ids=["json", "msgpack"])
def test_a_call_is_read_back_as_the_same_kind_with_the_same_facts(call: AnyCall, form: Any) -> None:
    back = form.decode(form.encode(History([call])), type=History)
    assert back.calls == [call]
    assert type(back.calls[0]) is type(call)


def test_finals_are_read_back_with_all_that_they_say() -> None:
    final = Final(
        log=FORK,
        name="fork",
        fate=Fate.PROMOTED,
        kind=Kind.CONTINUOUS,
        parent=ROOT,
        fork_point=3,
        start=1,
        tail=9,
        settled=5,
        promotable=True,
        records=[7],
        origins=[(ROOT, 2)],
        cursors={"c": 4},
        expired=True,
    )
    history = History([], [final], ended=99)
    assert msgspec.json.decode(msgspec.json.encode(history), type=History) == history


def test_a_kind_of_call_that_is_not_known_is_no_history() -> None:
    stored = msgspec.json.encode({"calls": [{"type": "wish", "client": 1}]})
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(stored, type=History)


def test_a_call_without_an_answer_may_have_happened_at_any_later_time() -> None:
    call = Squash(client=1, log=ROOT, invoked=5)
    assert (call.verdict, call.returned) == (Verdict.UNKNOWN, NEVER)
    assert (call.ok, call.possible) == (False, True)


@pytest.mark.parametrize(
    ("verdict", "ok", "possible"),
    [
        (Verdict.OK, True, True),
        (Verdict.UNKNOWN, False, True),
        (Verdict.REFUSED, False, False),
    ],
)
def test_only_a_refused_call_certainly_did_not_happen(
    verdict: Verdict, ok: bool, possible: bool
) -> None:
    call = Delete(client=1, log=ROOT, invoked=5, verdict=verdict)
    assert (call.ok, call.possible) == (ok, possible)


def test_no_log_has_the_id_of_a_log_that_nobody_was_told_of() -> None:
    assert UNTOLD < 0
    assert Redeem(client=1, log=ROOT, invoked=0, records=[]).into == UNTOLD
