"""Which service a job talks to, of what it was given and of its environment."""

import pytest

from anabranch.errors import BadRequest
from anabranch_spark.service import TOKEN_FILE, URL, address


def test_an_option_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URL, "anabranch://elsewhere")
    monkeypatch.delenv(TOKEN_FILE, raising=False)
    assert address("anabranch://here:7420") == "anabranch://here:7420"
    assert address(None) == "anabranch://elsewhere"


def test_without_either_the_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(URL, raising=False)
    with pytest.raises(BadRequest, match=URL):
        address(None)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("anabranch://a", "anabranch://a?token_file=/run/token"),
        ("anabranchs://a?ca=/ca.crt", "anabranchs://a?ca=/ca.crt&token_file=/run/token"),
        ("anabranch://secret@a", "anabranch://secret@a"),
        ("anabranch://a?token_file=/other", "anabranch://a?token_file=/other"),
    ],
)
def test_the_environments_token_file_goes_along(
    monkeypatch: pytest.MonkeyPatch, url: str, found: str
) -> None:
    monkeypatch.setenv(TOKEN_FILE, "/run/token")
    assert address(url) == found
