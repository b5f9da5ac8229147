"""One hierarchy: each error has a code of its own, and one of five kinds says what to do."""

import inspect

import pytest

from anabranch.core.errors import (
    BY_CODE,
    AnabranchError,
    Damage,
    Fenced,
    Mistake,
    OutOfRange,
    PositionTrimmed,
    Refresh,
    Retry,
    StorageFull,
    Unavailable,
)

KINDS = (Retry, Refresh, Fenced, Mistake, Damage)
ERRORS = [kind for kind in BY_CODE.values() if kind not in (*KINDS, AnabranchError)]


def made(kind: type[AnabranchError]) -> AnabranchError:
    """One whose facts are numbers where it asks for numbers, and words elsewhere."""
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    facts = [7 if each.annotation in (int, "int") else "it" for each in parameters]
    return kind(*facts)


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.code)
def test_every_error_is_of_one_kind_and_has_a_code_of_its_own(kind: type[AnabranchError]) -> None:
    assert sum(issubclass(kind, each) for each in KINDS) == 1
    assert "code" in vars(kind)
    assert kind.code == kind.code.lower()
    assert " " not in kind.code


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.code)
def test_every_error_says_a_sentence_with_all_its_facts_in_their_places(
    kind: type[AnabranchError],
) -> None:
    error = made(kind)
    assert str(error) == error.message
    assert error.message
    assert "{" not in error.message


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.code)
def test_what_is_to_be_repeated_is_told_by_its_advice_and_status(
    kind: type[AnabranchError],
) -> None:
    assert 400 <= kind.status < 600
    if issubclass(kind, Retry):
        assert kind.advice == "retry"
        assert kind.may_pass


def test_only_a_request_id_that_is_there_is_told() -> None:
    assert AnabranchError(reason="x").request_id is None
    assert AnabranchError(reason="x", request_id="").request_id is None
    assert AnabranchError(reason="x", request_id=7).request_id is None
    assert AnabranchError(reason="x", request_id="once").request_id == "once"


def test_a_full_disk_promises_nothing_about_what_was_asked() -> None:
    """It may be the cause of an error that says what is known of the request."""
    assert "acknowledged" not in StorageFull("the journal").message


def test_what_lies_below_a_trim_is_one_error_for_programs_of_any_log() -> None:
    trimmed = PositionTrimmed(3, 7)
    assert isinstance(trimmed, OutOfRange)
    assert (trimmed.code, trimmed.status) == ("position-trimmed", 410)
    assert trimmed.facts == {"position": 3, "trimmed": 7}


def test_advice_to_try_again_is_said_once() -> None:
    inner = Unavailable("node a", "it starts")
    assert Unavailable("the status", inner.message).message.count("try again") == 1
