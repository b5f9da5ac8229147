"""Who finds out what isn't known: strangers take nobody else's turns."""

import asyncio
import io
from collections.abc import Coroutine
from typing import Any

import pytest

from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.messages import Describe
from anabranch.core.bolt.protocol.rights import needs
from anabranch.core.errors import Forbidden, Overloaded, Unauthenticated, UnknownLog
from anabranch.core.rights.backoff import FREE
from anabranch.core.rights.claims import Right
from anabranch.core.rights.judge import Guest, Judge, Terms
from anabranch.core.types import MS, LogId, Nanoseconds
from anabranch.shell.authority.api import CALLS_MAX
from anabranch.shell.authority.log_names import LogSubjects
from anabranch.shell.authority.reviewer import FIRST_TIME_CALLS_MAX, NEWCOMERS_MAX, Warden
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.telemetry.log import Log

TERMS = Terms(allow_ms=60_000, deny_ms=10_000, grace_ms=300_000, entries_max=1_000)
PATIENCE_S = 60.0
HERE, THERE = "10.0.0.1", "10.0.0.2"


class Reviewer:
    """`Registry`: knows whoever's token begins with a capital, and answers at most `CALLS_MAX` at
    once, as the API server's calls go; strangers wait until they are let go.
    """

    def __init__(self) -> None:
        self.strangers = asyncio.Event()
        self.asked: list[str] = []
        self._calls = asyncio.Semaphore(CALLS_MAX)
        self.allowed = True

    async def who_is(self, token: str) -> Guest | str:
        async with self._calls:
            self.asked.append(token)
            if token[0].isupper():
                return Guest(token)
            await self.strangers.wait()
            return "it is nobody's"

    async def may(self, guest: Guest, right: Right) -> bool:
        async with self._calls:
            self.asked.append(f"{guest.name} {right.subject.name}")
            return self.allowed

    async def close(self) -> None: ...


class Nowhere:
    async def describe(self, log: LogId | str) -> Description:
        raise UnknownLog(str(log))


class House:
    def __init__(self) -> None:
        self.people = Reviewer()
        self.now: Nanoseconds = 1_000_000 * MS
        self.warden = Warden(
            Judge(TERMS, "home", "anabranch"),
            self.people,
            LogSubjects(Nowhere()),
            Log(Clock().now, stream=io.StringIO()),
            now=lambda: self.now,
            deadline_ms=round(PATIENCE_S * 1_000),
        )

    def knock(self, count: int, address: str = HERE) -> list["asyncio.Task[None]"]:
        loop = asyncio.get_running_loop()
        admit = self.warden.admit
        return [loop.create_task(admit(f"random-{n}", address)) for n in range(count)]


def run(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, PATIENCE_S))


def test_strangers_leave_calls_for_those_who_are_known() -> None:
    async def scene() -> None:
        house = House()
        await house.warden.admit("Ann", THERE)
        strangers = house.knock(NEWCOMERS_MAX)
        for _ in strangers:
            await asyncio.sleep(0)  # each of them has its turn
        assert len(house.people.asked) == 1 + FIRST_TIME_CALLS_MAX
        await house.warden.permit("Ann", needs(Describe("orders")))
        house.people.strangers.set()
        await asyncio.wait(strangers)
        await house.warden.close()

    run(scene())


def test_so_many_may_wait_at_one_address_and_others_come_in() -> None:
    async def scene() -> None:
        house = House()
        strangers = house.knock(NEWCOMERS_MAX + 3)
        refused, _ = await asyncio.wait(strangers, return_when=asyncio.FIRST_COMPLETED)
        assert {type(task.exception()) for task in refused} == {Overloaded}
        house.people.strangers.set()
        await asyncio.wait(strangers)
        await house.warden.admit("Bea", THERE)
        await house.warden.close()

    run(scene())


def test_an_address_with_nothing_but_strangers_is_asked_about_ever_more_rarely() -> None:
    async def scene() -> None:
        house = House()
        house.people.strangers.set()
        for number in range(FREE + 1):
            with pytest.raises(Unauthenticated):
                await house.warden.admit(f"random-{number}", HERE)
        asked = len(house.people.asked)
        with pytest.raises(Overloaded, match=f"refused tokens from {HERE}"):
            await house.warden.admit("random", HERE)
        assert len(house.people.asked) == asked, "the API server isn't asked"
        await house.warden.admit("Ann", THERE)
        assert house.warden.known("Ann"), "a token that is known is good from anywhere"
        house.now += 1_000 * MS
        await house.warden.admit("Bea", HERE)
        with pytest.raises(Unauthenticated):
            await house.warden.admit("another", HERE)
        await house.warden.close()

    run(scene())


def test_a_name_that_is_refused_again_and_again_is_asked_about_ever_more_rarely() -> None:
    async def scene() -> None:
        house = House()
        await house.warden.admit("Ann", HERE)
        await house.warden.admit("Bea", HERE)
        house.people.allowed = False
        for number in range(FREE + 1):
            with pytest.raises(Forbidden):
                await house.warden.permit("Ann", needs(Describe(f"log-{number}")))
        asked = len(house.people.asked)
        with pytest.raises(Overloaded, match="requests of Ann that were refused"):
            await house.warden.permit("Ann", needs(Describe("log")))
        assert len(house.people.asked) == asked
        house.people.allowed = True
        await house.warden.permit("Bea", needs(Describe("log")))
        house.now += 1_000 * MS
        await house.warden.permit("Ann", needs(Describe("log")))
        await house.warden.close()

    run(scene())
