"""Every port that speaks TLS counts connections before their handshakes are over."""

import asyncio
import io
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import uvloop
from tests.certificates import certified

from anabranch.apps import process
from anabranch.apps.asgi import http_server
from anabranch.core.budget import EVERYBODY, STRANGERS, Budget
from anabranch.core.limits import Limits
from anabranch.shell.net.handshake import secured
from anabranch.shell.net.room import Room
from anabranch.shell.net.tls import TlsSettings, listening, trusting
from anabranch.shell.peers.engines import bolt_member
from anabranch.shell.peers.mesh import Mesh
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.server.budgets import Budgets
from anabranch.shell.server.frame_server import FrameServer
from anabranch.shell.telemetry.log import Log

LIMIT = 8
"""Connections of a process. Strangers get half."""
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}

Opened = AbstractAsyncContextManager[int]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> TlsSettings:
    return certified(tmp_path_factory.mktemp("tls") / "ours")


def run(loop: str, scene: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(10):
            await scene()

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(bounded())


async def until(true: Callable[[], bool]) -> None:
    # Nobody tells when a connection has been counted.
    while not true():  # noqa: ASYNC110
        await asyncio.sleep(0.001)


def context(ours: TlsSettings) -> ssl.SSLContext:
    found = listening(ours, strangers=True)
    assert found is not None
    return found


async def dial(port: int, ours: TlsSettings) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port, ssl=trusting(ours).current())


@asynccontextmanager
async def frames(budgets: Budgets, ours: TlsSettings) -> AsyncGenerator[int]:
    server = FrameServer(Limits(), budgets=budgets)
    listener = await process.listener("127.0.0.1", 0)
    await server.take_over(listener, context(ours))
    try:
        yield listener.getsockname()[1]
    finally:
        await server.stop()


@asynccontextmanager
async def mesh(budgets: Budgets, ours: TlsSettings) -> AsyncGenerator[int]:
    log = Log(Clock().now, stream=io.StringIO())
    peers = Mesh(bolt_member(), "metadata-0", "c", Limits(), log, incarnation="i")
    listener = await process.listener("127.0.0.1", 0)
    peers.start(lambda node, event: None)
    await peers.listen(listener, context(ours), room=Room(budgets.connections))
    try:
        yield listener.getsockname()[1]
    finally:
        await peers.stop()


async def nothing(scope: Any, receive: Any, send: Any) -> None:
    for step in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{step}.complete"})


@asynccontextmanager
async def http(budgets: Budgets, ours: TlsSettings) -> AsyncGenerator[int]:
    server = http_server(nothing, context(ours), budgets)
    try:
        yield await server.start("127.0.0.1", 0)
    finally:
        await server.stop()


@pytest.mark.parametrize("port", [frames, mesh, http])
def test_strangers_in_a_handshake_make_room_for_the_next_ones(
    port: Callable[[Budgets, TlsSettings], Opened], ours: TlsSettings
) -> None:
    async def scene() -> None:
        budgets = Budgets(Limits(), LIMIT)
        async with port(budgets, ours) as number:
            callers = [await asyncio.open_connection("127.0.0.1", number) for _ in range(2 * LIMIT)]
            kept = LIMIT // 2
            try:
                await until(lambda: budgets.connections.used == kept)
                for reader, _ in callers[:-kept]:
                    assert await reader.read() == b"", "the oldest made room"
                callers.append(await dial(number, ours))
                assert budgets.connections.used == kept, "one more made room for that"
            finally:
                for _, writer in callers:
                    writer.transport.abort()
            await until(lambda: budgets.connections.used == 0)

    run("uvloop", scene)


class Echo(asyncio.Protocol):
    """Says what it is told, once it knows to whom."""

    def connection_made(self, transport: Any) -> None:
        assert transport.get_extra_info("sslcontext") is not None
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


@asynccontextmanager
async def echoing(room: Room, ours: TlsSettings) -> AsyncGenerator[int]:
    loop = asyncio.get_running_loop()
    made = secured(Echo, context(ours), room)
    listener = await loop.create_server(made, "127.0.0.1", 0)
    try:
        yield listener.sockets[0].getsockname()[1]
    finally:
        listener.close()


@pytest.mark.parametrize("loop", LOOPS)
def test_what_comes_right_behind_a_handshake_is_heard(loop: str, ours: TlsSettings) -> None:
    """In the same packet as the handshake's end."""

    async def scene() -> None:
        connections = Budget(LIMIT)
        async with echoing(Room(connections), ours) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = trusting(ours).current().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
            while True:
                try:
                    tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    writer.write(outgoing.read())
                    incoming.write(await reader.read(1 << 16))
            tls.write(b"at once")
            writer.write(outgoing.read())
            heard = b""
            while heard != b"at once":
                incoming.write(await reader.read(1 << 16))
                try:
                    heard += tls.read(100)
                except ssl.SSLWantReadError:
                    continue
            assert connections.used == 0, "from here on its protocol counts it"
            writer.transport.abort()

    run(loop, scene)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_connection_that_ends_within_its_handshake_is_counted_no_more(
    loop: str, ours: TlsSettings
) -> None:
    async def scene() -> None:
        connections = Budget(LIMIT)
        async with echoing(Room(connections, EVERYBODY), ours) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await until(lambda: connections.used == 1)
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            await reader.read()
            writer.close()
            _, gone = await asyncio.open_connection("127.0.0.1", port)
            await until(lambda: connections.used == 1)
            gone.transport.abort()
            await until(lambda: connections.used == 0)

    run(loop, scene)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_port_that_stops_ends_handshakes(loop: str, ours: TlsSettings) -> None:
    async def scene() -> None:
        connections = Budget(LIMIT)
        room = Room(connections, STRANGERS)
        async with echoing(room, ours) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await until(lambda: connections.used == 1)
            room.clear()
            assert connections.used == 0
            assert await reader.read() == b""
            writer.close()

    run(loop, scene)
