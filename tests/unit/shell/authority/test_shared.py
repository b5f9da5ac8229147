"""Tokens that everybody shares: whoever is let in may do everything, and one is like the other."""

from pathlib import Path

import pytest
from tests.unit.shell.nodes import run

from anabranch.core.budget import EVERYBODY
from anabranch.core.errors import Unauthorized
from anabranch.core.rights.claims import LOGS, Claim, Subject, Verb
from anabranch.core.types import NEVER
from anabranch.shell.authority.shared import SharedToken
from anabranch.shell.authority.tokens import Tokens

CLAIMS = (Claim(Subject(LOGS, "orders"), (Verb.DELETE,)),)


@pytest.mark.parametrize("token", [None, "", "anything"])
def test_without_a_token_everybody_is_let_in(token: str | None) -> None:
    async def scene() -> None:
        door = SharedToken(None)
        assert door.open
        assert door.known(token)
        await door.admit(token, "10.0.0.1")

    run(scene())


@pytest.mark.parametrize("token", [None, "", "secre", "secret ", "SECRET", "\ud800"])
def test_with_one_only_who_shows_it(token: str | None) -> None:
    async def scene() -> None:
        door = SharedToken("secret")
        assert not door.open
        with pytest.raises(Unauthorized):
            door.known(token)
        with pytest.raises(Unauthorized):
            await door.admit(token)
        assert door.known("secret")

    run(scene())


def test_who_is_let_in_may_do_everything_for_ever() -> None:
    async def scene() -> None:
        door = SharedToken("secret")
        assert not door.selective
        assert door.standing("secret", CLAIMS) == NEVER
        assert await door.permit("secret", CLAIMS) == NEVER
        assert door.principal("secret") == door.principal(None) == EVERYBODY
        assert door.now() <= door.now()

    run(scene())


def test_a_file_of_tokens_is_looked_at_for_each_who_comes(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("old\nnew\n")
    door = SharedToken(Tokens(None, str(file)))
    assert door.known("old")
    part = tmp_path / "part"
    part.write_text("new\n")
    part.replace(file)
    assert door.known("new")
    with pytest.raises(Unauthorized):
        door.known("old")
