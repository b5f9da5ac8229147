"""A link to a world in memory, and programs of it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.unit.client.erwin.world import CLUSTER, World

from anabranch.client.erwin.link import Link
from anabranch.client.erwin.log import SequencedLog
from anabranch.client.session.effects import Dial, HangUp, Transmit
from anabranch.client.session.endpoint import endpoint
from anabranch.client.session.settings import Settings


class MemoryLink(Link):
    """Whatever is said arrives in the same turn of the loop. `orders`: and is ordered."""

    def __init__(self, *, orders: bool = True, **world: Any) -> None:
        self.world = World(step=self.step, **world)
        self.orders = orders
        super().__init__(endpoint("host:1"), Settings(), CLUSTER, ["q0"])

    def flow(self) -> None:
        self.world.flow()
        if self.orders:
            self.world.order(1 << 20)
            self.world.flow()

    def _perform(self, effects: list[Any]) -> None:
        said = [each for each in effects if isinstance(each, Dial | HangUp | Transmit)]
        super()._perform([each for each in effects if each not in said])
        self.world.perform(said)
        if said:
            asyncio.get_running_loop().call_soon(self.flow)


class MemoryLog(SequencedLog):
    link: MemoryLink

    @property
    def name(self) -> str:
        return "memory"


def run(program: Callable[[MemoryLog], Awaitable[None]], **world: Any) -> World:
    """Run this with a log of such a world."""

    async def played() -> World:
        link = MemoryLink(**world)
        link.start()
        try:
            async with asyncio.timeout(20):
                await program(MemoryLog(link))
        finally:
            link.close()
        return link.world

    return asyncio.run(played())
