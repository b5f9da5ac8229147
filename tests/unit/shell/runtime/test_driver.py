"""The driver's duties (core/machine.py), on machines that do as they are told."""

import asyncio
import io
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Self

import pytest

from anabranch.core.askers import asker_of
from anabranch.core.bolt.protocol.clients import BOLT
from anabranch.core.bolt.protocol.messages import (
    Append,
    Appended,
    Confirmed,
    Delivered,
    Describe,
    ServerMessage,
    Subscribe,
    Survey,
)
from anabranch.core.errors import ObjectMissing, StorageFull, UnknownLog
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import (
    CancelTimer,
    DeleteObjects,
    Effect,
    Effects,
    Event,
    GetFailed,
    GetObject,
    Gone,
    ListObjects,
    ObjectPut,
    ObjectRead,
    ObjectsDeleted,
    ObjectsListed,
    Persist,
    Persisted,
    PersistFailed,
    PutFailed,
    PutObject,
    Received,
    Replies,
    Reply,
    Request,
    Requests,
    SaveSnapshot,
    Send,
    SetTimer,
    SnapshotSaved,
    TimerFired,
)
from anabranch.core.records.objects import object_id
from anabranch.core.types import MS, LogId, Nanoseconds
from anabranch.core.wire.session import Cancel, Credit
from anabranch.shell.journal.memory import MemoryJournal
from anabranch.shell.objects.memory import MemoryStore
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.runtime.driver import Host
from anabranch.shell.runtime.timers import Timers
from anabranch.shell.server.local import Local
from anabranch.shell.telemetry.log import Log

NODE = "node"
OBJECT = object_id(1, 7)


class Puppet:
    """Answers each event as its rule says, and remembers what it was given and when."""

    def __init__(self, rule: Callable[[Event], Sequence[Effect]], first: Effects = ()) -> None:
        self._rule = rule
        self._first = first
        self._heard = asyncio.Event()
        self.given: list[Event] = []
        self.times: list[Nanoseconds] = []

    def start(self, now: Nanoseconds) -> Effects:
        self.times.append(now)
        return self._first

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        self.given.append(event)
        self.times.append(now)
        self._heard.set()
        return tuple(self._rule(event))

    async def heard(self, count: int) -> list[Event]:
        """What it was given, once that is so much."""
        while len(self.given) < count:
            self._heard.clear()
            await asyncio.wait_for(self._heard.wait(), 10)
        return self.given


class Ear:
    """A caller that notes what it is told, and when the turn was over."""

    def __init__(self) -> None:
        self.told: list[tuple[int, ServerMessage] | str] = []

    def answer(self, request: int, message: ServerMessage) -> None:
        self.told.append((request, message))

    def answer_many(self, requests: Sequence[int], messages: Sequence[ServerMessage]) -> None:
        self.told.append("together")
        self.told += zip(requests, messages, strict=True)

    def flush(self) -> None:
        self.told.append("flush")


class FullJournal(MemoryJournal):
    """Full at first; there is room after so many refusals."""

    refusals = 3

    def append(self, entries: Sequence[bytes]) -> int:
        self.refusals -= 1
        if self.refusals >= 0:
            raise StorageFull("the journal")
        return super().append(entries)


class BrokenJournal(MemoryJournal):
    def append(self, entries: Sequence[bytes]) -> int:
        raise ZeroDivisionError


def silent(event: Event) -> Sequence[Effect]:
    return ()


def run(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, 60))


class Stage:
    """A host with puppets, and what it logged."""

    def __init__(self, journal: MemoryJournal | None = None, **puppets: Puppet) -> None:
        self.lines = io.StringIO()
        self.store = MemoryStore()
        clock = Clock()
        journal = journal or MemoryJournal()
        journal.recover()
        log = Log(clock.now, stream=self.lines)
        self.host = Host("c", journal, self.store, now=clock.now, log=log)
        self.host.start(dict(puppets))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.host.stop()


