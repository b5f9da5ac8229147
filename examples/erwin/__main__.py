"""`python -m examples.erwin key-value`: run applications on an Erwin log, and check their output.

Each takes a log of its own, named after it; one that exists is used from its tail on.
"""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence

from examples.erwin import teller, word_count, ycsb
from examples.erwin.shared_log import ErwinSharedLog, SharedLog
from examples.service import chosen

from anabranch import aio
from anabranch.cli.service.choice import DEFAULT_URL
from anabranch.core.errors import AnabranchError
from anabranch.core.types import Position


async def key_value(log: SharedLog, start: Position, requests: int, seed: int) -> list[str]:
    """YCSB's workloads one after the other, each checked."""
    wrong: list[str] = []
    for name in ycsb.READ_SHARE:
        workload = ycsb.Workload(name, requests, clients=4, seed=seed)
        wrong += await ycsb.play(log, start, workload)
        entries = await log.read(start)
        start = entries[-1].position + 1 if entries else start
    return wrong


async def bank(log: SharedLog, start: Position, requests: int, seed: int) -> list[str]:
    return await teller.play(log, start, teller.Business(requests, seed=seed))


async def words(log: SharedLog, start: Position, requests: int, seed: int) -> list[str]:
    text = word_count.Text(requests, batch_lines=max(1, requests // 50), seed=seed)
    return await word_count.play(log, start, text)


Play = Callable[[SharedLog, Position, int, int], Awaitable[list[str]]]
APPLICATIONS: dict[str, Play] = {"key-value": key_value, "bank": bank, "word-count": words}


async def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.erwin", description=__doc__)
    parser.add_argument("application", choices=sorted(APPLICATIONS), nargs="+")
    parser.add_argument(
        "--url", help=f"of the service (default: ANABRANCH_URL, a profile's, or {DEFAULT_URL})"
    )
    parser.add_argument(
        "--requests", type=int, default=2_000, help="puts and gets, transactions, or lines to count"
    )
    parser.add_argument("--seed", type=int, default=1, help="what the records are made up from")
    asked = parser.parse_args(words)
    failed = False
    url, settings = chosen(asked.url)
    async with aio.connect(url, settings=settings) as service:
        for name in asked.application:
            log = await service.ensure(name, engine="erwin")
            wrong = await APPLICATIONS[name](
                ErwinSharedLog(log), await log.tail(), asked.requests, asked.seed
            )
            failed |= bool(wrong)
            status = await log.status()
            print(f"{name}: {'; '.join(wrong) or 'its output is right'}, in view {status.view}.")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main(sys.argv[1:])))
    except AnabranchError as error:
        sys.exit(f"error: {error}")
