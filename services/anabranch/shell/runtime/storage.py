"""What machines want stored: the journal in one thread, snapshots in another, what is read back
from it in more, objects as tasks. Small groups of a journal that waits for no disk are appended at
once.

Every effect is answered by one event (duty 2 of a driver). Only an error of the house's own
hierarchy is an answer; any other is a bug in a store, and stops the process like one in a machine.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from anabranch.core.errors import AnabranchError, BadName
from anabranch.core.limits import KIB
from anabranch.core.machine import (
    DeleteObjects,
    EntriesRead,
    Event,
    GetFailed,
    GetObject,
    ListObjects,
    ListQuarantine,
    ObjectPut,
    ObjectRead,
    ObjectsDeleted,
    ObjectsListed,
    ObjectsQuarantined,
    ObjectsReturned,
    Persist,
    Persisted,
    PersistFailed,
    PurgeQuarantine,
    PutFailed,
    PutObject,
    PutsSigned,
    QuarantineListed,
    QuarantineObjects,
    QuarantinePurged,
    RangesSigned,
    ReadEntries,
    ReadFailed,
    ReturnObjects,
    SaveSnapshot,
    SignFailed,
    SignPuts,
    SignRanges,
    SnapshotSaved,
)
from anabranch.core.records.objects import ObjectName
from anabranch.core.types import ObjectId
from anabranch.ports import (
    Journal,
    NewObject,
    ObjectStore,
    PromptJournal,
    RecordJournal,
    StoredObject,
)
from anabranch.shell.objects import quarantine
from anabranch.shell.objects.signing import signed, signed_puts
from anabranch.shell.telemetry.log import Log

RETRY_S = 5.0
"""Between attempts at what has no failure to report to a machine: a snapshot, a deletion."""

_READERS = 2
"""Threads that read the journal back: a slow disk must not make every reader wait for one."""

PROMPT_BYTES_MAX = 64 * KIB
"""A group of so many bytes is appended by the event loop itself where the journal is prompt: to
hand it to a thread, and to be woken by that, costs several times what copying it does.
"""

Work = Future[Any] | asyncio.Future[Any]
Stored = (
    Persist
    | SaveSnapshot
    | ReadEntries
    | PutObject
    | GetObject
    | SignRanges
    | SignPuts
    | DeleteObjects
    | QuarantineObjects
    | ReturnObjects
    | PurgeQuarantine
    | ListQuarantine
    | ListObjects
)
Post = Callable[[str, Event], None]


@dataclass(slots=True)
class StoringCounters:
    groups: int = 0
    entries: int = 0
    snapshots: int = 0
    read_back: int = 0
    puts: int = 0
    gets: int = 0
    deletions: int = 0
    quarantined: int = 0
    errors: int = 0


class Storing:
    """One journal and one object store, if it has them, on behalf of the machines of a host."""

    def __init__(
        self,
        cluster: str,
        journal: Journal | None,
        store: ObjectStore | None,
        log: Log,
        *,
        post: Post,
        fail: Callable[[str], None],
    ) -> None:
        self._cluster = cluster
        self._journal = journal
        self._stored = store
        self._log = log
        self._post = post
        self._fail = fail
        self._loop = asyncio.get_running_loop()
        self._journal_thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._snapshot_thread = ThreadPoolExecutor(1, thread_name_prefix="snapshot")
        self._readback_threads = ThreadPoolExecutor(_READERS, thread_name_prefix="readback")
        self._prompt = journal if isinstance(journal, PromptJournal) else None
        self._persisting = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._troubles: dict[str, str] = {}
        self._stopped = False
        self.counters = StoringCounters()

    def perform(self, node: str, effect: Stored) -> None:
        match effect:
            case Persist():
                self._persist(node, effect)
            case PutObject():
                self._put(node, effect)
            case GetObject():
                self._get(node, effect)
            case SignRanges():
                self._sign(node, effect)
            case SignPuts():
                self._sign_puts(node, effect)
            case SaveSnapshot():
                self._save(node, effect)
            case ReadEntries():
                self._read_back(node, effect)
            case DeleteObjects():
                self._delete(node, effect)
            case QuarantineObjects():
                self._quarantine(node, effect)
            case ReturnObjects():
                self._return(node, effect)
            case PurgeQuarantine():
                self._purge(node, effect)
            case ListQuarantine():
                self._list_quarantine(node)
            case ListObjects():
                self._list(node)

    async def stop(self) -> None:
        """Answer nothing more, and wait until nothing more is written."""
        self._stopped = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._journal_thread.shutdown)
        await asyncio.to_thread(self._snapshot_thread.shutdown)
        await asyncio.to_thread(self._readback_threads.shutdown)

    def _persist(self, node: str, group: Persist) -> None:
        assert self._journal is not None, "who journals has a journal"
        assert not self._persisting, "one group in flight at most"
        self._persisting = True
        self.counters.groups += 1
        self.counters.entries += len(group.entries)
        prompt = self._prompt
        if prompt and prompt.prompt and sum(map(len, group.entries)) <= PROMPT_BYTES_MAX:
            self._persisted(node, _done(prompt, group.entries))
            return
        work = self._journal_thread.submit(self._journal.append, group.entries)
        self._from_thread(work, partial(self._persisted, node))

    def _persisted(self, node: str, work: Work) -> None:
        self._persisting = False
        error = self._expected("journal", work)
        self._post(node, PersistFailed(error) if error else Persisted(work.result()))

    def _save(self, node: str, snapshot: SaveSnapshot) -> None:
        assert self._journal is not None, "who journals has a journal"
        self.counters.snapshots += 1
        work = self._snapshot_thread.submit(
            self._journal.save_snapshot, snapshot.index, snapshot.image
        )

        def saved(work: Work) -> None:
            if self._expected("snapshot", work):
                self._later(partial(self._save, node, snapshot))
            else:
                self._post(node, SnapshotSaved(snapshot.index))

        self._from_thread(work, saved)

    def _read_back(self, node: str, wanted: ReadEntries) -> None:
        assert isinstance(self._journal, RecordJournal), "who reads back has a journal that can"
        self.counters.read_back += wanted.upto - wanted.first
        work = self._readback_threads.submit(self._journal.read, wanted.first, wanted.upto)

        def done(work: Work) -> None:
            token, error = wanted.token, self._expected("read back", work)
            answer = ReadFailed(token, error) if error else EntriesRead(token, work.result())
            self._post(node, answer)

        self._from_thread(work, done)

    def _put(self, node: str, wanted: PutObject) -> None:
        self.counters.puts += 1

        def done(work: Work) -> None:
            name, error = wanted.object, self._expected("put", work)
            self._post(node, PutFailed(name, error) if error else ObjectPut(name))

        self._spawn(self._store.put(self._name(wanted.object), wanted.parts), done)

    def _get(self, node: str, wanted: GetObject) -> None:
        self.counters.gets += 1

        def done(work: Work) -> None:
            token, error = wanted.token, self._expected("get", work)
            self._post(node, GetFailed(token, error) if error else ObjectRead(token, work.result()))

        name = self._name(wanted.object)
        self._spawn(self._store.get(name, wanted.start, wanted.length), done)

    def _sign(self, node: str, wanted: SignRanges) -> None:
        def done(work: Work) -> None:
            token, error = wanted.token, self._expected("sign", work)
            answer = SignFailed(token, error) if error else RangesSigned(token, work.result())
            self._post(node, answer)

        ranges = [(self._name(object), offset, size) for object, offset, size in wanted.ranges]
        self._spawn(signed(self._store, ranges, wanted.valid_ms), done)

    def _sign_puts(self, node: str, wanted: SignPuts) -> None:
        def done(work: Work) -> None:
            token, error = wanted.token, self._expected("sign", work)
            answer = SignFailed(token, error) if error else PutsSigned(token, work.result())
            self._post(node, answer)

        contents = [
            NewObject(self._name(object), size, sha256) for object, size, sha256 in wanted.contents
        ]
        self._spawn(signed_puts(self._store, contents, wanted.valid_ms), done)

    def _delete(self, node: str, wanted: DeleteObjects) -> None:
        self.counters.deletions += len(wanted.objects)

        def done(work: Work) -> None:
            if self._expected("delete", work):
                self._later(partial(self._delete, node, wanted))
            else:
                self._post(node, ObjectsDeleted(wanted.objects))

        self._spawn(self._store.delete([self._name(each) for each in wanted.objects]), done)

    def _quarantine(self, node: str, wanted: QuarantineObjects) -> None:
        names = [self._name(each) for each in wanted.objects]

        def done(work: Work) -> None:
            if self._expected("quarantine", work):
                self._later(partial(self._quarantine, node, wanted))
                return
            self.counters.quarantined += work.result()
            self._post(node, ObjectsQuarantined(wanted.objects))

        self._spawn(quarantine.move(self._store, names, self._log), done)

    def _return(self, node: str, wanted: ReturnObjects) -> None:
        names = [self._name(each) for each in wanted.objects]

        def done(work: Work) -> None:
            if self._expected("bring back from quarantine", work):
                self._later(partial(self._return, node, wanted))
            else:
                self._post(node, ObjectsReturned(wanted.objects))

        self._spawn(quarantine.bring_back(self._store, names, self._log), done)

    def _purge(self, node: str, wanted: PurgeQuarantine) -> None:
        names = [self._name(each) for each in wanted.objects]

        def done(work: Work) -> None:
            if self._expected("purge the quarantine", work):
                self._later(partial(self._purge, node, wanted))
                return
            self.counters.deletions += work.result()
            self._post(node, QuarantinePurged())

        self._spawn(quarantine.purge(self._store, names, self._log), done)

    def _list_quarantine(self, node: str) -> None:
        def done(work: Work) -> None:
            if self._expected("list the quarantine", work):
                self._later(partial(self._list_quarantine, node))
            else:
                self._post(node, QuarantineListed(quarantine.dated(work.result())))

        self._spawn(quarantine.listed(self._store, self._cluster), done)

    def _list(self, node: str) -> None:
        prefix = f"{self._cluster}/data/"

        def done(work: Work) -> None:
            if self._expected("list", work):
                self._later(partial(self._list, node))
            else:
                self._post(node, ObjectsListed(_ids(work.result())))

        self._spawn(self._store.list(prefix), done)

    @property
    def _store(self) -> ObjectStore:
        assert self._stored is not None, "who stores objects has a store"
        return self._stored

    def _name(self, packed: ObjectId) -> str:
        return str(ObjectName.of(self._cluster, packed))

    def _from_thread(self, work: Future[Any], then: Callable[[Work], None]) -> None:
        work.add_done_callback(
            lambda work: self._loop.call_soon_threadsafe(self._answer, then, work)
        )

    def _spawn(self, work: Coroutine[Any, Any, Any], then: Callable[[Work], None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(partial(self._answer, then))

    def _answer(self, then: Callable[[Work], None], work: Work) -> None:
        if not self._stopped and not work.cancelled():
            then(work)

    def _later(self, again: Callable[[], None]) -> None:
        def unless_stopped() -> None:
            if not self._stopped:
                again()

        self._loop.call_later(RETRY_S, unless_stopped)

    def _expected(self, what: str, work: Work) -> AnabranchError | None:
        """The error that is an answer; None for success. An outage is said once, and its end."""
        error = work.exception()
        if error is None:
            if self._troubles.pop(what, None) is not None:
                self._log.info("storage works again", where=what)
            return None
        if not isinstance(error, AnabranchError):
            self._fail(f"a store failed at {what}: {error!r}")
            raise error
        self.counters.errors += 1
        if self._troubles.get(what) != error.code:
            self._log.warning("storage refused", where=what, code=error.code, reason=error.message)
        self._troubles[what] = error.code
        return error


def _done(journal: Journal, entries: Sequence[bytes]) -> Work:
    """An append that is over, as work that a thread has done."""
    work = Future[Any]()
    try:
        work.set_result(journal.append(entries))
    except AnabranchError as error:
        work.set_exception(error)
    return work


def _ids(found: Sequence[StoredObject]) -> list[ObjectId]:
    """Files that somebody else left there are nobody's objects."""
    ids: list[ObjectId] = []
    for each in found:
        with suppress(BadName):
            ids.append(ObjectName.parse(each.name).id)
    return ids
