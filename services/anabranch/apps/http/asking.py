"""One request's questions to the log: each with a deadline, and what changes anything only once."""

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Iterator
from hashlib import blake2b
from typing import Annotated, Any, TypeVar, cast

from fastapi import Depends, Header, Request
from fastapi.dependencies.models import Dependant

from anabranch.apps.http import door
from anabranch.apps.http.front import Front
from anabranch.apps.http.problems import REQUEST_ID
from anabranch.apps.http.refusals import ClientGone
from anabranch.core.bolt.commands import Description
from anabranch.core.errors import BadRequest, DeadlineExceeded, Refresh, Unavailable, UnknownLog
from anabranch.core.types import NEVER, Kind, LogId, Milliseconds, Nanoseconds
from anabranch.core.wire.messages import Append, Appended, ClientMessage, Describe

DEADLINE_MS = 30_000
DEADLINE_MS_MAX = 600_000
NOWHERE = LogId(0)
"""Ids begin at 1."""
_KEY_CHARS_MAX = 200
_NAMES_MAX = 4_096
_LOOK_S, _LOOK_S_MAX = 1.0, 3_600.0
"""How often it is looked whether a right that lasts is still there."""

A = TypeVar("A")


class Asking:
    """What a request may still cost, and how to ask on its behalf."""

    def __init__(self, front: Front, request: Request, deadline_ms: Milliseconds) -> None:
        self.front = front
        self._request = request
        self._deadline_ms = deadline_ms
        self._until = 0.0
        self.renew()

    @property
    def request_id(self) -> str:
        return self._request.scope["state"][REQUEST_ID]

    def renew(self) -> None:
        """Of an answer that streams, each part has the whole deadline for itself."""
        self._until = asyncio.get_running_loop().time() + self._deadline_ms / 1_000

    async def call(
        self, message: ClientMessage, kind: type[A], what: str, wait_ms: Milliseconds = 0
    ) -> A:
        """The answer; a wait that was asked for is no part of the deadline."""
        await self.permitted(message)
        return await self._told(message, kind, what, wait_ms)

    async def _told(
        self, message: ClientMessage, kind: type[A], what: str, wait_ms: Milliseconds = 0
    ) -> A:
        answer = self.front.backend.call(message, what, self._left_ms, wait_ms)
        reply = await self._in_time(answer, what, wait_ms)
        assert isinstance(reply, kind), f"{type(reply).__name__} can't be the answer to {what}"
        return reply

    async def permitted(self, message: ClientMessage) -> Nanoseconds:
        """Until when whoever asks may ask this; raises if they may not."""
        authority = self.front.authority
        if not authority.selective or self._request.scope["path"] in door.OPEN:
            return NEVER
        token: str = self._request.scope["state"][door.SHOWN]
        return authority.standing(token, message) or await authority.permit(token, message)

    async def revoked(self, message: ClientMessage) -> None:
        """Returns never; raises when whoever asked may not ask this any more."""
        while True:
            left_ns = await self.permitted(message) - self.front.authority.now()
            await asyncio.sleep(max(_LOOK_S, min(left_ns / 1e9, _LOOK_S_MAX)))

    async def append(self, log: Description, batch: bytes, wait_ms: Milliseconds) -> Appended:
        """Of a batch that names no producer."""
        await self.permitted(Append(log.id, batch, wait_ms))
        answer = self.front.backend.append(log, batch, self._left_ms, wait_ms)
        return await self._in_time(answer, f"append to {log.name}", max(0, wait_ms))

    async def log(self, name: str) -> Description:
        """The log of this name, or what became of it."""
        return await self.call(Describe(name), Description, f"look up {name}")

    async def name(self, log: LogId) -> str:
        """Of a log that records came from."""
        names = self.front.names
        if log not in names:
            if len(names) >= _NAMES_MAX:
                names.clear()
            names[log] = await self._find_name(log)
        return names[log]

    async def _find_name(self, log: LogId) -> str:
        try:
            # Whoever may read a record may know which log it came from.
            return (await self._told(Describe(log), Description, f"look up {log}")).name
        except (Refresh, UnknownLog) as gone:
            # What became of a fork is told by name; of one long forgotten only the id is left.
            return str(gone.facts["log"])

    async def change(
        self,
        name: str,
        once: "Once",
        message: Callable[[LogId, Kind], ClientMessage],
        kind: type[A],
        what: str,
    ) -> A:
        """Have something done to the log of this name, once.

        What was done may be what took the name away. So if it is gone, the request is made all the
        same, of no log: one that was made before gets its first answer, any other is refused.
        """
        try:
            log = await self.log(name)
        except (Refresh, UnknownLog) as gone:
            if not once.keyed:
                raise
            try:
                return await self.call(message(NOWHERE, Kind.ROOT), kind, what)
            except UnknownLog:
                raise gone from None
        return await self.call(message(log.id, log.kind), kind, what)

    @property
    def _left_ms(self) -> Milliseconds:
        return max(1, round((self._until - asyncio.get_running_loop().time()) * 1_000))

    async def _in_time(self, answer: Coroutine[Any, Any, A], what: str, wait_ms: Milliseconds) -> A:
        backend = self.front.backend
        until = self._until + (wait_ms + backend.grace_ms) / 1_000
        try:
            async with asyncio.timeout_at(until):
                return await (self._while_wanted(answer) if wait_ms > 0 else answer)
        except TimeoutError:
            raise DeadlineExceeded(what, self._deadline_ms + wait_ms) from None

    async def _while_wanted(self, answer: Coroutine[Any, Any, A]) -> A:
        """The answer, unless the client hangs up or the server stops before it is there."""
        asked = asyncio.ensure_future(answer)
        hung_up = asyncio.ensure_future(self._hung_up())
        stopping = asyncio.ensure_future(self.front.stopping.wait())
        try:
            await asyncio.wait((asked, hung_up, stopping), return_when=asyncio.FIRST_COMPLETED)
            if asked.done():
                return asked.result()
            raise ClientGone if hung_up.done() else Unavailable("the log", "it is stopping")
        finally:
            for each in (asked, hung_up, stopping):
                each.cancel()

    async def _hung_up(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass


class Once:
    """What makes a request harmless to repeat: the key it came with, or else its own id."""

    def __init__(self, request: Request, key: str | None) -> None:
        self.keyed = key is not None
        if key is None:
            self.id = secrets.token_bytes(16)
        else:
            named = f"{request.method} {request.scope['path']}\n{key}"
            self.id = blake2b(named.encode(), digest_size=16).digest()

    @property
    def producer(self) -> int:
        """A producer that sends nothing but this request."""
        return int.from_bytes(self.id[:8]) >> 1


def front(request: Request) -> Front:
    return cast("Front", request.app.state.front)


def _query_names(dependant: Dependant) -> Iterator[str]:
    for field in dependant.query_params:
        yield field.alias
    for each in dependant.dependencies:
        yield from _query_names(each)


def _check_query(request: Request) -> None:
    """A misspelt parameter that was passed over would change what is asked in silence."""
    if request.query_params:
        known = set(_query_names(request.scope["route"].dependant))
        for name in request.query_params:
            if name not in known:
                there_are = ", ".join(sorted(known)) or "none"
                raise BadRequest(f"query.{name}", f"there is no such parameter, only {there_are}")


async def asking(
    request: Request,
    deadline_ms: Annotated[
        int,
        Header(
            alias="Deadline-Ms",
            ge=1,
            le=DEADLINE_MS_MAX,
            description="How long the answer may take; a wait that is asked for comes on top.",
        ),
    ] = DEADLINE_MS,
) -> Asking:
    _check_query(request)
    return Asking(front(request), request, deadline_ms)


async def once(
    request: Request,
    key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            min_length=1,
            max_length=_KEY_CHARS_MAX,
            description="A request repeated with the same key is done once and gets its first "
            "answer. A key belongs to one method and path, and is remembered for an hour.",
        ),
    ] = None,
) -> Once:
    return Once(request, key)


Ask = Annotated[Asking, Depends(asking)]
OnlyOnce = Annotated[Once, Depends(once)]
