"""Clients that append and read while faults happen, and the verdict on all that they saw."""

import asyncio
import itertools
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tests.integration.belfast.deployment import PATIENCE_S, node_at, until

from anabranch.apps.processes.local_log import LocalLog, Node
from anabranch.client.belfast import aio
from anabranch.client.belfast.aio import Log
from anabranch.client.belfast.events import Events
from anabranch.client.session.records import Confirm, Deliver, Event, Fail
from anabranch.core.belfast.protocol.messages import ShardStatus, Where
from anabranch.core.errors import AnabranchError, RecordVoided
from anabranch.core.history.calls import RecordId, Verdict
from anabranch.core.history.foretold import (
    Account,
    Placing,
    Settled,
    Shown,
    Sight,
    Voided,
    Watching,
    judge,
)

_LOOK_S = 0.05
_TOGETHER = 4
"""Appends that a client has on their way at once."""
_records = itertools.count()
"""Several loads may follow each other on one log."""


@dataclass(slots=True)
class Watcher:
    watching: Watching
    events: Events

    @property
    def fails(self) -> int:
        return sum(isinstance(sight, Voided) for sight in self.watching.sights)


class Load:
    """Appenders to each shard, and to whichever takes it; subscribers of each kind."""

    def __init__(self, local: LocalLog, clients: int = 1) -> None:
        self.local = local
        self.account = Account()
        self.watchers: list[Watcher] = []
        self._clients = clients
        self._logs: list[Log] = []
        self._appended: dict[str, int] = {}
        """Acknowledgements of what was appended by name."""
        self._stopping = False
        self._work: list[asyncio.Task[None]] = []
        self._watch: list[asyncio.Task[None]] = []

    @property
    def log(self) -> Log:
        """To ask the leader by."""
        return self._logs[0]

    async def __aenter__(self) -> Self:
        self._logs = [await self._connected() for _ in range(2 + self._clients)]
        shards = list(self.local.shards)
        self.account.start = (await self.log.status(timeout=PATIENCE_S)).confirmed
        self._follow("all", None, speculative=True)
        self._follow("confirmed", None, speculative=False)
        self._follow(shards[-1], (shards[-1],), speculative=True)
        self._follow("even", None, speculative=True, where=Where(key_prefix=b"even"))
        for log in self._logs[2:]:
            for shard in (*shards, None):
                self._work.append(asyncio.create_task(self._append(log, shard)))
        await self.go_on()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        tasks = (*self._work, *self._watch)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for log in self._logs:
            await log.__aexit__(AssertionError, AssertionError(), None)

    async def go_on(self, *shards: str, count: int = 10) -> None:
        """Return when so many more appends to each of these shards were begun and acknowledged."""
        names = shards or tuple(self.local.shards)
        # Those that are on their way were begun before.
        ends = {name: self._appended.get(name, 0) + count + _TOGETHER for name in names}
        await self.holds(
            f"appends to {names} go on",
            lambda: all(self._appended.get(name, 0) >= end for name, end in ends.items()),
        )

    async def holds(self, what: str, condition: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not condition():
                    for task in (*self._work, *self._watch):
                        if task.done():
                            task.result()
                    await asyncio.sleep(_LOOK_S)
        except TimeoutError:
            raise AssertionError(f"waited in vain until {what}: {self._appended}") from None

    async def leader(self) -> Node:
        status = await self.log.status(timeout=PATIENCE_S)
        return node_at(self.local, status.leader)

    async def follower(self) -> Node:
        leader = await self.leader()
        return next(node for node in self.local.sequencers if node is not leader)

    async def shard(self, name: str) -> ShardStatus:
        status = await self.log.status(timeout=PATIENCE_S)
        return next(shard for shard in status.shards if shard.name == name)

    async def primary(self, name: str) -> Node:
        return node_at(self.local, (await self.shard(name)).primary)

    async def backup(self, name: str) -> Node:
        primary = await self.primary(name)
        return next(node for node in self.local.shards[name] if node is not primary)

    async def finish(self) -> None:
        """End all appends, have all subscribers come to the end, and judge."""
        self._stopping = True
        await self.holds("all appends have ended", lambda: all(t.done() for t in self._work))
        for task in self._work:
            task.result()
        end = 1 + max(position for each in self.account.placings for position in each.positions)
        await until(self.log, "all is confirmed", lambda status: status.confirmed >= end)
        await self.holds(
            f"all subscribers have come to {end}",
            lambda: all(watcher.events.final >= end for watcher in self.watchers),
        )
        await self._read(end)
        self.account.watchings = [watcher.watching for watcher in self.watchers]
        assert judge(self.account) == []

    def verdicts(self, verdict: Verdict) -> int:
        return sum(placing.verdict is verdict for placing in self.account.placings)

    async def _read(self, end: int) -> None:
        """What the log turned out to hold."""
        account, sent = self.account, frozenset(self.account.shard_of)
        account.end = end
        async with self._logs[1].subscribe(account.start, speculative=False) as events:
            async with asyncio.timeout(PATIENCE_S):
                while events.final < end:
                    for event in await events.take(timeout=_LOOK_S):
                        if isinstance(event, Deliver) and event.record.position < end:
                            record = _id(event)
                            account.final[event.record.position] = record
                            if record in sent:
                                account.shard_of[record] = event.record.shard

    async def _connected(self) -> Log:
        return await aio.connect(self.local.layout.access, timeout=PATIENCE_S)

    def _follow(
        self,
        name: str,
        shards: tuple[str, ...] | None,
        *,
        speculative: bool,
        where: Where | None = None,
    ) -> None:
        wanted = None if where is None else _is_even
        start = self.account.start
        watching = Watching(name, start, shards or (), wanted)
        log = self._logs[1]
        events = log.subscribe(start, where=where, shards=shards, speculative=speculative)
        watcher = Watcher(watching, events)
        self.watchers.append(watcher)
        self._watch.append(asyncio.create_task(self._see(watcher)))

    async def _see(self, watcher: Watcher) -> None:
        async with watcher.events as events:
            async for event in events:
                watcher.watching.sights += _sights(event)

    async def _append(self, log: Log, shard: str | None) -> None:
        pending: set[asyncio.Task[None]] = set()
        with suppress(asyncio.CancelledError):
            while not self._stopping:
                while len(pending) < _TOGETHER:
                    pending.add(asyncio.create_task(self._append_one(log, shard)))
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            for task in pending:
                await task
            return
        await _cancelled(pending)

    async def _append_one(self, log: Log, shard: str | None) -> None:
        record = next(_records)
        # Each is a client of its own: several are on their way at once, in no order.
        placing = Placing(record, shard or "", time.monotonic_ns(), [record])
        self.account.placings.append(placing)
        self.account.shard_of[record] = shard or ""
        key = b"even" if _is_even(record) else b"odd"
        value = b"%d" % record
        try:
            appending = await log.append_soon(value, key=key, shard=shard, timeout=PATIENCE_S)
            placing.positions = [await appending]
        except RecordVoided:
            placing.verdict = Verdict.REFUSED
        except AnabranchError:
            placing.verdict = Verdict.UNKNOWN
        else:
            placing.verdict, placing.shard = Verdict.OK, appending.shard
        placing.returned = time.monotonic_ns()
        if shard is not None and placing.verdict is Verdict.OK:
            self._appended[shard] = self._appended.get(shard, 0) + 1


async def _cancelled(tasks: set[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _is_even(record: RecordId) -> bool:
    return record % 2 == 0


def _id(event: Deliver) -> RecordId:
    return int(event.record.value or b"-1")


def _sights(event: Event) -> list[Sight]:
    match event:
        case Deliver(record, speculative):
            upto = record.position + 1
            shown = Shown(upto, [record.position], [_id(event)], speculative)
            return [shown] if speculative else [shown, Settled(upto)]
        case Confirm(up_to):
            return [Settled(up_to)]
        case Fail(since):
            return [Voided(since)]


def under(scenario: Coroutine[Any, Any, None]) -> None:
    """Run it."""
    asyncio.run(scenario)
