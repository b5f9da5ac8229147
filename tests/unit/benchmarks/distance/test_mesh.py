"""A benchmark's distance between nodes: letters come later, in their order."""

import asyncio

from benchmarks.distance.mesh import DelayedMesh
from tests.unit.shell.nodes import Node, run, until

from anabranch.core.belfast.protocol.letters import Seal
from anabranch.core.machine import Linked


class Far(DelayedMesh):
    delay_us = 3_000


def test_a_delay_keeps_the_order_of_letters() -> None:
    async def scene() -> None:
        one, other = Node(), Node()
        one.network = Far
        async with one.alive(), other.alive():
            one.send(other, Seal(shard=0, epoch=0))
            await until(lambda: Linked(other.address) in one.puppet.events)
            sent = [Seal(shard=1, epoch=n) for n in range(200)]
            for n, letter in enumerate(sent):
                one.send(other, letter)
                if n % 20 == 0:
                    await asyncio.sleep(0.001)
            await until(lambda: other.puppet.letters == sent)

    run(scene())
