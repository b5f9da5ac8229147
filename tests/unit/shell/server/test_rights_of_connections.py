"""A connection does what it may, in the order in which it was asked, and waits where that isn't
known.
"""

import asyncio
import io
import time
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec.structs import replace
from tests.unit.described import described
from tests.unit.shell.server.test_connection import Stage

from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.messages import (
    Append,
    Appended,
    Delivered,
    Hello,
    Read,
    ServerMessage,
    Subscribe,
    Survey,
    Welcome,
)
from anabranch.core.bolt.protocol.rights import needs
from anabranch.core.errors import BadFrame, Unavailable, UnknownLog
from anabranch.core.errors.refused import Refused
from anabranch.core.rights.claims import Right, Verb
from anabranch.core.rights.judge import Guest, Judge, Terms
from anabranch.core.types import MS, LogId, Nanoseconds
from anabranch.core.wire.session import Cancel
from anabranch.shell.authority.log_names import LogSubjects
from anabranch.shell.authority.reviewer import Warden
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.telemetry.log import Log

PATIENCE_S = 60.0
OURS, THEIRS, NEVER_MADE = LogId(1), LogId(2), LogId(3)
TERMS = Terms(allow_ms=60_000, deny_ms=10_000, grace_ms=300_000, entries_max=100)


class People:
    """`Registry`: who knows who may do what, when it feels like it."""

    def __init__(self) -> None:
        self.guest: Guest | str = Guest("ann")
        self.rights = {(Verb.APPEND, "ours"), (Verb.READ, "ours")}
        self.asked: list[Any] = []
        self.away = False
        self.fault: Exception | None = None
        self.free = asyncio.Event()
        self.free.set()

    async def who_is(self, token: str) -> Guest | str:
        await self._answer(token)
        return self.guest

    async def may(self, guest: Guest, right: Right) -> bool:
        await self._answer((right.verb.value, right.subject.name))
        return (right.verb, right.subject.name) in self.rights

    async def close(self) -> None: ...

    async def _answer(self, asked: object) -> None:
        self.asked.append(asked)
        await self.free.wait()
        if self.fault is not None:
            raise self.fault
        if self.away:
            raise Unavailable("the API server", "it is away")


class Names:
    async def describe(self, log: LogId | str) -> Description:
        names = {OURS: "ours", THEIRS: "theirs"}
        if not isinstance(log, str) and log in names:
            return described(log, names[log])
        raise UnknownLog(str(log))


class Door:
    """A connection at a machine, with a warden before it."""

    def __init__(self, now: Callable[[], Nanoseconds] | None = None, terms: Terms = TERMS) -> None:
        self.people = People()
        self.late: Nanoseconds = 0
        clock = Clock()
        self.warden = Warden(
            Judge(terms, "home", "anabranch"),
            self.people,
            LogSubjects(Names()),
            Log(clock.now, stream=io.StringIO()),
            now=now or (lambda: self.late),
            deadline_ms=round(PATIENCE_S * 1_000),
        )
        self.stage = Stage(authority=self.warden)
        self.replies: list[tuple[int, ServerMessage | BadFrame]] = []

    async def until(self, so: Callable[[], object]) -> None:
        while not so():
            await asyncio.sleep(0.001)
            self.replies += self.stage.heard()

    async def answers(self, *requests: int) -> list[str]:
        """What became of these: the code of a refusal, or the kind of the answer."""
        await self.until(lambda: set(requests) <= {request for request, _ in self.replies})
        found = dict(self.replies)
        return [_kind(found[request]) for request in requests]

    async def serve(self) -> None:
        """Let the machine answer the appends it has."""
        await self.stage.turn()
        appends = [token for token, asked in self.stage.machine.requests if type(asked) is Append]
        await self.stage.turn(*[(token, Appended(n)) for n, token in enumerate(appends)])

    @property
    def asked(self) -> list[str]:
        return [type(each).__name__ for each in self.stage.asked]


def _kind(message: ServerMessage | BadFrame) -> str:
    return message.code if isinstance(message, Refused | BadFrame) else type(message).__name__


def run(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, 2 * PATIENCE_S))


async def welcomed() -> Door:
    door = Door()
    assert await door.answers(9_999) == ["Welcome"]
    return door


def test_nothing_is_read_before_it_is_known_who_it_is() -> None:
    async def scene() -> None:
        door = Door()
        door.people.free.clear()
        door.stage.say((1, Append(OURS, b"x")))
        await door.until(lambda: door.people.asked == ["token"])
        assert not door.stage.pipe.reading
        assert door.stage.asked == []
        door.people.free.set()
        await door.until(lambda: door.asked == ["Append"])
        assert door.stage.pipe.reading
        assert isinstance(door.replies[0][1], Welcome)

    run(scene())


def test_nobody_is_turned_away_with_the_reason() -> None:
    async def scene() -> None:
        door = Door()
        door.people.guest = "its time is over"
        door.stage.say((1, Append(OURS, b"x")))
        assert await door.answers(9_999) == ["unauthenticated"]
        assert door.stage.pipe.closed
        assert door.stage.asked == []
        assert door.warden.counters.unauthenticated == 1

    run(scene())


def test_who_cant_be_known_now_may_come_again() -> None:
    async def scene() -> None:
        door = Door()
        door.people.away = True
        assert await door.answers(9_999) == ["unavailable"]
        assert door.stage.pipe.closed
        assert door.warden.counters.failed == 1

    run(scene())


