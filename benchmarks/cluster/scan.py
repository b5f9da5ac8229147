"""An analysis, through our client: a log read in bulk, over and over; a worker."""

import msgspec

from anabranch.client import aio
from benchmarks.cluster.worker import Tell, Turn, serve
from benchmarks.timing import now

MODULE = "benchmarks.cluster.scan"

_NS = 1_000_000_000


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    address: str
    log: str
    records: int
    """Up to here it is read, then again."""
    seconds: float


class Done(msgspec.Struct, frozen=True, kw_only=True):
    records_per_s: float


async def work(plan: Plan, turn: Turn, tell: Tell) -> None:
    async with aio.connect(plan.address, timeout=60) as service:
        log = await service.log(plan.log, engine="bolt")
        while await turn():
            began, count = now(), 0
            ends = began + int(plan.seconds * _NS)
            while now() < ends:
                async for page in log.pages(0, plan.records):
                    count += sum(batch.count for batch in page)
                    if now() >= ends:
                        break
            tell(Done(records_per_s=count / (now() - began) * _NS))


if __name__ == "__main__":
    serve(Plan, work)