def test_events_come_in_order_and_a_timer_for_now_sees_the_whole_turn() -> None:
    async def scene() -> None:
        def rule(event: Event) -> Sequence[Effect]:
            match event:
                case Request(token):
                    return (SetTimer("end", 0), Send(NODE, token & 0xFF))
                case _:
                    return ()

        puppet = Puppet(rule)
        async with Stage(node=puppet) as stage:
            seat = stage.host.seat(NODE, Ear())
            for request in (1, 2, 3):
                seat.ask(request, Survey())
            given = await puppet.heard(7)
            assert [type(event) for event in given[:3]] == [Request] * 3
            assert given[3:6] == [Received(NODE, n) for n in (1, 2, 3)]
            assert given[6:] == [TimerFired("end")]
            assert stage.host.counters.turns == 1

    run(scene())


def test_replies_go_out_before_a_timer_for_now() -> None:
    async def scene() -> None:
        here = Ear()

        def rule(event: Event) -> Sequence[Effect]:
            match event:
                case Request(token):
                    return (SetTimer("end", 0), Reply(token, Appended(token)))
                case _:
                    here.told.append(type(event).__name__)
                    return ()

        puppet = Puppet(rule)
        async with Stage(node=puppet) as stage:
            stage.host.seat(NODE, here).ask(1, Survey())
            await puppet.heard(2)
            assert here.told[1:] == ["flush", "TimerFired"]

    run(scene())


def test_replies_of_a_turn_are_flushed_once_and_only_to_who_is_there() -> None:
    async def scene() -> None:
        puppet = Puppet(lambda event: [Reply(t, Appended(t)) for t in tokens_of(event)])
        async with Stage(node=puppet) as stage:
            here, gone = Ear(), Ear()
            seat, empty = stage.host.seat(NODE, here), stage.host.seat(NODE, gone)
            for request in (1, 2):
                seat.ask(request, Survey())
                empty.ask(request, Survey())
            empty.leave([1, 2])
            given = await puppet.heard(5)
            tokens = [event.token for event in given if isinstance(event, Request)]
            assert len(set(tokens)) == 4
            assert given[4] == Gone(tokens[1::2])
            assert here.told == [(1, Appended(tokens[0])), (2, Appended(tokens[2])), "flush"]
            assert gone.told == []

    run(scene())


def tokens_of(event: Event) -> list[int]:
    return [event.token] if isinstance(event, Request) else []


def test_appends_that_come_together_are_one_event_and_answered_as_one() -> None:
    async def scene() -> None:
        def rule(event: Event) -> Sequence[Effect]:
            match event:
                case Requests(tokens, messages):
                    return [Replies(tokens, [Appended(m.log) for m in messages])]
                case _:
                    return ()

        def appends(*logs: int) -> list[Append]:
            return [Append(LogId(log), b"") for log in logs]

        puppet = Puppet(rule)
        async with Stage(node=puppet) as stage:
            one, two, gone = Ear(), Ear(), Ear()
            first, second = stage.host.seat(NODE, one), stage.host.seat(NODE, two)
            third = stage.host.seat(NODE, gone)
            first.ask_many([1, 2], appends(11, 12))
            third.ask_many([1], appends(31))
            second.ask_many([1, 2, 3], appends(21, 22, 23))
            first.ask(3, Survey())
            first.ask_many([4], appends(13))
            third.leave([])
            given = await puppet.heard(3)
            assert [type(event) for event in given] == [Requests, Request, Requests]
            assert isinstance(given[0], Requests)
            assert [m.log for m in given[0].messages] == [11, 12, 31, 21, 22, 23]
            assert one.told == [
                *("together", (1, Appended(11)), (2, Appended(12))),
                (4, Appended(13)),
                "flush",
            ]
            assert two.told == [
                *("together", (1, Appended(21)), (2, Appended(22)), (3, Appended(23))),
                "flush",
            ]
            assert gone.told == []

    run(scene())


def test_messages_that_name_a_request_are_given_its_token() -> None:
    async def scene() -> None:
        puppet = Puppet(silent)
        async with Stage(node=puppet) as stage:
            stage.host.seat(NODE, Ear())
            seat = stage.host.seat(NODE, Ear())
            seat.ask(7, Survey())
            seat.refer(8, Credit(7, 100))
            seat.refer(9, Cancel(7))
            asked, credit, cancel = await puppet.heard(3)
            assert isinstance(asked, Request)
            assert isinstance(credit, Request)
            assert isinstance(cancel, Request)
            assert credit.message == Credit(asked.token, 100)
            assert cancel.message == Cancel(asked.token)

    run(scene())


