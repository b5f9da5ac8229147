"""Examples run on the service that a command would talk to."""

import pytest
from examples.service import chosen

from anabranch.cli.service.choice import DEFAULT_URL

HERE, THERE = "anabranch://here:1", "anabranch://there:2"


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """Nobody's profiles and no variables."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("URL", "PROFILE", "TOKEN", "TOKEN_FILE"):
        monkeypatch.delenv(f"ANABRANCH_{name}", raising=False)


@pytest.mark.parametrize(
    ("flag", "variable", "expected"),
    [(None, None, DEFAULT_URL), (None, "", DEFAULT_URL), (None, HERE, HERE), (THERE, HERE, THERE)],
)
def test_a_flag_goes_before_the_environment(
    monkeypatch: pytest.MonkeyPatch, flag: str | None, variable: str | None, expected: str
) -> None:
    if variable is not None:
        monkeypatch.setenv("ANABRANCH_URL", variable)
    assert chosen(flag)[0] == expected


def test_the_token_of_the_environment_is_shown_to_a_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANABRANCH_TOKEN", "a token")
    assert chosen(HERE)[1].token == "a token"
    assert chosen("belfast://here:1/ticks")[1].token is None, "its address names its token"


def test_a_belfast_log_by_itself_is_taken_as_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANABRANCH_TOKEN_FILE", "/a/file")
    monkeypatch.setenv("ANABRANCH_URL", "belfast://here:1/ticks")
    assert chosen(None)[0] == "belfast://here:1/ticks"
