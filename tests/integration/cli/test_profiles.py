"""Profiles: a service by its name."""

import pytest
from tests.commands import Command
from tests.integration.cli_server import Server

from anabranch.cli.failure import Exit

NOWHERE = "anabranch://127.0.0.1:1"


@pytest.fixture
def without_url(anabranch: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.delenv("ANABRANCH_URL")
    return anabranch


def test_a_profile_stands_for_an_address(
    without_url: Command, server: Server, log: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    anabranch = without_url
    assert "no profiles" in anabranch("profile", "list").out
    assert "in use" in anabranch("profile", "add", "here", "--url", server.url).out
    anabranch("log", "create", log)
    assert "not in use: here is" in anabranch("profile", "add", "gone", "--url", NOWHERE).out
    anabranch("log", "show", log, "--profile", "gone", code=Exit.UNREACHABLE)
    anabranch("profile", "use", "gone")
    anabranch("log", "show", log, code=Exit.UNREACHABLE)
    anabranch("log", "show", log, "--profile", "here")
    monkeypatch.setenv("ANABRANCH_PROFILE", "here")
    anabranch("log", "show", log)
    monkeypatch.setenv("ANABRANCH_URL", NOWHERE)
    anabranch("log", "show", log, code=Exit.UNREACHABLE)
    anabranch("log", "show", log, "--profile", "here")
    anabranch("log", "show", log, "--profile", "here", "--url", NOWHERE, code=Exit.UNREACHABLE)


def test_profiles_are_listed_shown_and_removed_and_never_show_tokens(without_url: Command) -> None:
    anabranch = without_url
    anabranch("profile", "add", "a", "--url", "anabranch://secret@a:1")
    anabranch("profile", "add", "b", "--url", "anabranch://b:1", "--token", "secret", "--use")
    anabranch("profile", "add", "c", "--url", "anabranch://c:1", "--token-file", "/a/file")
    listed = anabranch("profile", "list", "-o", "json").json
    assert [(each["name"], each["url"], each["token"], each["current"]) for each in listed] == [
        ("a", "anabranch://a:1", True, False),
        ("b", "anabranch://b:1", True, True),
        ("c", "anabranch://c:1", False, False),
    ]
    assert listed[2]["token_file"] == "/a/file"
    shown = [anabranch("profile", *words).out for words in (["list"], ["show"], ["show", "a"])]
    assert not any("secret" in text for text in shown)
    assert "in use" in shown[1]
    assert anabranch("profile", "remove", "b", "-o", "json").json == {
        "removed": "b",
        "current": None,
    }
    anabranch("profile", "show", code=Exit.USAGE)
    assert "only a, c" in anabranch("profile", "use", "b", code=Exit.REFUSED).err
    both = ("--token", "x", "--token-file", "y")
    anabranch("profile", "add", "d", "--url", NOWHERE, *both, code=Exit.USAGE)


def test_a_token_kept_in_a_profile_is_shown(
    tmp_path_factory: pytest.TempPathFactory, without_url: Command
) -> None:
    anabranch = without_url
    with Server.started(tmp_path_factory.mktemp("guarded"), "--token", "secret") as guarded:
        anabranch("profile", "add", "guarded", "--url", guarded.url, "--token", "secret")
        anabranch("log", "list")
        anabranch("log", "list", "--url", guarded.url, code=Exit.REFUSED)