def test_what_is_allowed_is_done_in_order_and_what_isnt_is_refused_alone() -> None:
    async def scene() -> None:
        door = await welcomed()
        door.stage.say(
            (1, Append(OURS, b"a")),
            (2, Append(THEIRS, b"b")),
            (3, Append(OURS, b"c")),
            (4, Read(OURS, 0, 1, 1)),
            (5, Survey()),
            (6, Append(NEVER_MADE, b"d")),
        )
        assert await door.answers(2, 6) == ["forbidden", "unknown-log"]
        await door.serve()
        assert await door.answers(1, 3) == ["Appended", "Appended"]
        assert [bytes(each.batch) for each in door.stage.asked if type(each) is Append] == [
            b"a",
            b"c",
        ]
        assert door.asked == ["Append", "Append", "Read", "Survey"]

    run(scene())


def test_what_is_known_isnt_asked_again() -> None:
    async def scene() -> None:
        door = await welcomed()
        for number in range(1, 100):
            door.stage.say((number, Append(OURS, b"a")))
        await door.until(lambda: len(door.asked) == 99)
        assert door.people.asked == ["token", ("append", "ours")]
        door.stage.say(*[(number, Append(OURS, b"a")) for number in range(100, 200)])
        await door.stage.turn()
        assert len(door.asked) == 199
        assert door.people.asked == ["token", ("append", "ours")]

    run(scene())


def test_while_the_registry_is_away_what_was_allowed_stays_so_and_nothing_else() -> None:
    async def scene() -> None:
        door = await welcomed()
        door.stage.say((1, Append(OURS, b"a")))
        await door.until(lambda: door.asked == ["Append"])
        door.people.away = True
        door.late = (TERMS.allow_ms + TERMS.grace_ms) * MS - 1
        door.stage.say((2, Append(OURS, b"b")), (3, Read(OURS, 0, 1, 1)))
        await door.until(lambda: door.asked == ["Append", "Append"])
        assert await door.answers(3) == ["unavailable"]
        door.late += 1_000 * MS
        door.stage.say((4, Append(OURS, b"c")))
        assert await door.answers(4) == ["unavailable"]

    run(scene())


def test_a_right_that_was_taken_away_is_gone_when_its_time_is_over() -> None:
    async def scene() -> None:
        door = await welcomed()
        door.stage.say((1, Append(OURS, b"a")))
        await door.until(lambda: door.asked == ["Append"])
        door.people.rights.clear()
        door.late = TERMS.allow_ms * MS
        # What is in doubt is still a yes, and is asked about.
        door.stage.say((2, Append(OURS, b"a")))
        await door.until(lambda: door.people.asked[3:] == [("append", "ours")])
        door.late += 1_000 * MS
        door.stage.say((3, Append(OURS, b"a")))
        assert await door.answers(3) == ["forbidden"]

    run(scene())


def test_a_token_that_has_lapsed_ends_the_connection_not_the_client() -> None:
    async def scene() -> None:
        door = await welcomed()
        door.people.guest = "its time is over"
        door.late = TERMS.allow_ms * MS
        door.stage.say((1, Append(OURS, b"a")))
        await door.until(lambda: len(door.people.asked) > 1)
        door.late += 1_000 * MS
        door.stage.say((2, Append(THEIRS, b"a")))
        await door.until(lambda: door.stage.pipe.closed)
        assert door.stage.server.counters.left_lapsed == 1
        assert [request for request, _ in door.replies] == [9_999]

    run(scene())


def test_a_subscription_ends_when_its_right_is_gone_and_no_other() -> None:
    async def scene() -> None:
        door = Door(time.monotonic_ns, replace(TERMS, allow_ms=1_000))
        door.people.rights.add((Verb.READ, "theirs"))
        door.stage.say((1, Subscribe(OURS, 0)), (2, Subscribe(THEIRS, 0)))
        await door.until(lambda: door.asked == ["Subscribe", "Subscribe"])
        door.people.rights.discard((Verb.READ, "theirs"))
        assert await door.answers(2) == ["forbidden"]
        await door.stage.turn((door.stage.token(0), Delivered([], [], False)))
        assert await door.answers(1) == ["Delivered"]
        cancelled = [each for each in door.stage.asked if isinstance(each, Cancel)]
        assert [each.request for each in cancelled] == [door.stage.token(1)]
        door.stage.connection.connection_lost(None)

    run(scene())


def test_what_fails_by_a_fault_of_ours_ends_the_connection() -> None:
    async def scene() -> None:
        reported: list[object] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, told: reported.append(told["exception"])
        )
        door = await welcomed()
        fault = ZeroDivisionError()
        door.people.fault = fault
        door.stage.say((1, Append(OURS, b"a")), (2, Append(OURS, b"b")))
        await door.until(lambda: door.stage.pipe.aborted)
        assert fault in reported
        assert door.stage.asked == []

    run(scene())


def test_who_leaves_while_it_is_found_out_is_forgotten() -> None:
    async def scene() -> None:
        door = await welcomed()
        door.people.free.clear()
        door.stage.say((1, Append(OURS, b"a")))
        await door.until(lambda: door.people.asked == ["token", ("append", "ours")])
        door.stage.connection.connection_lost(None)
        door.people.free.set()
        await door.warden.permit("token", needs(Append(OURS, b"a")))
        await door.stage.turn()
        assert door.stage.asked == []
        await door.warden.close()

    run(scene())


def test_hello_is_said_once() -> None:
    async def scene() -> None:
        door = await welcomed()
        door.stage.say((1, Hello(1, "again", "another")))
        assert await door.answers(1) == ["bad-request"]
        assert door.people.asked == ["token"]

    run(scene())
