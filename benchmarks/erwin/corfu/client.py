"""Corfu's client, which drives an append: the counter, then each replica of the chain in turn."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TypeVar

from anabranch.client.driver.wire import Replies, Wire
from anabranch.core.errors import AnabranchError, BadFrame, OutcomeUnknown
from anabranch.core.errors.refused import Refused
from anabranch.core.types import Position
from benchmarks.distance.delay import Delay
from benchmarks.distance.wire import DelayedWire
from benchmarks.erwin.corfu.codec import CODEC
from benchmarks.erwin.corfu.messages import (
    CORFU_VERSION,
    Found,
    FromCorfu,
    Granted,
    Hello,
    Next,
    Read,
    ToCorfu,
    Welcome,
    Write,
    Written,
)

A = TypeVar("A")
_CLOSED = "its connection ended before it was answered"


class CorfuLog:
    """A client of one log, with a connection to each of its nodes. An append that fails leaves a
    hole, and isn't tried again.
    """

    def __init__(self, cluster: str, sequencer: str, shards: Sequence[Sequence[str]]) -> None:
        """`shards`: the addresses of each one's replicas, the primary's first."""
        assert shards, "batches lie on shards"
        self._cluster, self._sequencer, self._shards = cluster, sequencer, shards
        self._nodes: dict[str, _Node] = {}
        self._delay = Delay(0)

    async def connect(self, delay_us: int) -> None:
        addresses = [self._sequencer, *(each for shard in self._shards for each in shard)]
        self._delay = Delay(delay_us)
        made = await asyncio.gather(*(_connected(each, self._delay) for each in addresses))
        self._nodes = dict(zip(addresses, made, strict=True))
        hello = Hello(CORFU_VERSION, self._cluster, "benchmark")
        for node in made:
            await node.ask(hello, Welcome)

    def close(self) -> None:
        for node in self._nodes.values():
            node.close()
        self._delay.stop()

    async def append(self, batch: bytes) -> Position:
        """Returns the position when every replica of its shard holds the batch."""
        granted = await self._nodes[self._sequencer].ask(Next(), Granted)
        write = Write(granted.position, batch)
        for replica in self._chain(granted.position):
            await self._nodes[replica].ask(write, Written)
        return granted.position

    async def read(self, position: Position) -> bytes:
        """The batch at this position; empty if it isn't written yet.

        The last replica of a chain has only what all have.
        """
        last = self._chain(position)[-1]
        return (await self._nodes[last].ask(Read(position), Found)).batch

    def _chain(self, position: Position) -> Sequence[str]:
        return self._shards[position % len(self._shards)]


class _Node:
    """One connection."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._wire: Wire[FromCorfu]
        self._requests = 0
        self._waiting: dict[int, asyncio.Future[FromCorfu]] = {}

    def made(self, delay: Delay) -> Wire[FromCorfu]:
        wire = DelayedWire[FromCorfu](CODEC.replies(), self._heard, self._lost, None)
        wire.delay = delay
        self._wire = wire
        return wire

    async def ask(self, message: ToCorfu, answer: type[A]) -> A:
        self._requests += 1
        number = self._requests
        waiting: asyncio.Future[FromCorfu] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        self._wire.send(CODEC.encode_request(number, message))
        found = await waiting
        if isinstance(found, Refused):
            raise found.error()
        if not isinstance(found, answer):
            raise BadFrame(f"{type(found).__name__} came where {answer.__name__} was asked")
        return found

    def close(self) -> None:
        self._wire.abort()
        self._end(OutcomeUnknown(f"a request to {self._address}", _CLOSED))

    def _heard(self, wire: Wire[FromCorfu], replies: Replies[FromCorfu]) -> None:
        for number, message in replies:
            waiting = self._waiting.pop(number, None)
            if waiting is None or waiting.done():
                continue
            if isinstance(message, AnabranchError):
                waiting.set_exception(message)
            else:
                waiting.set_result(message)

    def _lost(self, wire: Wire[FromCorfu], reason: str) -> None:
        self._end(OutcomeUnknown(f"a request to {self._address}", reason))

    def _end(self, error: AnabranchError) -> None:
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(error)
        self._waiting.clear()


async def _connected(address: str, delay: Delay) -> _Node:
    host, _, port = address.rpartition(":")
    node = _Node(address)
    loop = asyncio.get_running_loop()
    await loop.create_connection(partial(node.made, delay), host, int(port))
    return node
