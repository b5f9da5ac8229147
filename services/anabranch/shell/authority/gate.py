"""What one connection may do: a look into a dictionary, while that is known and good.

Its subscriptions are looked at again each time that their right is only good for so long.
"""

import asyncio
from typing import Protocol

from anabranch.core.errors import AnabranchError, Unauthenticated
from anabranch.core.types import LogId, Nanoseconds
from anabranch.core.wire.messages import Append, ClientMessage, Read, Subscribe
from anabranch.ports import Authority

PASSES_MAX = 4_096
"""Logs that a connection may append to or read without another look at its rights."""

_LOOK_S = 1.0
"""A subscription's right is looked at no more often."""

_Kept = Append | Read | Subscribe


class Bearer(Protocol):
    """Whose rights they are."""

    def revoke(self, request: int, error: AnabranchError) -> None:
        """End a subscription."""
        ...

    def lapse(self) -> None:
        """End all of it: its token isn't good any more."""
        ...


class Gate:
    """Of one connection."""

    def __init__(self, authority: Authority, token: str | None, bearer: Bearer) -> None:
        self._authority = authority
        self._token = token
        self._bearer = bearer
        self._passes: dict[tuple[type, LogId], Nanoseconds] = {}
        self._watched: dict[int, Subscribe] = {}
        self._watching: asyncio.Task[None] | None = None

    def knows(self, message: _Kept) -> bool:
        """Is it known here to be allowed?"""
        until = self._passes.get((type(message), message.log))
        return until is not None and self._authority.now() < until

    def allows(self, message: ClientMessage) -> bool:
        """False: `find` has to find out. Raises if it isn't allowed."""
        if isinstance(message, _Kept) and self.knows(message):
            return True
        until = self._authority.standing(self._token, message)
        self._keep(message, until)
        return bool(until)

    async def find(self, message: ClientMessage) -> None:
        """Raises if it isn't allowed, or can't be found out."""
        self._keep(message, await self._authority.permit(self._token, message))

    def watch(self, request: int, message: Subscribe) -> None:
        """Until it is forgotten."""
        self._watched[request] = message
        if self._watching is None:
            self._watching = asyncio.get_running_loop().create_task(self._watch())

    def forget(self, request: int) -> None:
        self._watched.pop(request, None)

    def close(self) -> None:
        self._watched.clear()
        if self._watching is not None:
            self._watching.cancel()

    def _keep(self, message: ClientMessage, until: Nanoseconds) -> None:
        if until and isinstance(message, _Kept):
            if len(self._passes) >= PASSES_MAX:
                self._passes.clear()
            self._passes[type(message), message.log] = until

    async def _watch(self) -> None:
        while self._watched:
            await asyncio.sleep(self._patience_s())
            for request, message in list(self._watched.items()):
                if request not in self._watched or self.knows(message):
                    continue
                try:
                    await self.find(message)
                except Unauthenticated:
                    self._bearer.lapse()
                    return
                except AnabranchError as error:
                    self._bearer.revoke(request, error)
        self._watching = None

    def _patience_s(self) -> float:
        """Until the first of these rights is only good for so long."""
        passes = self._passes
        untils = [passes.get((Subscribe, each.log), 0) for each in self._watched.values()]
        return max(_LOOK_S, (min(untils) - self._authority.now()) / 1e9)
