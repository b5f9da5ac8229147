"""What answers of the API server mean."""

import json

import pytest

from anabranch_operator.kube import refusals
from anabranch_operator.kube.refusals import ApiError, refused
from anabranch_operator.plan.engine.events import TOO_MANY


def status(message: str, field: str = "") -> bytes:
    causes = [{"reason": "FieldValueInvalid", "field": field}] if field else []
    told = {"kind": "Status", "message": message, "details": {"causes": causes}}
    return json.dumps(told).encode()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, refusals.Invalid),
        (403, refusals.Forbidden),
        (404, refusals.NotFound),
        (409, refusals.Conflict),
        (422, refusals.Invalid),
        (429, refusals.TooMany),
        (500, refusals.Away),
        (503, refusals.Away),
    ],
)
def test_an_answer_is_of_the_kind_that_says_what_follows(code: int, kind: type[ApiError]) -> None:
    error = refused(code, {}, status("because"))
    assert type(error) is kind
    assert error.message == "because"


def test_when_to_come_again_is_told() -> None:
    refusal = refused(429, {"Retry-After": "3"}, b"slow down").refusal()
    assert (refusal.code, refusal.retry_after_ms) == (TOO_MANY, 3_000)
    past = {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}
    assert refused(503, past, b"").refusal().retry_after_ms == 0
    assert refused(503, {"Retry-After": "soon"}, b"").refusal().retry_after_ms == 0


def test_another_object_of_the_name_is_a_conflict_however_it_is_said() -> None:
    error = refused(422, {}, status("field is immutable", "metadata.uid"))
    assert type(error) is refusals.Conflict


def test_what_isnt_json_is_told_as_it_is() -> None:
    assert refused(502, {}, b"<html>bad gateway").message == "<html>bad gateway"
    assert "502" in refused(502, {}, b"").message
