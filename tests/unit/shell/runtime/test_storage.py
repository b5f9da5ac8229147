"""What machines want stored, and what they are told of it: once, and nothing after the end."""

import asyncio
import io
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from anabranch.core.errors import ObjectExists, StorageFailed, StorageFull, Unavailable
from anabranch.core.machine import (
    Buffer,
    DeleteObjects,
    EntriesRead,
    Event,
    GetObject,
    ListQuarantine,
    ObjectPut,
    ObjectRead,
    ObjectsDeleted,
    ObjectsQuarantined,
    ObjectsReturned,
    Persist,
    Persisted,
    PersistFailed,
    PurgeQuarantine,
    PutFailed,
    PutObject,
    PutsSigned,
    PutTarget,
    QuarantineListed,
    QuarantineObjects,
    QuarantinePurged,
    RangesSigned,
    ReadEntries,
    ReadFailed,
    ReturnObjects,
    SignFailed,
    SignPuts,
    SignRanges,
)
from anabranch.core.records.objects import ObjectName, object_id
from anabranch.core.types import ObjectId
from anabranch.ports import NewObject
from anabranch.shell.journal.memory import MemoryJournal
from anabranch.shell.objects.memory import MemoryStore
from anabranch.shell.runtime import storage
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.runtime.storage import Storing
from anabranch.shell.telemetry.log import Log

ONE, TWO = object_id(1, 1), object_id(1, 2)


class Store(MemoryStore):
    """Refuses as often as it is told to, and holds PUTs back until it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals = 0
        self.fault: Exception = Unavailable("the object store", "a storm")
        self.open = asyncio.Event()
        self.open.set()

    def _refuse(self) -> None:
        if self.refusals:
            self.refusals -= 1
            raise self.fault

    async def put(self, name: str, parts: Sequence[Buffer]) -> None:
        await self.open.wait()
        self._refuse()
        await super().put(name, parts)

    async def delete(self, names: Sequence[str]) -> None:
        self._refuse()
        await super().delete(names)

    def names(self) -> list[str]:
        return sorted(self._objects)


class Stage:
    def __init__(self, journal: MemoryJournal | None = None) -> None:
        self.events: asyncio.Queue[tuple[str, Event]] = asyncio.Queue()
        self.failures: list[str] = []
        self.lines = io.StringIO()
        self.store = Store()
        journal = journal or MemoryJournal()
        journal.recover()
        log = Log(Clock().now, stream=self.lines)
        self.storing = Storing(
            "c",
            journal,
            self.store,
            log,
            post=lambda node, event: self.events.put_nowait((node, event)),
            fail=self.failures.append,
        )

    async def answered(self, *effects: Any) -> list[Event]:
        """As many answers as these are effects, in any order."""
        for effect in effects:
            self.storing.perform("node", effect)
        found = [await self.events.get() for _ in effects]
        assert all(node == "node" for node, _ in found)
        return [event for _, event in found]


class PromptMemory(MemoryJournal):
    """Notes which thread appends; full after so many groups."""

    prompt = True
    room = 2

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[threading.Thread] = []

    def append(self, entries: Sequence[bytes]) -> int:
        self.threads.append(threading.current_thread())
        if len(self.threads) > self.room:
            raise StorageFull("the journal")
        return super().append(entries)


def run(
    scene: Callable[[Stage], Coroutine[Any, Any, None]], journal: MemoryJournal | None = None
) -> None:
    async def staged() -> None:
        stage = Stage(journal)
        try:
            await asyncio.wait_for(scene(stage), 30)
        finally:
            stage.store.open.set()
            await stage.storing.stop()

    asyncio.run(staged())


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried again later is tried again now."""
    monkeypatch.setattr(storage, "RETRY_S", 0)


def path(object: ObjectId) -> str:
    return str(ObjectName.of("c", object))


def test_orphans_go_to_quarantine_and_back_or_are_purged() -> None:
    async def scene(stage: Stage) -> None:
        await stage.answered(PutObject(ONE, [b"1"]), PutObject(TWO, [b"2"]))
        assert await stage.answered(QuarantineObjects([ONE, TWO])) == [
            ObjectsQuarantined([ONE, TWO])
        ]
        assert not {path(ONE), path(TWO)} & {*stage.store.names()}
        [listed] = await stage.answered(ListQuarantine())
        assert isinstance(listed, QuarantineListed)
        assert [object for object, _ in listed.objects] == [ONE, TWO]
        assert await stage.answered(ReturnObjects([ONE])) == [ObjectsReturned([ONE])]
        assert await stage.answered(PurgeQuarantine([TWO])) == [QuarantinePurged()]
        assert stage.store.names() == [path(ONE)]
        assert await stage.answered(GetObject(3, ONE, 0, 1)) == [ObjectRead(3, b"1")]

    run(scene)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("effect", "answer"),
    [
        (DeleteObjects([ONE]), ObjectsDeleted([ONE])),
        (QuarantineObjects([ONE]), ObjectsQuarantined([ONE])),
        (PurgeQuarantine([ONE]), QuarantinePurged()),
    ],
    ids=["delete", "quarantine", "purge"],
)
def test_what_a_machine_cannot_be_refused_is_tried_until_it_works(
    effect: Any, answer: Event
) -> None:
    async def scene(stage: Stage) -> None:
        await stage.answered(PutObject(ONE, [b"1"]))
        stage.store.refusals = 3
        assert await stage.answered(effect) == [answer]
        assert path(ONE) not in stage.store.names() or isinstance(effect, PurgeQuarantine)
        said = stage.lines.getvalue()
        assert said.count("storage refused") == said.count("works again") == 1
        assert stage.storing.counters.errors == 3
        assert stage.events.empty()

    run(scene)


