"""What one connection may do: a look into a dictionary, while that is known and good.

Its subscriptions are looked at again each time that their right is only good for so long.
"""

import asyncio
from typing import Protocol

from anabranch.core.bolt.protocol.messages import Append, ClientMessage, Read, Subscribe
from anabranch.core.errors import AnabranchError, Unauthenticated
from anabranch.core.types import LogId, Nanoseconds
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
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at: Nanoseconds = 0
        self._looking: asyncio.Task[None] | None = None

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
        self._ring_at(self._good_until(message))

    def forget(self, request: int) -> None:
        self._watched.pop(request, None)

    def close(self) -> None:
        self._watched.clear()
        if self._alarm is not None:
            self._alarm.cancel()
        if self._looking is not None:
            self._looking.cancel()

    def _keep(self, message: ClientMessage, until: Nanoseconds) -> None:
        if until and isinstance(message, _Kept):
            if len(self._passes) >= PASSES_MAX:
                self._passes.clear()
            self._passes[type(message), message.log] = until

    def _good_until(self, message: Subscribe) -> Nanoseconds:
        return self._passes.get((Subscribe, message.log), 0)

    def _ring_at(self, at: Nanoseconds) -> None:
        """When the first of these rights is only good for so long."""
        if self._alarm is not None and self._alarm_at <= at:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = at
        wait_s = max(_LOOK_S, (at - self._authority.now()) / 1e9)
        self._alarm = asyncio.get_running_loop().call_later(wait_s, self._rung)

    def _rung(self) -> None:
        self._alarm = None
        if self._looking is None and self._watched:
            self._looking = asyncio.get_running_loop().create_task(self._look())
            self._looking.add_done_callback(self._looked)

    async def _look(self) -> None:
        for request, message in list(self._watched.items()):
            if request not in self._watched or self.knows(message):
                continue
            try:
                await self.find(message)
            except Unauthenticated:
                self._watched.clear()
                self._bearer.lapse()
            except AnabranchError as error:
                self._bearer.revoke(request, error)

    def _looked(self, task: asyncio.Task[None]) -> None:
        """What nobody looks after any more doesn't go on."""
        self._looking = None
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._bearer.lapse()
            raise error
        if self._watched:
            self._ring_at(min(map(self._good_until, self._watched.values())))
