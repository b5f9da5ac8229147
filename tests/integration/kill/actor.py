"""One client that does everything the service offers, in random order over a random forest."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from random import Random
from typing import Any

from tests.integration.kill.account import Account, made, now

from anabranch.client.aio import Service
from anabranch.client.bolt.log import Log
from anabranch.client.bolt.producer import Pledge
from anabranch.client.bolt.reads import Events
from anabranch.client.bolt.receipts import Receipt
from anabranch.client.driver.pending import result
from anabranch.client.session.records import (
    Appended,
    Confirm,
    Deliver,
    Event,
    Fail,
    batches,
)
from anabranch.core.bolt.protocol.commands import Description, Promotion
from anabranch.core.bolt.protocol.messages import Read as ReadMessage
from anabranch.core.bolt.protocol.messages import Records
from anabranch.core.errors import AnabranchError
from anabranch.core.history.calls import (
    UNTOLD,
    Append,
    Confirmation,
    Create,
    Delivery,
    Failure,
    Fork,
    Look,
    MarkCursor,
    Promote,
    Read,
    ReadCursor,
    RecordId,
    Redeem,
    Squash,
    Stream,
    Trim,
)
from anabranch.core.records.record import encode
from anabranch.core.types import MS, NEVER, Kind, LogId, OnParentDelete
from anabranch_sim.bolt.directory import Directory, Known

LOGS_MAX = 20
UNDECIDED_MAX = 3
UNFINISHED_MAX = 6
SUBSCRIPTIONS_MAX = 8
CURSORS = ("reader", "writer")
TTL_MS = (200, 2_000)
CLOCK_ERROR_NS = int(os.environ.get("CLOCK_ERROR_MS", "50")) * MS
"""A server that starts again reads the wall clock again."""
APPEND_TIMEOUT_S = 8.0

Action = Callable[[Known], Awaitable[object]]


class Follower:
    """A subscription as its application saw it; it outlives every server."""

    def __init__(self, log: Log, stream: Stream, account: Account, *, speculative: bool) -> None:
        self.log, self.stream, self._account = log, stream, account
        self.final = stream.start
        self.moved = asyncio.Event()
        self.events: Events = log.subscribe(stream.start, speculative=speculative)
        self.over = False

    async def follow(self) -> None:
        try:
            while True:
                self._note(await self.events.take())
                self.moved.set()
        except AnabranchError as error:
            self._account.failed(self.stream, error, doubtful=True)
        self.over = True
        self.moved.set()

    async def reach(self, end: int) -> None:
        """Until all below `end` was delivered, and is final."""
        while self.final < end and not self.over:
            self.moved.clear()
            await self.moved.wait()

    def _note(self, events: list[Event]) -> None:
        at, pushes = now(), self.stream.pushes
        match events[0]:
            case Deliver(record, speculative):
                records = [each.record for each in events if isinstance(each, Deliver)]
                self._account.dense(record.position, records, f"a subscription of {self.log.name}")
                ids = self._account.identify(records)
                first = record.position
                pushes.append(Delivery(at=at, first=first, records=ids, speculative=speculative))
                if not speculative:
                    self.final = first + len(ids)
            case Confirm(up_to):
                pushes.append(Confirmation(at=at, up_to=up_to))
                self.final = max(self.final, up_to)
            case Fail(since):
                pushes.append(Failure(at=at, since=since))


class Actor:
    """One session and its calls: some wait for each other, appends don't."""

    def __init__(
        self,
        service: Service,
        number: int,
        rng: Random,
        account: Account,
        directory: Directory,
        followers: list[Follower],
    ) -> None:
        self.service, self.number, self.rng = service, number, rng
        self.account, self.directory, self.followers = account, directory, followers
        self._unfinished: set[asyncio.Task[object]] = set()
        self._following: set[asyncio.Task[object]] = set()
        self._names = 0
        self._root: Log | None = None
        choices: list[tuple[int, Action]] = [
            (40, self._append_behind),
            (14, self._read),
            (4, self._read_pages),
            (5, self._describe),
            (6, self._cfork),
            (8, self._promotable),
            (5, self._sfork),
            (3, self._decide),
            (2, self._squash),
            (3, self._trim),
            (3, self._mark),
            (2, self._read_cursors),
            (6, self._redeem),
            (5, self._subscribe),
            (3, self._list),
        ]
        self._actions = [action for _, action in choices]
        self._weights = [weight for weight, _ in choices]

    async def work(self, stop: asyncio.Event) -> None:
        """Until it is told to stop; then, until all it began is finished."""
        await self._create()
        while not stop.is_set():
            of = self.directory.any(self.rng)
            assert of is not None, "its own root lives as long as any log"
            if len(self._unfinished) >= UNFINISHED_MAX:
                await self._decide(of)
                await self._finish_some(0.05)
            else:
                action = self.rng.choices(self._actions, self._weights)[0]
                await action(of)
        while self._unfinished:
            # Appends may be waiting for a decision that nobody else takes any more.
            for fork in self.directory.undecided():
                await self._decide(fork)
            await self._finish_some(0.2)

    async def _finish_some(self, within_s: float) -> None:
        if self._unfinished:
            await asyncio.wait(
                self._unfinished, timeout=within_s, return_when=asyncio.FIRST_COMPLETED
            )

    def close(self) -> None:
        for task in self._following:
            task.cancel()

    def log(self, of: Known) -> Log:
        assert self._root is not None
        return Log(self._root.link, self.account.known[of.log])

    def _behind(self, work: Coroutine[Any, Any, object], tasks: set[asyncio.Task[object]]) -> None:
        task = asyncio.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def _call(self, make: Callable[..., Any], log: LogId, **more: object) -> Any:
        return make(client=self.number, log=log, invoked=0, **more)

    def _name(self) -> str:
        self._names += 1
        return f"{self.number}-{self._names}"

    def _learn(self, told: Description) -> Known:
        self.account.known.setdefault(told.id, told)
        return self.directory.learn(told)

    def _over(self, of: Known, answer: object) -> None:
        if isinstance(answer, AnabranchError):
            self.directory.over(of.log, answer)

    async def _create(self) -> None:
        """A root of its own, to begin with."""
        while self._root is None:
            name = f"root-{self._name()}"
            call: Create = self._call(Create, UNTOLD, name=name)
            await self.account.ask(call, self.service.create(name), partial(self._created, call))

    def _created(self, call: Create, log: Log) -> None:
        call.log = self._learn(log.description).log
        self._root = log

    async def _append_behind(self, of: Known) -> None:
        ways = (self._append_pledged, self._append_one, self._append_many, self._append_batch)
        way = self.rng.choices(ways, (10, 5, 3, 2))[0]
        self._behind(way(of), self._unfinished)
        # Let it begin, so that what this client does in order is asked in order.
        await asyncio.sleep(0)

    async def _append_pledged(self, of: Known) -> None:
        """Batches as the client gathers them, and what it knows of their outcome."""
        log = self.log(of)
        calls: dict[Pledge, tuple[Append, int]] = {}
        try:
            for number in self.account.numbers(self.rng.choice((1, 1, 2, 5))):
                pledge = await log.pledge(made(number), APPEND_TIMEOUT_S)
                if pledge not in calls:
                    call: Append = self._call(Append, of.log, records=[])
                    self.account.begin(call)
                    calls[pledge] = call, pledge.count - 1
                calls[pledge][0].records.append(number)
        except AnabranchError:
            pass  # there was no room: that record was never taken
        for pledge, (call, index) in calls.items():
            await log.link.settled(pledge)
            try:
                self._appended(call, result(log, pledge, index))
            except AnabranchError as error:
                self.account.failed(call, error, doubtful=pledge.in_doubt)
                self.directory.over(of.log, error)

    def _appended(self, call: Append, outcome: Appended[Receipt]) -> None:
        call.position = outcome.position
        if outcome.receipt is not None:
            self.account.receipts.append((outcome.receipt.promise, call.records))
        self.account.succeeded(call)

    async def _append_one(self, of: Known) -> None:
        (number,) = self.account.numbers(1)
        record = made(number)
        await self._append_by(
            of,
            [[number]],
            self.log(of).append(record.value, key=record.key, headers=list(record.headers)),
        )

    async def _append_many(self, of: Known) -> None:
        """Each by itself to the history: the client may have made any batches of them."""
        numbers = self.account.numbers(self.rng.choice((3, 30, 300)))
        records = map(made, numbers)
        await self._append_by(of, [[each] for each in numbers], self.log(of).append_many(records))

    async def _append_batch(self, of: Known) -> None:
        numbers = self.account.numbers(self.rng.choice((2, 7)))
        content = encode([made(number) for number in numbers], now=1)
        await self._append_by(of, [numbers], self.log(of).append_batch(content))

    async def _append_by(
        self,
        of: Known,
        batches: list[list[RecordId]],
        work: Awaitable[Appended[Receipt] | list[Appended[Receipt]]],
    ) -> None:
        """An error of these tells what stood in the way, not whether it happened all the same."""
        calls: list[Append] = [self._call(Append, of.log, records=batch) for batch in batches]
        for call in calls:
            self.account.begin(call)
        try:
            outcome = await work
        except AnabranchError as error:
            for call in calls:
                self.account.failed(call, error, doubtful=True)
            self.directory.over(of.log, error)
            return
        outcomes = outcome if isinstance(outcome, list) else [outcome]
        for call, each in zip(calls, outcomes, strict=True):
            self._appended(call, each)

    async def _read(self, of: Known) -> None:
        log, rng = self.log(of), self.rng
        first, count = rng.randint(of.start, max(of.start, of.tail)), rng.choice((1, 10, 1_000))
        wait_ms = rng.choice((0, 0, 300))
        call: Read = self._call(Read, of.log, first=first, records=[])

        def read(page: Records) -> None:
            records = [
                each for batch in batches(page.runs, page.batches) for each in batch.records()
            ]
            self.account.dense(first, records, f"a read of {log.name}")
            call.records = self.account.identify(records)
            call.origins = [(each.origin_log, each.origin_position) for each in records]
            call.start, call.tail, call.settled = page.start, page.tail, page.settled
            of.tail, of.start = max(of.tail, page.tail), max(of.start, page.start)

        message = ReadMessage(of.log, first, count, 1 << 20, wait_ms)
        work = log.link.ask(message, Records, f"read {log.name}", 10_000, wait_ms)
        self._over(of, await self.account.ask(call, work, read))

    async def _read_pages(self, of: Known) -> None:
        """Over many pages, and servers: to a history the same as a subscription."""
        log = self.log(of)
        first = self.rng.randint(of.start, max(of.start, of.tail))
        stream: Stream = self._call(Stream, of.log, start=first)
        self.account.begin(stream)
        try:
            async for batch in log.read_batches(first):
                records = list(batch.records())
                self.account.dense(batch.first, records, f"pages of {log.name}")
                ids = self.account.identify(records)
                stream.pushes.append(Delivery(at=now(), first=batch.first, records=ids))
        except AnabranchError as error:
            self.account.failed(stream, error, doubtful=True)
            self.directory.over(of.log, error)

    async def _describe(self, of: Known) -> None:
        call: Look = self._call(Look, of.log)

        def told(answer: Description) -> None:
            call.start, call.tail, call.settled = answer.start, answer.tail, answer.settled
            self._learn(answer)

        self._over(of, await self.account.ask(call, self.log(of).describe(), told))

    def _room(self) -> bool:
        return len(self.directory.living()) < LOGS_MAX

    async def _cfork(self, of: Known) -> None:
        if self._room():
            await self._fork(of, Kind.CONTINUOUS)
        else:
            await self._squash(of)

    async def _promotable(self, of: Known) -> None:
        if self._room() and len(self.directory.undecided()) < UNDECIDED_MAX:
            await self._fork(of, Kind.CONTINUOUS, promotable=True)
        else:
            await self._decide(of)

    async def _sfork(self, of: Known) -> None:
        if not self._room():
            await self._squash(of)
            return
        asked: dict[str, Any] = {}
        way = self.rng.random()
        if way < 0.5:
            asked["past"] = self.rng.randint(of.start, max(of.start, of.tail - 1))
        elif way < 0.65:
            asked["at"] = wall_ms() - self.rng.randint(0, 3_000)
        if self.rng.random() < 0.3:
            asked["on_parent_delete"] = OnParentDelete.CASCADE
        await self._fork(of, Kind.SEVERED, **asked)

    async def _fork(self, of: Known, kind: Kind, **asked: Any) -> None:
        short = self._name()
        ttl_ms = self.rng.randint(*TTL_MS) if self.rng.random() < 0.1 else None
        call: Fork = self._call(
            Fork,
            UNTOLD,
            name=f"{of.name.split('--')[0]}--{short}",
            parent=of.log,
            kind=kind,
            past=asked.get("past"),
            timed="at" in asked,
            promotable=asked.get("promotable", False),
            lives=NEVER if ttl_ms is None else max(0, ttl_ms * MS - CLOCK_ERROR_NS),
            cascades=asked.get("on_parent_delete") is OnParentDelete.CASCADE,
        )

        def forked(fork: Log) -> None:
            call.log, call.fork_point = fork.id, fork.description.fork_point
            self._learn(fork.description)
            if fork.name != call.name:
                self.account.faults.append(f"{call.name} was made as {fork.name}")

        log, ttl = self.log(of), None if ttl_ms is None else ttl_ms / 1_000
        make = log.cfork if kind is Kind.CONTINUOUS else log.sfork
        self._over(of, await self.account.ask(call, make(short, ttl=ttl, **asked), forked))

    async def _decide(self, of: Known) -> None:
        undecided = self.directory.undecided()
        fork = self.rng.choice(undecided) if undecided else of
        await (self._promote(fork) if self.rng.random() < 0.7 else self._squash(fork))

    async def _promote(self, fork: Known) -> None:
        call: Promote = self._call(Promote, fork.log)

        def promoted(answer: Promotion) -> None:
            call.squashed = answer.squashed
            fork.over = True
            for name in answer.squashed:
                if name in self.directory.ids:
                    self.directory.logs[self.directory.ids[name]].over = True

        self._over(fork, await self.account.ask(call, self.log(fork).promote(), promoted))

    async def _squash(self, fork: Known) -> None:
        if fork.kind is Kind.ROOT and self.rng.random() < 0.9:
            await self._append_behind(fork)
            return
        call: Squash = self._call(Squash, fork.log)
        answer = await self.account.ask(call, self.log(fork).squash())
        fork.over |= not isinstance(answer, AnabranchError)
        self._over(fork, answer)

    async def _trim(self, of: Known) -> None:
        before = self.rng.randint(0, of.tail)
        call: Trim = self._call(Trim, of.log, before=before)
        self._over(of, await self.account.ask(call, self.log(of).trim(before)))

    async def _mark(self, of: Known) -> None:
        name, position = self.rng.choice(CURSORS), self.rng.randint(0, of.tail)
        call: MarkCursor = self._call(MarkCursor, of.log, name=name, position=position)
        work = self.log(of).cursor(name).commit(position)
        self._over(of, await self.account.ask(call, work))

    async def _read_cursors(self, of: Known) -> None:
        name = self.rng.choice(CURSORS)
        call: ReadCursor = self._call(ReadCursor, of.log, name=name)

        def told(positions: dict[str, int]) -> None:
            call.position = positions.get(name)

        self._over(of, await self.account.ask(call, self.log(of).cursors(), told))

    async def _redeem(self, of: Known) -> None:
        """Some now; the others are kept for after the last kill."""
        if len(self.account.receipts) < 10:
            await self._append_behind(of)
            return
        assert self._root is not None
        promise, records = self.account.receipts.pop(self.rng.randrange(10))
        call: Redeem = self._call(Redeem, promise.log, records=records)

        def told(position: int) -> None:
            call.into, call.position = promise.log, position

        receipt = Receipt(self._root.link, promise)
        answer = await self.account.ask(call, receipt.position(timeout=0), told)
        if isinstance(answer, AnabranchError) and answer.code != "squashed":
            self.account.receipts.append((promise, records))

    async def _subscribe(self, of: Known) -> None:
        if sum(not each.over for each in self.followers) >= SUBSCRIPTIONS_MAX:
            eldest = next(each for each in self.followers if not each.over)
            eldest.events.close()
            eldest.over = True
        start = max(of.start, self.rng.choice((self.rng.randint(0, of.tail), of.tail)))
        stream: Stream = self._call(Stream, of.log, start=start)
        self.account.begin(stream)
        speculative = self.rng.random() < 0.8
        follower = Follower(self.log(of), stream, self.account, speculative=speculative)
        self.followers.append(follower)
        self._behind(follower.follow(), self._following)

    async def _list(self, of: Known) -> None:
        """All logs: those of others, and those whose making was never answered."""
        try:
            async for told in self.service.logs():
                self._learn(told)
        except AnabranchError as error:
            self.account.failed(self._call(Look, of.log), error, doubtful=True)


def wall_ms() -> int:
    """What time it is for the server, which reads the wall clock."""
    return time.time_ns() // MS
