"""`python -m examples.belfast fraud`: run applications on a Belfast log, and check their output.

On a service each takes a log of its own, named after it, or the log that `--log` names; one that
exists is used from its tail on. A Belfast log by itself is used by all of them. The readers compute
ahead of the order. When all is confirmed, the same records are read once more by readers that wait
for confirmations, and both must have come to the same.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Never

from examples.belfast.application import Application, Ingested, Interest, Reader
from examples.belfast.fraud import Fraud
from examples.belfast.intrusion import Intrusion
from examples.belfast.trading import Trading
from examples.service import chosen

import anabranch
from anabranch.cli.service.choice import DEFAULT_URL
from anabranch.client.belfast import aio
from anabranch.client.belfast.aio import Log
from anabranch.client.belfast.speculator import BatchSpeculator
from anabranch.client.session.records import Appended, Deliver
from anabranch.client.session.settings import Settings
from anabranch.client.speculative_log import SpeculativeLog
from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.errors import AnabranchError, Unavailable
from anabranch.core.types import Position

APPLICATIONS: dict[str, type[Application]] = {
    each.name: each for each in (Intrusion, Fraud, Trading)
}


AnyLog = Log | SpeculativeLog
"""A Belfast log by itself, or one of a service."""

_SHARDS = 2
"""Of a log that the applications make."""

_LOOK_S = 0.5
"""Where a filter lets nothing pass, nothing is told: a reader looks how far the log is."""


async def play(
    log: AnyLog, application: Application, records: int, readers: int, seed: int, rate: float = inf
) -> bool:
    """True if computing ahead changed nothing about what came out. `rate`: records a second."""
    directory = await log.directory()
    shards = [shard.name for shard in directory.shards if shard.standing is Standing.SEATED]
    if not shards:
        raise Unavailable("the log", "none of its shards takes appends yet")
    # As the leader knows it: another node may be behind, and records before are of other kinds.
    start = (await log.status()).confirmed
    interests = application.interests(shards, readers)
    with TemporaryDirectory(prefix="anabranch-") as name:
        folder = Path(name)
        ahead = [
            Task(log, application.reader(folder / f"ahead-{n}"), interest, start, speculative=True)
            for n, interest in enumerate(interests)
        ]
        end = 1 + await ingest(
            log, shards, _paced(application.records(Random(seed)), rate), records
        )
        for task in ahead:
            await task.reached(end)
        behind = [
            Task(log, application.reader(folder / f"behind-{n}"), interest, start)
            for n, interest in enumerate(interests)
        ]
        for task in behind:
            await task.reached(end)
        same = all(
            a.reader.output() == b.reader.output() for a, b in zip(ahead, behind, strict=True)
        )
        for task in (*ahead, *behind):
            await task.close()
    early = sum(task.early for task in ahead)
    rollbacks = sum(task.speculator.rollbacks for task in ahead)
    print(
        f"{application.name}: {records:,} records, {early:,} of them computed before their order "
        f"was certain, {rollbacks} rollbacks.\nOutput of {len(ahead)} readers, and of as many that "
        f"waited: {'the same' if same else 'DIFFERENT'}."
    )
    return same


async def ingest(
    log: AnyLog, shards: Sequence[str], made: AsyncIterator[Ingested], records: int
) -> Position:
    """The highest position that one of the records has."""
    pending: list[Awaitable[Position | Appended[Never]]] = []
    async for source, key, value in made:
        shard = shards[source % len(shards)]
        pending.append(await log.append_soon(value, key=key, shard=shard))
        if len(pending) == records:
            break
    return max([_position(await each) for each in pending])


def _position(made: Position | Appended[Never]) -> Position:
    if not isinstance(made, Appended):
        return made
    assert made.position is not None, "a Belfast log gives no receipts"
    return made.position


async def _paced(made: Iterator[Ingested], rate: float) -> AsyncIterator[Ingested]:
    """Readers that are behind the appends see only what is final already. So what a busy machine
    was too slow for is not made up for by a burst.
    """
    loop = asyncio.get_running_loop()
    due_s = loop.time()
    for each in made:
        yield each
        due_s = max(due_s + 1 / rate, loop.time())
        if due_s > loop.time():
            await asyncio.sleep(due_s - loop.time())


class Task:
    """A reader at its subscription."""

    def __init__(
        self,
        log: AnyLog,
        reader: Reader,
        interest: Interest,
        start: Position,
        *,
        speculative: bool = False,
    ) -> None:
        self.reader = reader
        self.early = 0
        self.speculator = BatchSpeculator(reader.do, reader.undo, reader.on_confirm)
        self._moved = asyncio.Event()
        self._events = log.subscribe(
            start, where=interest.where, shards=interest.shards, speculative=speculative
        )
        self._work = asyncio.create_task(self._follow())

    async def reached(self, position: Position) -> None:
        """Everything below is confirmed, and told of."""
        while self._events.final < position or self.speculator.unconfirmed:
            self._moved.clear()
            moved = asyncio.ensure_future(self._moved.wait())
            await asyncio.wait((moved, self._work), return_when=asyncio.FIRST_COMPLETED)
            if self._work.done():
                self._work.result()

    async def close(self) -> None:
        self._work.cancel()
        await asyncio.gather(self._work, return_exceptions=True)
        self.reader.close()

    async def _follow(self) -> None:
        async with self._events as events:
            while True:
                taken = await events.take(timeout=_LOOK_S)
                self.early += sum(isinstance(each, Deliver) and each.speculative for each in taken)
                self.speculator.take(*taken)
                self._moved.set()


@asynccontextmanager
async def log_of(url: str, settings: Settings, name: str) -> AsyncIterator[AnyLog]:
    """The log by itself at a `belfast://` address, or the log of this name of a service."""
    if url.startswith("belfast"):
        async with aio.connect(url, settings=settings) as log:
            yield log
        return
    async with anabranch.aio.connect(url, settings=settings) as service:
        log = await service.ensure(name, engine="belfast", shards=_SHARDS)
        made = log.description.settings
        assert made is not None, "a Belfast log has settings"
        for number in range(made.shards):
            # It waits until the shard takes appends, which those of a new log don't at once.
            await log.append(b"opened", shard=f"shard-{number}")
        yield log


async def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.belfast", description=__doc__)
    parser.add_argument("application", choices=sorted(APPLICATIONS), nargs="+")
    parser.add_argument(
        "--url",
        help="of a service, or of a Belfast log by itself: what `anabranch up` prints "
        f"(default: ANABRANCH_URL, a profile's, or {DEFAULT_URL})",
    )
    parser.add_argument("--log", help="of the service; default: one named after the application")
    parser.add_argument("--records", type=int, default=10_000, help="to ingest")
    parser.add_argument("--rate", type=float, default=2_000, help="of them in a second")
    parser.add_argument("--readers", type=int, default=2, help="who share the records")
    parser.add_argument("--seed", type=int, default=1, help="of what is ingested")
    asked = parser.parse_args(words)
    url, settings = chosen(asked.url)
    found: list[bool] = []
    for name in asked.application:
        async with log_of(url, settings, asked.log or name) as log:
            made = APPLICATIONS[name]()
            found.append(
                await play(log, made, asked.records, asked.readers, asked.seed, asked.rate)
            )
    return 0 if all(found) else 1


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main(sys.argv[1:])))
    except AnabranchError as error:
        sys.exit(f"error: {error}")