def test_a_refused_put_is_answered_and_the_next_one_is_its_own() -> None:
    async def scene(stage: Stage) -> None:
        stage.store.refusals = 1
        [failed] = await stage.answered(PutObject(ONE, [b"1"]))
        assert isinstance(failed, PutFailed)
        assert (failed.object, failed.error.code) == (ONE, Unavailable.code)
        assert await stage.answered(PutObject(ONE, [b"1"])) == [ObjectPut(ONE)]
        [again] = await stage.answered(PutObject(ONE, [b"1"]))
        assert isinstance(again, PutFailed)
        assert again.error.code == ObjectExists.code

    run(scene)


def test_entries_are_read_back_or_refused_by_their_token() -> None:
    async def scene(stage: Stage) -> None:
        assert await stage.answered(Persist([b"a", b"b", b"c"])) == [Persisted(3)]
        assert await stage.answered(ReadEntries(7, 2, 4)) == [EntriesRead(7, [b"b", b"c"])]
        [refused] = await stage.answered(ReadEntries(8, 0, 1))
        assert isinstance(refused, ReadFailed)
        assert (refused.token, refused.error.code) == (8, StorageFailed.code)

    run(scene)


def test_parts_are_not_changed_and_stand_one_behind_the_other() -> None:
    async def scene(stage: Stage) -> None:
        owner = bytearray(b"0123456789")
        parts: list[Buffer] = [b"<", memoryview(owner)[2:5], bytearray(b">")]
        assert await stage.answered(PutObject(ONE, parts)) == [ObjectPut(ONE)]
        owner[:] = bytes(10)
        assert await stage.answered(GetObject(1, ONE, 0, 5)) == [ObjectRead(1, b"<234>")]

    run(scene)


def test_nothing_is_answered_after_the_end() -> None:
    async def scene(stage: Stage) -> None:
        stage.store.open.clear()
        stage.storing.perform("node", PutObject(ONE, [b"1"]))
        await asyncio.sleep(0)
        await stage.storing.stop()
        stage.store.open.set()
        await asyncio.sleep(0)
        assert stage.events.empty()
        assert stage.store.names() == []
        assert stage.failures == []

    run(scene)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_error_that_is_not_ours_is_a_bug_and_no_answer() -> None:
    async def scene(stage: Stage) -> None:
        seen = asyncio.Event()
        asyncio.get_running_loop().set_exception_handler(lambda *_: seen.set())
        stage.store.refusals, stage.store.fault = 1, ZeroDivisionError("oops")
        stage.storing.perform("node", PutObject(ONE, [b"1"]))
        await seen.wait()
        [failure] = stage.failures
        assert "put" in failure
        assert "oops" in failure
        assert stage.events.empty()

    run(scene)


def test_only_small_groups_of_a_prompt_journal_are_appended_by_the_loop() -> None:
    journal = PromptMemory()

    async def scene(stage: Stage) -> None:
        stage.storing.perform("node", Persist([b"small", bytes(storage.PROMPT_BYTES_MAX - 5)]))
        assert stage.events.get_nowait() == ("node", Persisted(2))
        assert await stage.answered(Persist([bytes(storage.PROMPT_BYTES_MAX + 1)])) == [
            Persisted(3)
        ]
        stage.storing.perform("node", Persist([b"no room"]))
        _, failed = stage.events.get_nowait()
        assert isinstance(failed, PersistFailed)
        assert failed.error.code == "storage-full"
        loops = threading.current_thread()
        assert [each is loops for each in journal.threads] == [True, False, True]

    run(scene, journal)


def test_ranges_and_puts_are_signed_by_a_store_that_can_and_refused_by_one_that_cannot() -> None:
    async def scene(stage: Stage) -> None:
        asked = SignRanges(5, [(ONE, 2, 4), (TWO, 0, 1)], 60_000)
        [failed] = await stage.answered(asked)
        assert isinstance(failed, SignFailed)
        assert (failed.token, failed.error.code) == (5, "not-fetchable")
        wanted = SignPuts(-6, [(ONE, 10, b"x" * 32)], 60_000)
        [failed] = await stage.answered(wanted)
        assert isinstance(failed, SignFailed)
        assert (failed.token, failed.error.code) == (-6, "not-fetchable")

        async def sign_put(contents: Sequence[NewObject], valid_ms: int) -> Sequence[PutTarget]:
            return [PutTarget(f"{each.name} {each.size} {valid_ms}") for each in contents]

        async def sign(ranges: Sequence[tuple[str, int, int]], valid_ms: int) -> Sequence[str]:
            return [f"{name} {offset} {length} {valid_ms}" for name, offset, length in ranges]

        stage.store.sign = sign  # type: ignore[attr-defined]
        stage.store.sign_put = sign_put  # type: ignore[attr-defined]
        assert await stage.answered(asked) == [
            RangesSigned(5, [f"{path(ONE)} 2 4 60000", f"{path(TWO)} 0 1 60000"])
        ]
        assert await stage.answered(wanted) == [
            PutsSigned(-6, [PutTarget(f"{path(ONE)} 10 60000")])
        ]

    run(scene)
