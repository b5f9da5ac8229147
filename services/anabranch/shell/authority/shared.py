"""One token for everybody, or none: whoever is let in may do everything."""

import hmac
import time

from anabranch.core.budget import EVERYBODY
from anabranch.core.errors import Unauthorized
from anabranch.core.types import NEVER, Nanoseconds
from anabranch.core.wire.messages import ClientMessage


class SharedToken:
    """`Authority` that has nothing to ask."""

    selective = False

    def __init__(self, token: str | None) -> None:
        self.open = token is None
        self._token = None if token is None else token.encode()

    def now(self) -> Nanoseconds:
        return time.monotonic_ns()

    def known(self, token: str | None) -> bool:
        """In constant time: how long it takes tells nothing of how much was right."""
        if self._token is not None and not hmac.compare_digest((token or "").encode(), self._token):
            raise Unauthorized
        return True

    async def admit(self, token: str | None, address: str = "") -> None:
        self.known(token)

    def principal(self, token: str | None) -> str:
        return EVERYBODY

    def standing(self, token: str | None, message: ClientMessage) -> Nanoseconds:
        return NEVER

    async def permit(self, token: str | None, message: ClientMessage) -> Nanoseconds:
        return NEVER
