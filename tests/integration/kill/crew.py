"""`python -m tests.integration.kill.crew URL NUMBER SEED FILE`: a client process of a kill test.

Says `.` for every append that was acknowledged and `q` when all that it asked is answered. Told
`stop` it ends its calls; told how far each log is settled, it waits until its subscriptions are
there, writes its account into FILE, and ends.
"""

import asyncio
import os
import sys
from pathlib import Path
from random import Random

import msgspec
from tests.integration.kill.account import Account
from tests.integration.kill.actor import Actor, Follower

from anabranch import aio
from anabranch.client.session.settings import Settings
from anabranch.core.errors import AnabranchError
from anabranch.core.history.calls import Append, Call
from anabranch.core.limits import KIB
from anabranch.core.records.codecs import Codec
from anabranch_sim.bolt.directory import Directory

ACTORS = 2
CATCH_UP_S = 30.0


class Speaker(Account):
    """An account that lets others hear how it goes on."""

    def succeeded(self, call: Call) -> None:
        super().succeeded(call)
        if isinstance(call, Append):
            os.write(1, b".")


async def commands() -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=1 << 24)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


def settings(rng: Random, number: int) -> Settings:
    return Settings(
        client=f"client-{number}",
        codec=rng.choice((Codec.NONE, Codec.NONE, Codec.LZ4)),
        batches_in_flight_max=rng.choice((1, 2, 8)),
        subscription_bytes=rng.choice((KIB, 64 * KIB)),
        read_bytes=rng.choice((KIB, 64 * KIB)),
        timeout_ms=20_000,
        backoff_ms_max=200,
    )


async def catch_up(follower: Follower, end: int, account: Account) -> None:
    try:
        async with asyncio.timeout(CATCH_UP_S):
            await follower.reach(end)
    except TimeoutError:
        name, final = follower.log.name, follower.final
        account.faults.append(f"a subscription of {name} fell silent at {final} of {end}")


async def run(url: str, number: int, seed: int) -> Account:
    rng = Random(f"{seed}/{number}")
    account, directory = Speaker(number), Directory()
    followers: list[Follower] = []
    actors: list[Actor] = []
    told, stop = await commands(), asyncio.Event()
    for actor in range(number * ACTORS, (number + 1) * ACTORS):
        service = await aio.connect(url, timeout=20, settings=settings(rng, actor))
        actors.append(Actor(service, actor, Random(rng.random()), account, directory, followers))
    async with asyncio.TaskGroup() as working:
        for actor in actors:
            working.create_task(actor.work(stop))
        await told.readline()
        stop.set()
    os.write(1, b"q")
    ends = msgspec.json.decode(await told.readline(), type=dict[int, int])
    for follower in followers:
        await catch_up(follower, ends.get(follower.log.id, 0), account)
    for actor in actors:
        actor.close()
        try:
            await actor.service.close()
        except AnabranchError:
            continue  # of an append that nobody awaits: its history has it
    return account


if __name__ == "__main__":
    played = asyncio.run(run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
    Path(sys.argv[4]).write_bytes(msgspec.msgpack.encode(played))