def test_timers_fire_once_after_their_time_and_move_and_are_cancelled() -> None:
    async def scene() -> None:
        started = Clock().now()
        soon, later = started + 5 * MS, started + 10 * MS
        puppet = Puppet(
            silent,
            (
                SetTimer("moved", soon),
                SetTimer("cancelled", soon),
                SetTimer("stays", later),
                SetTimer("moved", later),
                CancelTimer("cancelled"),
            ),
        )
        async with Stage(node=puppet) as stage:
            fired = await puppet.heard(2)
            assert fired == [TimerFired("stays"), TimerFired("moved")]
            assert puppet.times[1] >= later
            assert puppet.times == sorted(puppet.times)
            assert stage.host.counters.timers == 2

    run(scene())


def test_many_moves_of_a_timer_leave_no_litter() -> None:
    timers = Timers()
    for at in range(10_000):
        timers.set(("node", "key"), at)
    assert timers.due(9_998) is None
    assert timers.due(9_999) == ("node", "key")
    assert timers.due(1 << 60) is None
    assert timers.next() is None


def test_every_stored_effect_is_answered() -> None:
    async def scene() -> None:
        puppet = Puppet(silent)
        async with Stage(node=puppet) as stage:
            perform = stage.host.storing.perform
            perform(NODE, Persist([b"a", b"b"]))
            assert await puppet.heard(1) == [Persisted(2)]
            perform(NODE, SaveSnapshot(2, b"state"))
            perform(NODE, PutObject(OBJECT, [b"ab", memoryview(b"cd")]))
            await puppet.heard(3)
            assert SnapshotSaved(2) in puppet.given
            assert ObjectPut(OBJECT) in puppet.given
            await stage.store.put("c/data/stranger", [b""])
            for effect in (PutObject(OBJECT, [b"x"]), GetObject(5, OBJECT, 1, 2), ListObjects()):
                perform(NODE, effect)
            put, read, listed = (await puppet.heard(6))[3:]
            assert isinstance(put, PutFailed)
            assert put.error.code == "object-exists"
            assert read == ObjectRead(5, b"bc")
            assert listed == ObjectsListed([OBJECT])
            perform(NODE, DeleteObjects([OBJECT]))
            assert (await puppet.heard(7))[6] == ObjectsDeleted([OBJECT])
            perform(NODE, GetObject(6, OBJECT, 0, 1))
            failed = (await puppet.heard(8))[7]
            assert isinstance(failed, GetFailed)
            assert isinstance(failed.error, ObjectMissing)

    run(scene())


def test_a_full_disk_is_an_answer_and_said_once() -> None:
    async def scene() -> None:
        def again(event: Event) -> Sequence[Effect]:
            return (Persist([b"entry"]),) if isinstance(event, PersistFailed) else ()

        puppet = Puppet(again, (Persist([b"entry"]),))
        async with Stage(FullJournal(), node=puppet) as stage:
            *failed, persisted = await puppet.heard(4)
            assert persisted == Persisted(1)
            for event in failed:
                assert isinstance(event, PersistFailed)
                assert event.error.code == "storage-full"
            said = stage.lines.getvalue().splitlines()
            assert len(said) == 2
            assert "storage-full" in said[0]
            assert "works again" in said[1]
            assert not stage.host.failed.done()

    run(scene())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_store_that_breaks_stops_the_host() -> None:
    async def scene() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        puppet = Puppet(silent, (Persist([b"entry"]),))
        async with Stage(BrokenJournal(), node=puppet) as stage:
            assert "ZeroDivisionError" in await stage.host.failed
            assert puppet.given == []

    run(scene())


