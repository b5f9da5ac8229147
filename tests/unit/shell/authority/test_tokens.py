"""Tokens from files: several at a time, read anew when the file changes."""

import os
from pathlib import Path

import pytest

from anabranch.apps import settings
from anabranch.core.errors import BadRequest
from anabranch.core.rights.judge import TOKEN_BYTES_MAX
from anabranch.shell.authority.tokens import TOKENS_MAX, Tokens


def write(file: Path, *lines: str) -> None:
    """As Kubernetes does: another file takes the name."""
    part = file.with_suffix(".part")
    part.write_text("\n".join(lines), encoding="utf-8")
    os.replace(part, file)


def test_without_a_token_everybody_is_let_in_and_with_one_who_shows_it() -> None:
    assert Tokens().accepts(None)
    assert Tokens().accepts("anything")
    assert Tokens("one").accepts("one")
    for wrong in (None, "", "on", "one ", "ONE", "\udc80"):
        assert not Tokens("one").accepts(wrong)


def test_a_token_is_replaced_without_a_pause(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    write(file, "old")
    tokens = Tokens(file=str(file))
    assert (tokens.first, tokens.accepts("old"), tokens.accepts("new")) == ("old", True, False)
    write(file, "new", "", "  old  ")
    assert (tokens.first, tokens.accepts("old"), tokens.accepts("new")) == ("new", True, True)
    write(file, "new")
    assert not tokens.accepts("old")


@pytest.mark.parametrize(
    "lines", [(), ("",), ("x",) * (TOKENS_MAX + 1), ("x" * (TOKEN_BYTES_MAX + 1),)]
)
def test_a_file_without_good_tokens_is_refused_and_later_passed_over(
    tmp_path: Path, lines: tuple[str, ...]
) -> None:
    file = tmp_path / "tokens"
    write(file, *lines)
    with pytest.raises(BadRequest, match="the tokens in"):
        Tokens(file=str(file))
    write(file, "good")
    tokens = Tokens(file=str(file))
    write(file, *lines)
    assert tokens.accepts("good")
    assert not tokens.accepts("")
    assert not tokens.accepts(None)
    file.unlink()
    assert tokens.accepts("good")
    assert not tokens.accepts(None)


def test_a_pipe_in_the_place_of_the_file_keeps_nobody_waiting(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    write(file, "good")
    tokens = Tokens(file=str(file))
    file.unlink()
    os.mkfifo(file)
    assert tokens.accepts("good")
    with pytest.raises(BadRequest, match="isn't a regular file"):
        Tokens(file=str(file))


def test_a_file_is_read_up_to_a_bound_and_without_the_mark_that_editors_put_first(
    tmp_path: Path,
) -> None:
    file = tmp_path / "tokens"
    file.write_text("\ufeffgood\n", encoding="utf-8")
    assert Tokens(file=str(file)).accepts("good")
    with file.open("wb") as sparse:
        sparse.truncate(1 << 40)
    with pytest.raises(BadRequest, match="is larger than"):
        Tokens(file=str(file))


def test_a_token_that_no_client_could_show_is_refused_at_the_start() -> None:
    with pytest.raises(BadRequest, match="can't be printed"):
        settings.load({}, {"ANABRANCH_TOKEN": "caf\udce9"})
    assert not Tokens("caf\udce9").accepts("other")


def test_a_folder_of_secrets_counts_instead_of_variables(tmp_path: Path) -> None:
    write(tmp_path / "ANABRANCH_TOKEN", "from-the-file")
    environment = {"ANABRANCH_SECRETS": str(tmp_path), "ANABRANCH_TOKEN": "from-the-variable"}
    found = settings.load({}, environment)
    assert (found.token, found.tokens_file) == (None, str(tmp_path / "ANABRANCH_TOKEN"))
    (tmp_path / "ANABRANCH_TOKEN").unlink()
    found = settings.load({}, environment)
    assert (found.token, found.tokens_file) == ("from-the-variable", "")


def test_a_token_and_a_file_of_tokens_are_refused_together() -> None:
    with pytest.raises(BadRequest, match="give token or tokens_file, not both"):
        settings.load({"token": "one", "tokens_file": "two"}, {})


def test_a_file_of_tokens_lets_others_than_this_machine_in() -> None:
    settings.load({"host": "0.0.0.0", "tokens_file": "tokens"}, {})
    with pytest.raises(BadRequest, match="without a token"):
        settings.load({"host": "0.0.0.0"}, {})
