"""`Authority` by what others know: it has asked what the judge must know, each thing once at a
time, and never by two.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from anabranch.core.bolt.commands import Description
from anabranch.core.errors import (
    Forbidden,
    Promoted,
    Retry,
    Squashed,
    Unauthenticated,
    Unavailable,
    UnknownLog,
)
from anabranch.core.rights.claims import Right, Subject, subject_of
from anabranch.core.rights.judge import Guest, Judge, MayThey, Question, Standing, WhatIs, WhoIs
from anabranch.core.types import LogId, Milliseconds, Nanoseconds
from anabranch.core.wire.messages import ClientMessage
from anabranch.shell.complaints import INTERVAL_S
from anabranch.shell.log import Log

WHAT = "knowledge of who may do what"


class Registry(Protocol):
    """Who knows people and their rights."""

    async def who_is(self, token: str) -> Guest | str:
        """Or why it is nobody's token; raises Retry if that can't be learned now."""
        ...

    async def may(self, guest: Guest, right: Right) -> bool: ...

    async def close(self) -> None: ...


class Catalogue(Protocol):
    """Who knows logs."""

    async def describe(self, log: LogId | str) -> Description: ...


class AuthorityCounters:
    __slots__ = ("failed", "forbidden", "questions", "unauthenticated")

    def __init__(self) -> None:
        self.questions = 0
        """Asked of the API server and of the metadata."""
        self.failed = 0
        """Of these, without an answer."""
        self.unauthenticated = 0
        self.forbidden = 0


class Warden:
    """Both judgements are made at once where all is known; `permit` and `admit` find it out."""

    selective = True
    open = False

    def __init__(
        self,
        judge: Judge,
        registry: Registry,
        catalogue: Catalogue,
        log: Log,
        *,
        now: Callable[[], Nanoseconds],
        deadline_ms: Milliseconds,
    ) -> None:
        self._judge = judge
        self._registry = registry
        self._catalogue = catalogue
        self._log = log
        self._now = now
        self._deadline_s = deadline_ms / 1_000
        self._asked: dict[Question, asyncio.Task[None]] = {}
        self._told_at = -INTERVAL_S
        self.counters = AuthorityCounters()

    def now(self) -> Nanoseconds:
        return self._now()

    def known(self, token: str | None) -> bool:
        """False: `admit` has to find out. Raises if it is known that this is nobody."""
        return bool(self._begun(self._admission(token)).until)

    async def admit(self, token: str | None) -> None:
        await self._find(lambda: self._admission(token))

    def standing(self, token: str | None, message: ClientMessage) -> Nanoseconds:
        """Until when it is allowed; 0: `permit` has to find out. Raises if it isn't."""
        return self._begun(self._standing(token, message)).until

    async def permit(self, token: str | None, message: ClientMessage) -> Nanoseconds:
        """Until when; by an answer that isn't doubtful, if there is one to be had."""
        return await self._find(lambda: self._standing(token, message))

    async def close(self) -> None:
        await self._registry.close()
        asked = list(self._asked.values())
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)

    def _admission(self, token: str | None) -> Standing:
        try:
            return self._judge.admission(token, self._now())
        except Unauthenticated:
            self.counters.unauthenticated += 1
            raise

    def _standing(self, token: str | None, message: ClientMessage) -> Standing:
        assert token is not None, "it was let in by it"
        try:
            return self._judge.standing(token, message, self._now())
        except Forbidden:
            self.counters.forbidden += 1
            raise

    async def _find(self, judged: Callable[[], Standing]) -> Nanoseconds:
        try:
            async with asyncio.timeout(self._deadline_s):
                while True:
                    found = judged()
                    if not found.ask:
                        return found.until
                    try:
                        await asyncio.shield(self._ask(found.ask[0]))
                    except Retry:
                        if found.until:
                            return found.until
                        raise
        except TimeoutError:
            found = judged()
            if found.until:
                return found.until
            reason = f"it took longer than {self._deadline_s:g} s to learn"
            raise Unavailable(WHAT, reason) from None

    def _begun(self, found: Standing) -> Standing:
        """What is in doubt is found out meanwhile."""
        if found.until:
            for question in found.ask:
                self._ask(question)
        return found

    def _ask(self, question: Question) -> asyncio.Task[None]:
        task = self._asked.get(question)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._answer(question))
            self._asked[question] = task
            task.add_done_callback(lambda done: self._answered(question, done))
        return task

    def _answered(self, question: Question, done: asyncio.Task[None]) -> None:
        del self._asked[question]
        if done.cancelled():
            return
        error = done.exception()
        if isinstance(error, Retry):
            self.counters.failed += 1
            now_s = asyncio.get_running_loop().time()
            if now_s - self._told_at >= INTERVAL_S:
                self._told_at = now_s
                self._log.warning("who may do what isn't known", reason=error.message)

    async def _answer(self, question: Question) -> None:
        self.counters.questions += 1
        judge = self._judge
        match question:
            case WhoIs(token):
                judge.met(question, await self._registry.who_is(token), self._now())
            case WhatIs(log):
                judge.described(question, await self._subject(log), self._now())
            case MayThey(guest, right):
                allowed = await self._registry.may(guest, right)
                judge.ruled(question, self._now(), allowed=allowed)

    async def _subject(self, log: LogId | str) -> Subject | None:
        """None: it is gone for good. One by its id that never was is refused as what it is: it may
        yet come to be.
        """
        try:
            return subject_of(await self._catalogue.describe(log))
        except UnknownLog:
            if isinstance(log, str):
                return None
            raise
        except (Promoted, Squashed):
            return None
