"""The three applications of the examples: what they compute ahead of the order is what they would
have computed behind it, also where some of it was void.
"""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from random import Random

import pytest
from examples.belfast.__main__ import APPLICATIONS, Task, play
from examples.belfast.application import Ingested
from examples.belfast.trading import Trading
from tests.integration.belfast.deployment import PATIENCE_S, deployed, metric, until

from anabranch.apps.processes.local_log import LocalLog, LogShape
from anabranch.client.belfast import aio
from anabranch.client.belfast.aio import Appending, Log
from anabranch.core.errors import RecordVoided
from anabranch.core.types import Position

KEPT, LOST = "shard-0", "shard-1"
_LOOK_S = 0.02


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalLog]:
    # So long a window that shards go on for seconds when no sequencer is there. A log at rest would
    # wait for one: on a busy machine it is at rest before the sequencers are killed.
    rules = {"window": 800, "first_quota": 5, "fail_intervals": 250, "adaptive": 0}
    shape = LogShape(sequencers=1, shards=2, copies=1)
    with deployed(tmp_path / "log", shape, rules) as local:
        yield local


async def append(log: Log, made: Iterator[Ingested], *shards: str | None) -> list[Appending]:
    """One to each of these; what fails is appended again, and elsewhere if no shard is named."""
    pending: list[Appending] = []
    for shard in shards:
        _, key, value = next(made)
        appending = await log.append_soon(
            value, key=key, shard=shard, retry_unknown=True, timeout=PATIENCE_S
        )
        pending.append(appending)
    return pending


def stalls(local: LocalLog) -> float:
    """How often shards were at the end of all windows that are published."""
    return sum(
        metric(node, "shard_stalls_total") for nodes in local.shards.values() for node in nodes
    )


async def predicted(task: Task, count: int, local: LocalLog, stalled: float) -> bool:
    """True when it has computed so many records ahead of their order. False when the windows end
    before: no shard goes on then, and what has no place yet waits for the sequencers.
    """
    async with asyncio.timeout(PATIENCE_S):
        while task.speculator.unconfirmed < count:
            if await asyncio.to_thread(stalls, local) > stalled:
                return task.speculator.unconfirmed >= count
            await asyncio.sleep(_LOOK_S)
    return True


def test_what_is_computed_ahead_is_what_comes_out(local: LocalLog) -> None:
    async def scenario() -> None:
        async with aio.connect(local.layout.url, timeout=PATIENCE_S) as log:
            for kind in APPLICATIONS.values():
                async with asyncio.timeout(PATIENCE_S):
                    assert await play(log, kind(), 300, 2, seed=7), kind.name

    asyncio.run(scenario())


@pytest.mark.nightly
def test_what_was_computed_on_records_that_are_void_is_undone(
    local: LocalLog, tmp_path: Path
) -> None:
    """All sequencers die, then a shard whose newest records they can't have heard of."""
    application = Trading()
    made = application.records(Random(3))

    async def computed(log: Log, start: Position, name: str, *, speculative: bool) -> Task:
        (interest,) = application.interests((KEPT, LOST), 1)
        reader = application.reader(tmp_path / name)
        return Task(log, reader, interest, start, speculative=speculative)

    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            log = await stack.enter_async_context(aio.connect(local.layout.url, timeout=PATIENCE_S))
            start = (await log.status(timeout=PATIENCE_S)).confirmed
            ahead = await computed(log, start, "ahead", speculative=True)
            stack.push_async_callback(ahead.close)
            pending = await append(log, made, *[None] * 50)
            await ahead.reached(1 + max([await each for each in pending]))

            while True:
                stalled = await asyncio.to_thread(stalls, local)
                for node in local.sequencers:
                    node.kill()
                pending = await append(log, made, *[KEPT] * 20, *[None] * 20)
                (doomed,) = await append(log, made, LOST)
                if await predicted(ahead, 41, local, stalled):
                    break
                # The machine is so busy that the windows ended first: once more, with others.
                for node in local.sequencers:
                    await asyncio.to_thread(node.start)
                await ahead.reached(1 + max([await each for each in (*pending, doomed)]))
            for node in local.shards[LOST]:
                node.kill()
            for node in local.sequencers:
                await asyncio.to_thread(node.start)
            await until(log, "the shard has failed", lambda status: status.view >= 1)
            for node in local.shards[LOST]:
                await asyncio.to_thread(node.launch)
            last = [await each for each in pending]
            with suppress(RecordVoided):
                # Sent again to the shard that is back, it is in the log after all, and later.
                last.append(await doomed)
            end = 1 + max(last)
            await ahead.reached(end)
            assert ahead.speculator.rollbacks >= 1

            behind = await computed(log, start, "behind", speculative=False)
            stack.push_async_callback(behind.close)
            await behind.reached(end)
            assert behind.reader.output() == ahead.reader.output()

    asyncio.run(scenario())
