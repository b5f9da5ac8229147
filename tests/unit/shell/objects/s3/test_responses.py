"""What the store's client tells as text, and what it means for the call."""

import pytest
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError

from anabranch.shell.objects.s3.responses import Verdict, understand


def told(status: int, code: str = "", message: str = "") -> str:
    body = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>" if code else ""
    return f"Server returned non-2xx status code: {status} Something: {body}"


@pytest.mark.parametrize(
    ("status", "code", "verdict"),
    [
        (404, "NoSuchKey", Verdict.MISSING),
        (404, "", Verdict.MISSING),
        (404, "NoSuchBucket", Verdict.REFUSED),
        (416, "InvalidRange", Verdict.PAST_END),
        (403, "AccessDenied", Verdict.REFUSED),
        (400, "InvalidRequest", Verdict.REFUSED),
        (400, "XAmzContentChecksumMismatch", Verdict.AGAIN),
        (409, "ConditionalRequestConflict", Verdict.AGAIN),
        (425, "", Verdict.AGAIN),
        (429, "", Verdict.AGAIN),
        (500, "InternalError", Verdict.AGAIN),
        (599, "", Verdict.AGAIN),
    ],
)
def test_status_and_code_say_what_an_answer_means(status: int, code: str, verdict: Verdict) -> None:
    fault = understand(BaseError(told(status, code)))
    assert fault.verdict is verdict
    assert fault.reason.startswith(str(status))


@pytest.mark.parametrize(("status", "throttled"), [(429, True), (503, True), (500, False)])
def test_being_told_to_slow_down_is_known(status: int, throttled: bool) -> None:
    assert understand(BaseError(told(status))).throttled is throttled


def test_an_object_of_that_name_isnt_taken_for_trouble() -> None:
    taken = understand(AlreadyExistsError(told(412, "PreconditionFailed")))
    assert taken.verdict is Verdict.TAKEN
    # A store that is about to do it says so with the same class of error, and may yet fail.
    later = understand(AlreadyExistsError(told(409, "ConditionalRequestConflict")))
    assert later.verdict is Verdict.AGAIN


def test_a_missing_object_is_missing_by_whichever_error_it_is_told() -> None:
    assert understand(NotFoundError(told(404, "NoSuchKey"))).verdict is Verdict.MISSING


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Generic S3 error: error sending request", "error sending request"),
        ('Error { message: "connection refused", other }', "connection refused"),
        ('Error { error: "outer" } caused by { error: "dns error" }', "dns error"),
        ("Reqwest { kind: Connect, url: x }", "Connect"),
        ("what nobody foresaw\nand more of it", "what nobody foresaw"),
    ],
)
def test_without_an_answer_the_innermost_cause_is_told(text: str, reason: str) -> None:
    fault = understand(BaseError(text))
    assert fault.verdict is Verdict.AGAIN
    assert "no whole answer came" in fault.reason
    assert reason in fault.reason
    assert "\n" not in fault.reason


def test_the_stores_own_words_are_passed_on() -> None:
    fault = understand(BaseError(told(403, "AccessDenied", "not on a Sunday")))
    assert fault.reason == "403 AccessDenied not on a Sunday"
    assert "clock" in understand(BaseError(told(403, "RequestTimeTooSkewed"))).reason


def test_an_error_of_the_operating_system_may_be_mended() -> None:
    fault = understand(ConnectionResetError("Connection reset by peer"))
    assert fault.verdict is Verdict.AGAIN
    assert "Connection reset by peer" in fault.reason
