"""`Authority` by what others know: it has asked what the judge must know, each thing once at a
time, and never by two.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from anabranch.core.budget import STRANGERS
from anabranch.core.errors import (
    Forbidden,
    Overloaded,
    Retry,
    Unauthenticated,
    Unavailable,
)
from anabranch.core.rights import backoff
from anabranch.core.rights.backoff import Backoff
from anabranch.core.rights.claims import Claim, Right, Subject
from anabranch.core.rights.judge import Guest, Judge, MayThey, Question, Standing, WhatIs, WhoIs
from anabranch.core.types import LogId, Milliseconds, Nanoseconds
from anabranch.shell.authority.api import CALLS_MAX
from anabranch.shell.telemetry.log import Log
from anabranch.shell.telemetry.request_log import INTERVAL_S

WHAT = "knowledge of who may do what"
REFUSED_MAX = 4_096
"""Addresses, and names, whose refusals are counted."""
NEWCOMERS_MAX = 64
"""At one address: so many may wait to be known for the first time."""
FIRST_TIME_CALLS_MAX = CALLS_MAX // 2
"""The other calls are for those who were known before: strangers can't take them."""


class Registry(Protocol):
    """Who knows people and their rights."""

    async def who_is(self, token: str) -> Guest | str:
        """Or why it is nobody's token; raises Retry if that can't be learned now."""
        ...

    async def may(self, guest: Guest, right: Right) -> bool: ...

    async def close(self) -> None: ...


class Catalogue(Protocol):
    """Who knows logs."""

    async def subject(self, log: LogId | str) -> Subject | None:
        """The resource whose rights are a log's; None if the log is gone for good."""
        ...


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
        self._refused_addresses = Backoff(REFUSED_MAX)
        self._refused_guests = Backoff(REFUSED_MAX)
        self._newcomers: dict[str, int] = {}
        """By address: who waits there to be known for the first time."""
        self._first_time = asyncio.Semaphore(FIRST_TIME_CALLS_MAX)
        self._told_at = -INTERVAL_S
        self.counters = AuthorityCounters()

    def now(self) -> Nanoseconds:
        return self._now()

    def known(self, token: str | None) -> bool:
        """False: `admit` has to find out. Raises if it is known that this is nobody."""
        return bool(self._begun(self._admission(token)).until)

    async def admit(self, token: str | None, address: str = "") -> None:
        if self._admission(token).until:
            return
        if self._refused_addresses.until(address, self._now()):
            raise Overloaded(f"refused tokens from {address or 'here'}", backoff.FREE, "in a row")
        waiting = self._newcomers.get(address, 0)
        if waiting >= NEWCOMERS_MAX:
            raise Overloaded(
                f"tokens in question from {address or 'here'}", NEWCOMERS_MAX, "at once"
            )
        self._newcomers[address] = waiting + 1
        try:
            await self._find(lambda: self._admission(token))
        except Unauthenticated:
            self._refused_addresses.refused(address, self._now())
            raise
        else:
            self._refused_addresses.accepted(address)
        finally:
            self._leave(address)

    def _leave(self, address: str) -> None:
        waiting = self._newcomers.pop(address) - 1
        if waiting:
            self._newcomers[address] = waiting

    def principal(self, token: str | None) -> str:
        guest = self._judge.guest(token, self._now()) if token else None
        return guest.name if guest else STRANGERS

    def standing(self, token: str | None, claims: Sequence[Claim]) -> Nanoseconds:
        """Until when it is allowed; 0: `permit` has to find out. Raises if it isn't."""
        return self._begun(self._standing(token, claims)).until

    async def permit(self, token: str | None, claims: Sequence[Claim]) -> Nanoseconds:
        """Until when; by an answer that isn't doubtful, if there is one to be had."""
        found = self._standing(token, claims)
        guest = self._judge.guest(token or "", self._now())
        who = guest.name if guest is not None else ""
        if not found.until and self._refused_guests.until(who, self._now()):
            raise Overloaded(f"requests of {who} that were refused", backoff.FREE, "in a row")
        try:
            until = await self._find(lambda: self._standing(token, claims))
        except Forbidden:
            self._refused_guests.refused(who, self._now())
            raise
        self._refused_guests.accepted(who)
        return until

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

    def _standing(self, token: str | None, claims: Sequence[Claim]) -> Standing:
        assert token is not None, "it was let in by it"
        try:
            return self._judge.standing(token, claims, self._now())
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
                if judge.guest(token, self._now()) is not None:
                    found = await self._registry.who_is(token)
                else:
                    async with self._first_time:
                        found = await self._registry.who_is(token)
                judge.met(question, found, self._now())
            case WhatIs(log):
                judge.described(question, await self._catalogue.subject(log), self._now())
            case MayThey(guest, right):
                allowed = await self._registry.may(guest, right)
                judge.ruled(question, self._now(), allowed=allowed)
