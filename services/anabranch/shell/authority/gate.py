"""What one connection may do: a look into a dictionary, while that is known and good.

The rights of its subscriptions are checked again whenever what is known of them has run out.
"""

import asyncio
from collections.abc import Hashable
from typing import Any, Protocol

from anabranch.core.errors import AnabranchError, Unauthenticated
from anabranch.core.rights.claims import Rights
from anabranch.core.types import Nanoseconds
from anabranch.ports import Authority

PASSES_MAX = 4_096
"""Kinds of requests, and their logs, that a connection may repeat without another check."""

_CHECK_S = 1.0
"""A subscription's right is checked no more often."""


class Bearer(Protocol):
    """The connection whose rights these are."""

    def revoke(self, request: int, error: AnabranchError) -> None:
        """End a subscription."""
        ...

    def lapse(self) -> None:
        """End the connection: its token isn't valid any more."""
        ...


class Gate:
    def __init__(
        self, authority: Authority, rights: Rights, token: str | None, bearer: Bearer
    ) -> None:
        self._authority = authority
        self._rights = rights
        self._token = token
        self._bearer = bearer
        self._passes: dict[Hashable, Nanoseconds] = {}
        self._watched: dict[int, Any] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at: Nanoseconds = 0
        self._checking: asyncio.Task[None] | None = None

    def knows(self, message: Any) -> bool:
        """Is it known here that this request is allowed?"""
        until = self._passes.get(self._rights.kept(message))
        return until is not None and self._authority.now() < until

    def allows(self, message: Any) -> bool:
        """False: `find` has to find out. Raises if the request isn't allowed."""
        if self.knows(message):
            return True
        until = self._authority.standing(self._token, self._rights.needs(message))
        self._keep(message, until)
        return bool(until)

    async def find(self, message: Any) -> None:
        """Raises if the request isn't allowed, or if that can't be found out."""
        until = await self._authority.permit(self._token, self._rights.needs(message))
        self._keep(message, until)

    def watch(self, request: int, message: Any) -> None:
        """Check this subscription's right again and again, until `forget`."""
        self._watched[request] = message
        self._set_alarm(self._good_until(message))

    def forget(self, request: int) -> None:
        self._watched.pop(request, None)

    def close(self) -> None:
        self._watched.clear()
        if self._alarm is not None:
            self._alarm.cancel()
        if self._checking is not None:
            self._checking.cancel()

    def _keep(self, message: Any, until: Nanoseconds) -> None:
        key = self._rights.kept(message)
        if until and key is not None:
            if len(self._passes) >= PASSES_MAX:
                self._passes.clear()
            self._passes[key] = until

    def _good_until(self, message: Any) -> Nanoseconds:
        return self._passes.get(self._rights.kept(message), 0)

    def _set_alarm(self, at: Nanoseconds) -> None:
        """For when the first of these rights runs out."""
        if self._alarm is not None and self._alarm_at <= at:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = at
        wait_s = max(_CHECK_S, (at - self._authority.now()) / 1e9)
        self._alarm = asyncio.get_running_loop().call_later(wait_s, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        if self._checking is None and self._watched:
            self._checking = asyncio.get_running_loop().create_task(self._check())
            self._checking.add_done_callback(self._checked)

    async def _check(self) -> None:
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

    def _checked(self, task: asyncio.Task[None]) -> None:
        """A subscription whose right nobody could check doesn't go on."""
        self._checking = None
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._bearer.lapse()
            raise error
        if self._watched:
            self._set_alarm(min(map(self._good_until, self._watched.values())))
