"""Every error, with any facts, as its readers get it: a program here or across the wire, somebody
at a terminal, a script that reads JSON, and whoever speaks HTTP.
"""

import inspect
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.apps.http import advice as http
from anabranch.apps.http.problems import answer, problem
from anabranch.cli import advice as cli
from anabranch.cli.failure import Exit, exit_code, show
from anabranch.core.errors import (
    BY_CODE,
    AnabranchError,
    Damage,
    DeadlineExceeded,
    Fenced,
    Mistake,
    OutcomeUnknown,
    Refresh,
    Retry,
    UnknownLog,
    restore,
    reworded,
)
from anabranch.core.errors.refused import Refused

KINDS = (Retry, Refresh, Fenced, Mistake, Damage)
ERRORS = [kind for kind in BY_CODE.values() if kind not in (*KINDS, AnabranchError)]

words = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["{0}", "{log}", "%s", "\x1b[2Jgone", "line\nline", "\u202egnp", "\x00"]),
)
numbers = st.integers(-(1 << 62), 1 << 62)


def made(draw: st.DrawFn, kind: type[AnabranchError]) -> AnabranchError:
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    given = [draw(numbers if each.annotation in (int, "int") else words) for each in parameters]
    return kind(*given)


@st.composite
def of_kind(draw: st.DrawFn, kind: type[AnabranchError]) -> AnabranchError:
    return made(draw, kind)


errors = st.one_of([of_kind(kind) for kind in ERRORS])
facts = st.dictionaries(st.text(max_size=8), st.none() | words | numbers, max_size=4)


@settings(max_examples=150)
@given(errors)
def test_an_error_arrives_as_it_was_raised(error: AnabranchError) -> None:
    sent = msgspec.msgpack.encode(Refused.of(error))
    there = msgspec.msgpack.decode(sent, type=Refused).error()
    assert type(there) is type(error)
    assert (there.message, there.facts, str(there)) == (error.message, error.facts, str(error))
    again = Refused.of(there)
    assert again == Refused.of(error), "a gateway passes it on as it is"


@given(st.text(max_size=20), words, facts)
def test_what_another_version_says_is_an_error_of_ours(
    code: str, message: str, facts: dict[str, Any]
) -> None:
    """Whatever its code is called, and whether its facts are those that we know."""
    for each in (code, "unknown-log", "quota-exceeded", "deadline-exceeded", "forbidden"):
        error = restore(each, message, facts)
        assert isinstance(error, AnabranchError)
        assert str(error) == error.message == message
        for said in (cli.WORDS, http.WORDS):
            assert isinstance(reworded(error, said), str)
        assert error.request_id is None or isinstance(error.request_id, str)


@settings(max_examples=150)
@given(errors)
def test_an_error_at_a_terminal_is_a_line_that_moves_no_cursor(error: AnabranchError) -> None:
    with pytest.MonkeyPatch.context() as patch:
        told = _shown(patch, error, as_json=False)
    (line,) = told.splitlines()
    assert line.startswith("error: ")
    assert line.removeprefix("error: ").isprintable()


@settings(max_examples=150)
@given(errors, errors)
def test_an_error_as_json_is_one_document_with_its_facts(
    error: AnabranchError, cause: AnabranchError
) -> None:
    error.__cause__ = cause
    with pytest.MonkeyPatch.context() as patch:
        told = _shown(patch, error, as_json=True)
    assert told.isascii()
    document = json.loads(told)["error"]
    assert document["code"] == error.code
    assert document["facts"] == error.facts
    assert document["advice"] == error.advice
    assert document["because"] == reworded(cause, cli.WORDS)


def _shown(patch: pytest.MonkeyPatch, error: AnabranchError, *, as_json: bool) -> str:
    written: list[str] = []

    class Standard:
        def write(self, text: str) -> int:
            written.append(text)
            return len(text)

        def isatty(self) -> bool:
            return False

        def flush(self) -> None: ...

    patch.setattr("sys.stderr", Standard())
    show(error, as_json=as_json)
    return "".join(written)


def test_the_cause_comes_first() -> None:
    error, cause = DeadlineExceeded("append to orders", 30), UnknownLog("orders")
    error.__cause__ = cause
    with pytest.MonkeyPatch.context() as patch:
        first, second = _shown(patch, error, as_json=False).splitlines()
    assert first == f"error: {reworded(cause, cli.WORDS)}"
    assert second == f"  therefore: {error.message}"


@settings(max_examples=150)
@given(errors)
def test_an_error_over_http_is_a_problem_that_says_when_to_come_back(
    error: AnabranchError,
) -> None:
    told = problem(error, "it")
    assert (told.code, told.status, told.facts) == (error.code, error.status, error.facts)
    response = answer(error, "it")
    assert response.status_code == error.status
    assert json.loads(bytes(response.body))["detail"] == reworded(error, http.WORDS)
    assert ("retry-after" in response.headers) == isinstance(error, Retry)
    assert ("www-authenticate" in response.headers) == (error.status == 401)


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.code)
def test_a_script_tells_by_the_exit_code_whether_to_try_again(kind: type[AnabranchError]) -> None:
    error = restore(kind.code, "it", {})
    code = exit_code(error)
    assert (code is Exit.BLOCKED) == (error.advice == "retry")
    assert (code in (Exit.DAMAGE, Exit.BEHIND)) == isinstance(error, Damage)
    assert code is not Exit.OK


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.code)
def test_what_status_says_agrees_with_what_to_do(kind: type[AnabranchError]) -> None:
    """Proxies and libraries go by the status: they repeat 503 and 429, and never 4xx others."""
    if issubclass(kind, Mistake):
        assert 400 <= kind.status < 500
        assert kind.status not in (408, 425, 429)
    if issubclass(kind, Damage):
        assert kind.status >= 500
    if kind.status in (429, 503, 507):
        assert issubclass(kind, Retry) or kind.code == "broker-draining"


@given(words, st.integers(0, 1 << 40), st.none() | st.text(min_size=1, max_size=9))
def test_a_deadline_says_how_to_repeat_without_doing_it_twice(
    what: str, deadline_ms: int, request_id: str | None
) -> None:
    error = DeadlineExceeded(what, deadline_ms, request_id)
    assert error.request_id == request_id
    assert (f"request id {request_id}" if request_id else "does no harm") in error.message
    assert "may or may not have happened" in error.message
    read = DeadlineExceeded.of_read(what, deadline_ms)
    assert "has changed nothing: ask again" in read.message
    assert "may or may not" not in read.message or "may or may not" in what
    late = OutcomeUnknown.late(what, deadline_ms)
    assert not isinstance(late, Retry), "nothing that repeats errors blindly may repeat this one"
    assert f"{deadline_ms} ms" in late.message
    assert OutcomeUnknown.late(what, deadline_ms, "look twice").message.endswith("look twice")