def test_a_machine_that_fails_stops_the_host_and_nothing_of_its_step_is_done() -> None:
    async def scene() -> None:
        reported: list[dict[str, Any]] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context))

        def rule(event: Event) -> Sequence[Effect]:
            assert not isinstance(event, Request) or event.message != Describe("bad"), "as it was"
            return [Reply(token, Appended(0)) for token in tokens_of(event)]

        puppet = Puppet(rule)
        async with Stage(node=puppet) as stage:
            ear = Ear()
            seat = stage.host.seat(NODE, ear)
            for request, message in enumerate((Survey(), Describe("bad"), Survey())):
                seat.ask(request, message)
            why = await stage.host.failed
            assert "as it was" in why
            assert len(puppet.given) == 2
            assert "flush" not in ear.told, "an answer of a turn that failed isn't given"
            assert "Describe(log='bad')" in stage.lines.getvalue()
            assert isinstance(reported[0]["exception"], AssertionError)
            seat.ask(9, Survey())
            await asyncio.sleep(0)
            assert len(puppet.given) == 2

    run(scene())


def test_a_local_call_is_answered_refused_or_forgotten() -> None:
    async def scene() -> None:
        def rule(event: Event) -> Sequence[Effect]:
            match event:
                case Request(token, Survey()):
                    return (Reply(token, Appended(1)),)
                case Request(token, Describe("missing")):
                    return (Reply(token, Refused.of(UnknownLog("missing"))),)
                case _:
                    return ()

        puppet = Puppet(rule)
        async with Stage(node=puppet) as stage:
            local = Local(stage.host, NODE, BOLT)
            assert await local.call(Survey()) == Appended(1)
            with pytest.raises(UnknownLog, match="no log missing"):
                await local.call(Describe("missing"))
            waiting = asyncio.ensure_future(local.call(Describe("silence")))
            asked = (await puppet.heard(3))[2]
            waiting.cancel()
            gone = (await puppet.heard(4))[3]
            assert isinstance(asked, Request)
            assert gone == Gone([asked.token])

    run(scene())


def test_a_local_stream_gives_credit_for_what_is_taken_and_says_when_it_is_closed() -> None:
    async def scene() -> None:
        delivered = Delivered([], [b"12345"], False)

        def rule(event: Event) -> Sequence[Effect]:
            match event:
                case Request(token, Subscribe()):
                    return (Reply(token, delivered), Reply(token, Confirmed(3)))
                case _:
                    return ()

        puppet = Puppet(rule)
        async with Stage(node=puppet) as stage:
            stream = Local(stage.host, NODE, BOLT).stream(Subscribe(LogId(1), 0))
            assert await anext(stream) == delivered
            assert await anext(stream) == Confirmed(3)
            await stream.aclose()
            subscribed, credit, gone = await puppet.heard(3)
            assert isinstance(subscribed, Request)
            assert isinstance(credit, Request)
            assert credit.message == Credit(subscribed.token, 5)
            assert gone == Gone([subscribed.token])

    run(scene())


def test_a_snapshot_that_cannot_be_saved_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stubborn(MemoryJournal):
        refusals = 2

        def save_snapshot(self, index: int, content: bytes) -> None:
            if self.refusals:
                self.refusals -= 1
                raise StorageFull("the journal")
            super().save_snapshot(index, content)

    async def scene() -> None:
        monkeypatch.setattr("anabranch.shell.runtime.storage.RETRY_S", 0.001)
        puppet = Puppet(silent, (Persist([b"entry"]),))
        async with Stage(Stubborn(), node=puppet) as stage:
            await puppet.heard(1)
            stage.host.storing.perform(NODE, SaveSnapshot(1, b"state"))
            assert (await puppet.heard(2))[1] == SnapshotSaved(1)

    run(scene())


def test_a_token_tells_the_principal_and_the_connection_that_ask() -> None:
    async def scene() -> None:
        puppet = Puppet(lambda event: [Reply(t, Appended(t)) for t in tokens_of(event)])
        async with Stage(node=puppet) as stage:
            callers = [(name, Ear()) for name in ("ann", "ann", "bob", "")]
            for name, ear in callers:
                stage.host.seat(NODE, ear, name).ask(1, Survey())
            tokens = [each.token for each in await puppet.heard(4) if isinstance(each, Request)]
            first, second, third, fourth = map(asker_of, tokens)
            assert first == second
            assert len({first, third, fourth}) == 3
            assert [ear.told[0] for _, ear in callers] == [(1, Appended(token)) for token in tokens]

    run(scene())
