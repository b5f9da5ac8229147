"""Tokens that everybody shares, or none: whoever is let in may do everything."""

import time
from collections.abc import Sequence

from anabranch.core.budget import EVERYBODY
from anabranch.core.errors import Unauthorized
from anabranch.core.rights.claims import Claim
from anabranch.core.types import NEVER, Nanoseconds
from anabranch.shell.authority.tokens import Tokens, tokens_of


class SharedToken:
    """`Authority` that has nothing to ask."""

    selective = False

    def __init__(self, tokens: Tokens | str | None) -> None:
        self._tokens = tokens_of(tokens)
        self.open = self._tokens.open

    def now(self) -> Nanoseconds:
        return time.monotonic_ns()

    def known(self, token: str | None) -> bool:
        if not self._tokens.accepts(token):
            raise Unauthorized
        return True

    async def admit(self, token: str | None, address: str = "") -> None:
        self.known(token)

    def principal(self, token: str | None) -> str:
        return EVERYBODY

    def standing(self, token: str | None, claims: Sequence[Claim]) -> Nanoseconds:
        return NEVER

    async def permit(self, token: str | None, claims: Sequence[Claim]) -> Nanoseconds:
        return NEVER
