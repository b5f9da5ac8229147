"""The latency-critical workload on a log, through our client: a worker."""

from collections.abc import AsyncIterator

from anabranch.client import aio
from anabranch.client.bolt.log import Log
from anabranch.client.session.records import Deliver
from benchmarks.cluster.paced import Plan, carry_out
from benchmarks.cluster.worker import Tell, Turn, serve

MODULE = "benchmarks.cluster.critical"


class _Stream:
    def __init__(self, log: Log) -> None:
        self._log = log

    async def append(self, value: bytes) -> object:
        return await self._log.append(value)

    async def values(self) -> AsyncIterator[bytes]:
        async with self._log.subscribe() as events:
            async for event in events:
                if isinstance(event, Deliver):
                    yield event.record.value or b""


async def work(plan: Plan, turn: Turn, tell: Tell) -> None:
    async with aio.connect(plan.address, timeout=60) as service:
        await carry_out(_Stream(await service.log(plan.log, engine="bolt")), plan, turn, tell)


if __name__ == "__main__":
    serve(Plan, work)
