"""Shards by the dozen in one process: a worker.

The shards' machines, their letters and their links to the sequencers are the real ones, each shard
of one replica at a port of its own. What isn't: journals aren't synced, and records come from this
process and not from clients, as many as the quota in every T_ord. The paper does the same beyond
ten shards (6.8).
"""

import asyncio
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec

from anabranch.core.belfast.protocol.messages import Append, Appended, Delivered, Subscribe
from anabranch.core.belfast.shard.config import ShardConfig
from anabranch.core.belfast.shard.shard import Shard
from anabranch.core.limits import Limits
from anabranch.core.records.record import Record, encode
from anabranch.core.types import MS
from anabranch.core.wire.session import Credit
from anabranch.shell.authority.shared import SharedToken
from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.file_journal import FileJournal
from anabranch.shell.journal.unsynced_disk import UnsyncedDisk
from anabranch.shell.peers.engines import belfast_node
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.engines import belfast_service
from anabranch.shell.server.frame_server import FrameServer
from anabranch.shell.telemetry.log import Log
from benchmarks.cluster.worker import Tell, Turn, serve
from benchmarks.distance.mesh import DelayedMesh
from benchmarks.timing import now

MODULE = "benchmarks.belfast.emulated"
_CREDIT_BYTES = 4 << 20
_SUBSCRIPTION, _CREDIT = (1 << 31), (1 << 31) + 1
"""Numbers of requests beside those of appends."""
_LOOK_S = 0.05
_PATIENCE_S = 60.0
"""For what is under way at the end."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    folder: str
    cluster: str
    sequencers: tuple[str, ...]
    shards: tuple[str, ...]
    """The address of each."""
    quota: int
    record_bytes: int
    t_ord_ms: int
    warm_s: float
    run_s: float
    delay_us: int


class Batch(msgspec.Struct, array_like=True):
    """As many records as a quota, in ns."""

    begun: int
    delivered: int = 0
    confirmed: int = 0


class Emulation(msgspec.Struct, frozen=True):
    batches: list[list[Batch]]
    """Of each shard, after the warm-up."""
    refused: int


class _Patron:
    """Who appends to a shard and reads from it, within its process."""

    def __init__(self, host: Host, node: str, quota: int) -> None:
        self._seat = host.seat(node, self)
        self._quota = quota
        self._requests = 0
        self._pending: dict[int, Batch] = {}
        self._undelivered: list[Batch] = []
        self._records = 0
        """Of the oldest of those, that were delivered."""
        self.batches: list[Batch] = []
        self.refused = 0

    def subscribe(self, shard: str) -> None:
        message = Subscribe(shard, 0, window_bytes=_CREDIT_BYTES)
        self._seat.ask(_SUBSCRIPTION, message)

    def append(self, batch: bytes) -> None:
        self._requests += 1
        noted = Batch(now())
        self._pending[self._requests] = noted
        self._undelivered.append(noted)
        self._seat.ask(self._requests, Append(batch))

    async def settled(self, until_s: float) -> None:
        """Everything was delivered and confirmed."""
        while self._pending or self._undelivered:
            assert asyncio.get_running_loop().time() < until_s, "appends wait for confirmation"
            await asyncio.sleep(_LOOK_S)

    def answer(self, request: int, message: Any) -> None:
        at = now()
        if isinstance(message, Appended):
            batch = self._pending.pop(request)
            batch.confirmed = at
            self.batches.append(batch)
        elif isinstance(message, Delivered):
            self._delivered(message, at)
        elif request in self._pending:
            self._undelivered.remove(self._pending.pop(request))
            self.refused += 1

    def _delivered(self, message: Delivered, at: int) -> None:
        self._records += sum(count for _, count in message.parts)
        while self._records >= self._quota:
            self._records -= self._quota
            self._undelivered.pop(0).delivered = at
        if message.batches:
            back = Credit(_SUBSCRIPTION, sum(map(len, message.batches)))
            self._seat.refer(_CREDIT, back)

    def answer_many(self, requests: Sequence[int], messages: Sequence[Any]) -> None:
        for request, message in zip(requests, messages, strict=True):
            self.answer(request, message)

    def flush(self) -> None:
        """Everything was taken."""


class _Emulated:
    """One shard."""

    def __init__(self, plan: Plan, number: int, stack: AsyncExitStack) -> None:
        self._plan = plan
        self.name, self._address = f"emulated-{number}", plan.shards[number]
        clock = Clock()
        folder = Path(plan.folder) / self.name
        folder.mkdir()
        log = Log(clock.now, stream=stack.enter_context((folder / "log").open("w")))
        limits = Limits()
        config = ShardConfig(
            shard=self.name,
            node=self._address,
            replicas=(self._address,),
            sequencers=plan.sequencers,
            quota=plan.quota,
        )
        data = folder / "data"
        data.mkdir()
        journal = FileJournal(UnsyncedDisk(RealDisk(str(data))), plan.cluster)
        stack.callback(journal.close)
        self.shard = Shard(config, limits)
        journal.recover_into(self.shard.recover, self.shard.replayed)
        self._mesh = DelayedMesh(belfast_node(), self._address, plan.cluster, limits, log)
        self._mesh.delay_us = plan.delay_us
        self._host = Host(plan.cluster, journal, None, now=clock.now, log=log, network=self._mesh)
        self._server = FrameServer(limits, log=log, peers=self._mesh)
        self._server.serve(
            belfast_service(
                self._host,
                self._address,
                limits,
                cluster=plan.cluster,
                version="",
                authority=SharedToken(None),
            )
        )
        self.patron: _Patron

    async def start(self, stack: AsyncExitStack) -> None:
        host, _, port = self._address.rpartition(":")
        listener = socket.create_server((host, int(port)))
        self._mesh.start(self._host.post)
        stack.push_async_callback(self._mesh.stop)
        self._host.start({self._address: self.shard})
        self.patron = _Patron(self._host, self._address, self._plan.quota)
        stack.push_async_callback(self._host.stop)
        await self._server.take_over(listener)
        stack.push_async_callback(self._server.stop)

    async def subscribed(self) -> None:
        """Once there is a window, and so every shard admitted."""
        while True:
            if self.shard.following.ledger.windows:
                self.patron.subscribe(self.name)
                return
            await asyncio.sleep(_LOOK_S)

    async def append(self, ends_s: float) -> None:
        """A quota in each T_ord; shards begin at different moments of it."""
        loop, plan = asyncio.get_running_loop(), self._plan
        records = [Record(bytes(plan.record_bytes)) for _ in range(plan.quota)]
        batch = encode(records, now=now() // MS)
        pause_s = plan.t_ord_ms / 1_000
        due_s = loop.time()
        while due_s < ends_s:
            self.patron.append(batch)
            due_s += pause_s
            await asyncio.sleep(due_s - loop.time())


async def _emulate(plan: Plan, turn: Turn, tell: Tell) -> None:
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        shards = [_Emulated(plan, number, stack) for number in range(len(plan.shards))]
        for each in shards:
            await each.start(stack)
        for each in shards:
            await each.subscribed()
        await turn()
        ends_s = loop.time() + plan.warm_s + plan.run_s
        appending: list[asyncio.Task[None]] = []
        for each in shards:
            appending.append(asyncio.create_task(each.append(ends_s)))
            await asyncio.sleep(plan.t_ord_ms / 1_000 / len(shards))
        await asyncio.sleep(plan.warm_s)
        begun = now()
        await asyncio.gather(*appending)
        for each in shards:
            await each.patron.settled(loop.time() + _PATIENCE_S)
        batches = [
            [batch for batch in each.patron.batches if batch.begun >= begun] for each in shards
        ]
        tell(Emulation(batches, sum(each.patron.refused for each in shards)))


if __name__ == "__main__":
    serve(Plan, _emulate)
