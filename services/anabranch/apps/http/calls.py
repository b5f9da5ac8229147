"""One request's questions to the log: each with a deadline, and what changes anything only once."""

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Iterator
from hashlib import blake2b
from typing import Annotated, Any, TypeVar, cast
from urllib.parse import urlencode

import msgspec
from fastapi import Depends, Header, Request
from fastapi.dependencies.models import Dependant

from anabranch.apps.http import entry
from anabranch.apps.http.context import Front
from anabranch.apps.http.models import Since
from anabranch.apps.http.problems import REQUEST_ID
from anabranch.apps.http.refusals import ClientGone
from anabranch.client.bolt.refusals import hold_ms
from anabranch.client.logs import AsyncLog
from anabranch.core.bolt.protocol.clients import BOLT
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.marks import AlreadyAppended, AppendMarked, WriterMark
from anabranch.core.bolt.protocol.messages import (
    Append,
    Appended,
    ClientMessage,
    Describe,
    PositionAt,
    changes,
    doubles,
)
from anabranch.core.bolt.protocol.queries import At
from anabranch.core.bolt.protocol.rights import needs
from anabranch.core.budget import STRANGERS
from anabranch.core.errors import (
    AnabranchError,
    BadRequest,
    DeadlineExceeded,
    OutcomeUnknown,
    Overloaded,
    Refresh,
    Unavailable,
    UnknownLog,
)
from anabranch.core.producers import REQUEST_ID_CHARS_MAX
from anabranch.core.records.digest import named_request
from anabranch.core.types import NEVER, NOWHERE, Kind, LogId, Milliseconds, Nanoseconds, Position

