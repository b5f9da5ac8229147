"""Connections that other nodes have dialed, against a naive account of them."""

import asyncio
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.shell.cancellation import TURNS, is_heeded
from tests.unit.shell.nodes import run

from anabranch.shell.peers import inbound
from anabranch.shell.peers.connection import Line
from anabranch.shell.peers.inbound import Inbound


class Stub:
    """A line that ends when it is told, or not before it is broken off."""

    def __init__(self, *, deaf: bool = False) -> None:
        self.peer = ""
        self.deaf = deaf
        self.ended: list[str] = []
        self.aborted: list[str] = []
        self.over = asyncio.Event()

    def end(self, why: str) -> None:
        self.ended.append(why)
        if not self.deaf:
            self.over.set()

    def abort(self, why: str) -> None:
        self.aborted.append(why)
        self.over.set()


def line(stub: Stub) -> "Line[Any]":
    return cast("Line[Any]", stub)


programs = st.lists(
    st.tuples(st.sampled_from(["dial", "greet", "break"]), st.integers(0, 9)), max_size=60
)


@given(programs)
def test_of_each_node_the_newest_counts_and_all_others_are_ended(
    program: list[tuple[str, int]],
) -> None:
    async def scene() -> None:
        lines = Inbound[Any]("broker")
        there: list[Stub] = []
        newest: dict[str, Stub] = {}
        for what, which in program:
            if what == "dial":
                there.append(Stub())
                lines.add(line(there[-1]))
            elif there and what == "greet":
                stub = there[which % len(there)]
                if stub.peer or stub.aborted:
                    continue
                node = f"n{which % 3}"
                before = newest.get(node)
                assert lines.drop(node) == (before is not None)
                if before is not None:
                    assert before.aborted == ["the same broker has another connection"]
                stub.peer = node
                lines.name(line(stub))
                newest[node] = stub
            elif there:
                stub = there.pop(which % len(there))
                gone = newest.get(stub.peer) is stub
                assert lines.remove(line(stub)) == gone
                if gone:
                    del newest[stub.peer]
            for node in ("n0", "n1", "n2"):
                assert lines.of(node) is newest.get(node)
            for stub in there:
                assert lines.counts(line(stub)) == (newest.get(stub.peer) is stub)

    run(scene())


def test_stopping_waits_until_all_have_gone() -> None:
    async def scene() -> None:
        lines, stubs = Inbound[Any]("node"), [Stub() for _ in range(3)]
        for stub in stubs:
            lines.add(line(stub))
        stopping = asyncio.ensure_future(lines.stop("it ends"))
        for stub in stubs:
            await stub.over.wait()
            assert not stopping.done()
            lines.remove(line(stub))
        await stopping
        assert [stub.ended for stub in stubs] == [["it ends"]] * 3
        assert all(not stub.aborted for stub in stubs)

    run(scene())


def test_one_that_doesnt_fetch_what_it_was_sent_is_broken_off() -> None:
    async def scene() -> None:
        lines, deaf = Inbound[Any]("node"), Stub(deaf=True)
        lines.add(line(deaf))
        stopping = asyncio.ensure_future(lines.stop("it ends"))
        await deaf.over.wait()
        assert deaf.aborted == ["it ends"]
        lines.remove(line(deaf))
        await stopping

    short, inbound.STOP_S = inbound.STOP_S, 0.01
    try:
        run(scene())
    finally:
        inbound.STOP_S = short


@pytest.mark.parametrize("turns", TURNS)
def test_a_cancellation_is_heeded_also_when_the_last_line_ends_just_then(turns: int) -> None:
    async def scene() -> None:
        lines, stub = Inbound[Any]("node"), line(Stub(deaf=True))
        lines.add(stub)
        assert await is_heeded(lines.stop("it ends"), lambda: lines.remove(stub), turns)

    run(scene())


def test_stopping_with_nobody_there_is_over_at_once() -> None:
    async def scene() -> None:
        await Inbound[Any]("node").stop("it ends")

    run(scene())
