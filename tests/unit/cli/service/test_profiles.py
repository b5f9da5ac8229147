"""Profiles are kept in one file that only its owner can read."""

import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.cli.service.profiles import Profile, Profiles, load, location, save
from anabranch.core.errors import BadRequest

PROD = Profile("anabranch://prod:1", "a token", None)


def test_what_is_saved_is_loaded_and_private(tmp_path: Path) -> None:
    path = tmp_path / "new" / "profiles.toml"
    assert load(path) == Profiles()
    kept = Profiles().added("prod", PROD, use=False)
    kept = kept.added("test", Profile("x", None, "/file"), use=False)
    save(path, kept)
    assert load(path) == kept
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    save(path, kept.using("test"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["profiles.toml"]


@given(st.text(st.characters(codec="utf-8"), max_size=20))
def test_any_token_survives(token: str) -> None:
    kept = Profiles("a", {"a": Profile("url", token or None)})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profiles.toml"
        save(path, kept)
        assert load(path) == kept


def test_the_first_profile_is_used_and_a_removed_one_is_not() -> None:
    both = Profiles().added("a", PROD, use=False).added("b", PROD, use=False)
    assert both.current == "a"
    assert both.using("b").removed("a").current == "b"
    assert both.removed("a").current == ""
    assert both.added("c", PROD, use=True).current == "c"
    for wrong in (both.using, both.removed):
        with pytest.raises(BadRequest, match="only a, b"):
            wrong("x")
    with pytest.raises(BadRequest, match="are allowed"):
        both.added("no spaces", PROD, use=False)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "profiles.toml"
    for content in ("current = ", "unknown = 1", "[profiles.a]\ntoken = 1", f"a = {'[' * 5_000}"):
        path.write_text(content)
        with pytest.raises(BadRequest, match=str(path)):
            load(path)


def test_the_file_is_where_xdg_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert location() == tmp_path / "anabranch" / "profiles.toml"
    monkeypatch.setenv("HOME", str(tmp_path))
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_CONFIG_HOME", ignored)
        assert location() == tmp_path / ".config" / "anabranch" / "profiles.toml"


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_profiles_are_not_read_from_what_may_never_end(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "profiles.toml"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(BadRequest, match="it isn't a file"):
        load(path)
