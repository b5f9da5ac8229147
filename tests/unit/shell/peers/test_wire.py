"""Processes of the version before and of this one share a cluster while it is upgraded: what they
write to one another is compared byte by byte with what that version wrote.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from tests.unit.shell.nodes import Node, run, until

from anabranch.core.belfast.protocol.letters import Seal
from anabranch.core.bolt.protocol.letters import Alive, Leading
from anabranch.core.budget import Budget
from anabranch.core.limits import Limits
from anabranch.core.machine import Event, Linked, Received
from anabranch.shell.net.connect import parse_address
from anabranch.shell.net.room import Room
from anabranch.shell.peers import connection
from anabranch.shell.peers.engines import bolt_broker, bolt_member
from anabranch.shell.peers.mesh import Mesh
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.telemetry.log import Log

HEAD = "010000000000000097a8" + b"greeting".hex()
BROKER = bytes.fromhex(
    f"00000026{HEAD}01a163a862726f6b65722d30a3302e39a174a169"  # broker-0, release 0.9, token, id
)
MEMBER = bytes.fromhex(f"00000027{HEAD}01a163aa6d657461646174612d30a3302e39c0a169")  # no token
ALIVE = bytes.fromhex("00000010020000000000000092a5616c69766507")
LEADING = bytes.fromhex("00000013020000000000000093a76c656164696e670300")
SEAL = bytes.fromhex("00000010020000000000000093a47365616c0102")
PULSE = bytes.fromhex("000000080300000000000000")


class Process:
    """One process of a Bolt cluster, and what its machine was posted."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.events: list[Event] = []

    def post(self, node: str, event: Event) -> None:
        self.events.append(event)


@pytest.fixture(autouse=True)
def no_pulses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PULSE_S", 3600.0)


def log() -> Log:
    return Log(Clock().now)


@asynccontextmanager
async def member() -> AsyncGenerator[tuple[Process, str]]:
    node, limits = "metadata-0", Limits()
    mesh = Mesh(bolt_member(), node, "c", limits, log(), release="0.9", token="t", incarnation="i")
    process = Process(mesh)
    with socket.socket() as on:
        on.bind(("127.0.0.1", 0))
        mesh.start(process.post)
        await mesh.listen(on, room=Room(Budget(limits.connections_max)))
        try:
            yield process, f"127.0.0.1:{on.getsockname()[1]}"
        finally:
            await mesh.stop()


def test_a_member_answers_an_older_broker_on_the_connection_that_it_dialed() -> None:
    async def scene() -> None:
        async with member() as (process, address):
            reader, writer = await asyncio.open_connection(*parse_address(address))
            writer.write(BROKER)
            assert await reader.readexactly(len(MEMBER)) == MEMBER
            assert process.events == [Linked("broker-0")]
            process.mesh.send("metadata-0", "broker-0", Leading(3))
            assert await reader.readexactly(len(LEADING)) == LEADING
            writer.write(PULSE + ALIVE)
            await until(lambda: process.events[1:] == [Received("broker-0", Alive(7))])
            writer.close()

    run(scene())


def test_a_broker_greets_an_older_member_and_takes_letters_on_the_same_connection() -> None:
    async def scene() -> None:
        met: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
        server = await asyncio.start_server(lambda *ends: met.put_nowait(ends), "127.0.0.1", 0)
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        node, limits = "broker-0", Limits()
        mesh = Mesh(
            bolt_broker(), node, "c", limits, log(), release="0.9", token="t", incarnation="i"
        )
        process = Process(mesh)
        mesh.start(process.post, members=[address])
        reader, writer = await met.get()
        assert await reader.readexactly(len(BROKER)) == BROKER
        writer.write(MEMBER + LEADING)
        await until(lambda: len(process.events) > 1)
        assert process.events == [Linked(address), Received(address, Leading(3))]
        mesh.send(node, address, Alive(7))
        assert await reader.readexactly(len(ALIVE)) == ALIVE
        await mesh.stop()
        assert await reader.read() == b"", "a broker that stops ends its connections"
        writer.close()
        server.close()

    run(scene())


def greeting_of(address: str, token: str | None = None) -> bytes:
    name = address.encode()
    shown = f"a1{token.encode().hex()}" if token else "c0"
    body = f"{HEAD}01a163{0xA0 + len(name):02x}{name.hex()}a0{shown}a0"
    return (len(body) // 2).to_bytes(4, "big") + bytes.fromhex(body)


@pytest.mark.parametrize("token", [None, "t"])
def test_an_older_node_is_dialed_back_and_written_to_where_it_listens(token: str | None) -> None:
    async def scene() -> None:
        met: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
        server = await asyncio.start_server(lambda *ends: met.put_nowait(ends), "127.0.0.1", 0)
        older = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        node = Node(peer_token=token)
        async with node.alive():
            reader, writer = await asyncio.open_connection(*parse_address(node.address))
            writer.write(greeting_of(older, token))
            ours = greeting_of(node.address, token)
            assert await reader.readexactly(len(ours)) == ours
            writer.write(PULSE + SEAL)
            await until(lambda: node.puppet.letters == [Seal(shard=1, epoch=2)])
            assert Linked(older) not in node.puppet.events, "nothing can be written to it yet"

            node.mesh.send(node.address, older, Seal(shard=0, epoch=0))
            its_reader, its_writer = await met.get()
            assert await its_reader.readexactly(len(ours)) == ours
            its_writer.write(greeting_of(older))
            await until(lambda: Linked(older) in node.puppet.events)
            node.mesh.send(node.address, older, Seal(shard=1, epoch=2))
            assert await its_reader.readexactly(len(SEAL)) == SEAL
            writer.close()
            its_writer.close()
        server.close()

    run(scene())