DEADLINE_MS = 30_000
DEADLINE_MS_MAX = 600_000
KEY = "Idempotency-Key"
WITH_KEY = f"repeat it with the same {KEY}, under which it is done once"
WITHOUT_KEY = f"look at the log before you repeat it. With an {KEY} it can be repeated blindly"
AGAIN = "repeat it, which does no harm"
_NAMES_MAX = 4_096
_CLIENT_GRACE_MS = 1_000
"""How much later than it should a client's answer may come that says why there is none."""
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
        self._logs: dict[str, Description] = {}
        """By name: the logs that this request is about."""
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
        if type(message) in BOLT.commands:
            self.count_command()
        return await self._told(message, kind, what, wait_ms)

    async def _told(
        self, message: ClientMessage, kind: type[A], what: str, wait_ms: Milliseconds = 0
    ) -> A:
        answer = self.front.backend.call(message, what, self._left_ms, wait_ms)
        try:
            reply = await self._in_time(answer, what, wait_ms)
        except (DeadlineExceeded, OutcomeUnknown) as late:
            raise self._late(late, message, what, wait_ms) from None
        assert isinstance(reply, kind), f"{type(reply).__name__} can't be the answer to {what}"
        return reply

    def count_command(self) -> None:
        """Raise if this client has sent too many: replies to commands are kept for all together."""
        front = self.front
        commands = front.budgets.commands
        if not commands.take(self.who, front.authority.now()):
            raise Overloaded("commands of this client", commands.limit, "requests_max")

    @property
    def who(self) -> str:
        """Whose part of the process's budgets this takes."""
        return self._request.scope["state"].get(entry.WHO, STRANGERS)

    async def permitted(self, message: ClientMessage) -> Nanoseconds:
        """Until when whoever asks may ask this; raises if they may not."""
        authority = self.front.authority
        if not authority.selective or self._request.scope["path"] in entry.OPEN:
            return NEVER
        token: str = self._request.scope["state"][entry.SHOWN]
        claims = needs(message)
        return authority.standing(token, claims) or await authority.permit(token, claims)

    async def revoked(self, message: ClientMessage) -> None:
        """Returns never; raises when whoever asked may not ask this any more."""
        while True:
            left_ns = await self.permitted(message) - self.front.authority.now()
            await asyncio.sleep(max(_LOOK_S, min(left_ns / 1e9, _LOOK_S_MAX)))

    def _late(
        self,
        late: DeadlineExceeded | OutcomeUnknown,
        message: ClientMessage,
        what: str,
        wait_ms: Milliseconds,
    ) -> AnabranchError:
        """What this reader can do now that nobody knows what became of the request."""
        if not changes(message):
            return late
        return self._unknown(late, what, wait_ms, twice=doubles(message))

    def _unknown(
        self,
        late: DeadlineExceeded | OutcomeUnknown,
        what: str,
        wait_ms: Milliseconds,
        *,
        twice: bool,
    ) -> AnabranchError:
        """The same of a request that changes something; `twice`: it would be done again."""
        deadline_ms = self._deadline_ms + wait_ms
        key = self._request.headers.get(KEY)
        if key is not None:
            return DeadlineExceeded(what, deadline_ms, key, WITH_KEY)
        if isinstance(late, OutcomeUnknown):
            return OutcomeUnknown(what, str(late.facts.get("reason", late.message)), WITHOUT_KEY)
        if twice:
            return OutcomeUnknown.late(what, deadline_ms, WITHOUT_KEY)
        return DeadlineExceeded(what, deadline_ms, None, AGAIN)

    async def append(
        self,
        name: str,
        once: "Once",
        batch: bytes,
        wait_ms: Milliseconds | None,
        *,
        numbered: bool,
    ) -> Appended:
        """A batch that has the identity of its request, or of a producer, or none.

        A broker that holds a blocked append answers early enough for its refusal to be told.
        """
        what, extra_ms = f"append to {name}", wait_ms or 0
        held_ms = hold_ms(self._left_ms, self._deadline_ms) if wait_ms is None else wait_ms

        def message(log: LogId, _: Kind) -> Append:
            return Append(log, batch, held_ms)

        if numbered:
            return await self.change(name, once, message, Appended, what, extra_ms)
        log = await self.log(name)
        await self.permitted(message(log.id, log.kind))
        left_ms = self._left_ms + extra_ms
        try:
            answer = self.front.backend.append(log, batch, left_ms, held_ms)
            return await self._in_time(answer, what, extra_ms)
        except (DeadlineExceeded, OutcomeUnknown) as late:
            raise self._late(late, message(log.id, log.kind), what, extra_ms) from None

    async def append_marked(
        self, name: str, batch: bytes, mark: WriterMark, wait_ms: Milliseconds | None
    ) -> Appended | AlreadyAppended:
        """A batch that is in the log once, whoever sends it: `batch` was encoded as `retried`."""
        log = await self.log(name)
        left_ms, extra_ms = self._left_ms, wait_ms or 0
        held_ms = hold_ms(left_ms, self._deadline_ms) if wait_ms is None else wait_ms
        message = AppendMarked(log.id, batch, mark, held_ms)
        answer = await self.call(message, object, f"append to {name}", extra_ms)
        assert isinstance(answer, Appended | AlreadyAppended), "nothing else answers an append"
        return answer

    async def appended(self, log: Description, appends: Coroutine[Any, Any, A]) -> A:
        """A batch that a client of the log appends."""
        what = f"append to {log.name}"
        try:
            return await self.timely(appends, what)
        except (DeadlineExceeded, OutcomeUnknown) as late:
            raise self._unknown(late, what, 0, twice=True) from None

    async def log(self, name: str) -> Description:
        """The log of this name, or what became of it, as it was when it was first asked for."""
        found = self._logs.get(name)
        if found is None:
            found = await self.call(Describe(name), Description, f"look up {name}")
            self._logs[name] = found
        return found

    async def open(self, log: Description) -> AsyncLog:
        """The log as a client has it, which asks the log's own nodes."""
        what = f"open {log.name}"
        return await self.timely(self.front.backend.open(log, self._left_ms), what)

    async def timely(
        self,
        answer: Coroutine[Any, Any, A],
        what: str,
        wait_ms: Milliseconds = 0,
        *,
        changes: bool = False,
    ) -> A:
        """What such a client gives. It was told the deadline, and says itself what was missed.

        `changes`: it does more than read.
        """
        try:
            return await self._in_time(answer, what, wait_ms, _CLIENT_GRACE_MS)
        except DeadlineExceeded as late:
            if changes:
                raise DeadlineExceeded(what, self._deadline_ms + wait_ms, None, AGAIN) from late
            raise

    @property
    def left_s(self) -> float:
        """Seconds to the deadline."""
        return self._left_ms / 1_000

    async def position(self, log: Description, start: Position | Since) -> Position:
        """Where a read begins: of what was committed since a time, with what can be read of it."""
        if not isinstance(start, Since):
            return start
        found = await self.call(PositionAt(log.id, start.at), At, f"find a time in {log.name}")
        return max(log.start, min(found.position, log.settled))

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
        wait_ms: Milliseconds = 0,
    ) -> A:
        """Have something done to the log of this name, once.

        What was done may be what took the name away. So if it is gone, the request is made all the
        same, of no log: one that was made before gets its first answer. Any other is refused, which
        isn't remembered: once there is such a log, the same request can be granted.
        """
        try:
            log = await self.log(name)
        except (Refresh, UnknownLog) as gone:
            if not once.keyed:
                raise
            try:
                return await self.call(message(NOWHERE, Kind.ROOT), kind, what, wait_ms)
            except UnknownLog:
                raise gone from None
        return await self.call(message(log.id, log.kind), kind, what, wait_ms)

    @property
    def _left_ms(self) -> Milliseconds:
        return max(1, round((self._until - asyncio.get_running_loop().time()) * 1_000))

    async def _in_time(
        self,
        answer: Coroutine[Any, Any, A],
        what: str,
        wait_ms: Milliseconds,
        grace_ms: Milliseconds | None = None,
    ) -> A:
        grace_ms = self.front.backend.grace_ms if grace_ms is None else grace_ms
        until = self._until + (wait_ms + grace_ms) / 1_000
        try:
            async with asyncio.timeout_at(until):
                return await (self._while_wanted(answer) if wait_ms > 0 else answer)
        except TimeoutError:
            # Whoever changes something says what may have become of it.
            raise DeadlineExceeded.of_read(what, self._deadline_ms + wait_ms) from None

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

    def __init__(self, request: Request, key: str | None, asked: bytes = b"") -> None:
        """`asked`: all that the request says, so that a key isn't taken for another request."""
        self.keyed = key is not None
        self.key = key
        if key is None:
            self.id = secrets.token_bytes(16)
        else:
            named = f"{request.method} {request.scope['path']}\n{key}"
            self.id = named_request(blake2b(named.encode(), digest_size=16).digest(), asked)


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
            alias=KEY,
            min_length=1,
            max_length=4 * REQUEST_ID_CHARS_MAX,
            description="A request repeated with the same key is done once and gets its first "
            "answer, whatever has become of the log. A key belongs to one method and path, and "
            "what was done under it is known for an hour; with another body, or by somebody else, "
            f"it is refused. A refusal that may pass isn't kept. {REQUEST_ID_CHARS_MAX} characters "
            "at most, in UTF-8.",
        ),
    ] = None,
) -> Once:
    if key is None:
        return Once(request, None)
    text = _text(key)
    if len(text) > REQUEST_ID_CHARS_MAX:
        raise BadRequest(KEY, f"it has {len(text)} characters of {REQUEST_ID_CHARS_MAX} at most")
    if request.scope["path"].endswith(entry.RECORDS):
        # What an append asks is told from its records, wherever they come from.
        return Once(request, text)
    who: str = request.scope["state"].get(entry.WHO, STRANGERS)
    query = urlencode(sorted(request.query_params.multi_items()))
    said = (who.encode(), query.encode(), _canonical(await request.body()))
    return Once(request, text, b"\n".join(said))


def _text(key: str) -> str:
    """A header's bytes come as Latin-1; where they are UTF-8 they mean that, as everywhere else."""
    try:
        return key.encode("latin-1").decode()
    except UnicodeError:
        return key


def _canonical(body: bytes) -> bytes:
    """The same for all spellings of the same JSON."""
    try:
        return msgspec.json.encode(msgspec.json.decode(body), order="sorted")
    except (msgspec.DecodeError, RecursionError):
        return body


Ask = Annotated[Asking, Depends(asking)]
OnlyOnce = Annotated[Once, Depends(once)]
