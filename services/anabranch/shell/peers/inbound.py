"""Connections that other nodes have dialed: of one node's, the newest is the one that counts."""

import asyncio
from typing import Generic, TypeVar

from anabranch.shell.peers.connection import Line

STOP_S = 1.0
"""How long the other side may take to fetch what was written before the end."""

M = TypeVar("M")


class Inbound(Generic[M]):
    """All of them, and which of them are known by the name of their node."""

    def __init__(self, noun: str) -> None:
        """`noun`: what those who dial are called in the reasons that they are given."""
        self._noun = noun
        self._named: dict[str, Line[M]] = {}
        self._all: dict[Line[M], None] = {}
        self._empty = asyncio.Event()
        self._empty.set()

    def add(self, line: Line[M]) -> None:
        self._all[line] = None
        self._empty.clear()

    def drop(self, node: str) -> bool:
        """End what this node dialed before; false if there was nothing."""
        before = self._named.pop(node, None)
        if before is not None:
            before.abort(f"the same {self._noun} has another connection")
        return before is not None

    def name(self, line: Line[M]) -> None:
        """The node has greeted, and this connection is its one from here on."""
        assert line.peer, "a line has the name of its node once that has greeted"
        assert line.peer not in self._named, "what it dialed before is dropped first"
        self._named[line.peer] = line

    def of(self, node: str) -> Line[M] | None:
        return self._named.get(node)

    def counts(self, line: Line[M]) -> bool:
        """Is this its node's newest?"""
        return bool(line.peer) and self._named.get(line.peer) is line

    def remove(self, line: Line[M]) -> bool:
        """It is over; true if its node has gone with it."""
        del self._all[line]
        if not self._all:
            self._empty.set()
        gone = self.counts(line)
        if gone:
            del self._named[line.peer]
        return gone

    async def stop(self, why: str) -> None:
        """End them all, once the other sides have fetched what was written."""
        for line in list(self._all):
            line.end(why)
        try:
            async with asyncio.timeout(STOP_S):
                await self._empty.wait()
        except TimeoutError:
            for line in list(self._all):
                line.abort(why)
            await self._empty.wait()
