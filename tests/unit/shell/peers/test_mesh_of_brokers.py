"""The network between processes, over sockets of this machine: what is said when it breaks."""

import asyncio
import io
import socket
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from tests.certificates import LOOPBACK, Issuer

from anabranch.core.bolt.protocol import peers as bolt_peers
from anabranch.core.bolt.protocol.letters import Alive, Ask, Leading, QueryAnswer
from anabranch.core.bolt.protocol.queries import Census, Survey
from anabranch.core.budget import Budget
from anabranch.core.errors import (
    AccessDenied,
    AnabranchError,
    BadRequest,
    VersionMismatch,
    WrongCluster,
)
from anabranch.core.limits import Limits
from anabranch.core.machine import Event, Linked, Received
from anabranch.core.wire import peers as frames
from anabranch.shell.net.connect import parse_address
from anabranch.shell.net.room import Room
from anabranch.shell.net.tls import TlsSettings, bears_name, check_mutual, dialing, listening
from anabranch.shell.peers import connection
from anabranch.shell.peers.engines import bolt_broker, bolt_member
from anabranch.shell.peers.mesh import Mesh
from anabranch.shell.runtime import failpoints
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.telemetry.log import Log

MEMBER, BROKER = "metadata-0", "broker-0"
PATIENCE_S = 60.0


def run(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, PATIENCE_S))


class Machine:
    """What was posted to it, and who waits for more."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._more = asyncio.Event()

    def post(self, node: str, event: Event) -> None:
        self.events.append(event)
        self._more.set()

    async def until(self, holds: Callable[[list[Event]], bool]) -> None:
        while not holds(self.events):
            self._more.clear()
            await self._more.wait()


class Side:
    """A member or a broker: its machine, and what it logged."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.lines = io.StringIO()
        self.log = Log(Clock().now, stream=self.lines)


class Member(Side):
    def __init__(
        self,
        cluster: str = "c",
        limits: Limits | None = None,
        *,
        names: str = "",
        incarnation: str = "",
        token: str | None = None,
    ) -> None:
        super().__init__()
        self._cluster = cluster
        self._limits = limits or Limits()
        self._protocol = bolt_member(names)
        self._incarnation = incarnation
        self._token = token
        self.server: Mesh
        # Bound and not yet listening: who dials it is turned away, and nobody else can have it.
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"

    @asynccontextmanager
    async def serving(self, tls: Any = None) -> AsyncGenerator[str]:
        with self._socket:
            await self._serve(tls)
            try:
                yield self.address
            finally:
                await self.server.stop()

    async def _serve(self, tls: Any = None) -> None:
        self.server = Mesh(
            self._protocol,
            MEMBER,
            self._cluster,
            self._limits,
            self.log,
            incarnation=self._incarnation,
            token=self._token,
        )
        self.server.start(self.machine.post)
        await self.server.listen(
            self._socket.dup(), tls, room=Room(Budget(self._limits.connections_max))
        )

    @asynccontextmanager
    async def replaced(self) -> AsyncGenerator[None]:
        """By another process at the same address."""
        await self.server.stop()
        yield
        await self._serve()


class Broker(Side):
    def __init__(
        self,
        *members: str,
        cluster: str = "c",
        node: str = BROKER,
        version: int = frames.PEER_VERSION,
        **more: Any,
    ) -> None:
        super().__init__()
        protocol = replace(bolt_broker(), version=version)
        self.links = Mesh(protocol, node, cluster, Limits(), self.log, **more)
        self._members = members

    @asynccontextmanager
    async def dialing(self, tls: Any = None) -> AsyncGenerator[None]:
        self.links.start(self.machine.post, tls, members=self._members)
        try:
            yield
        finally:
            await self.links.stop()


def linked(times: int) -> Callable[[list[Event]], bool]:
    return lambda events: sum(isinstance(each, Linked) for each in events) >= times


def heard(*messages: Any) -> Callable[[list[Event]], bool]:
    def holds(events: list[Event]) -> bool:
        told = [each.message for each in events if isinstance(each, Received)]
        return told == list(messages)

    return holds


def test_letters_go_both_ways_in_order_and_say_who_wrote_them() -> None:
    async def scene() -> None:
        member = Member()
        async with member.serving() as address:
            broker = Broker(address)
            async with broker.dialing():
                await broker.machine.until(linked(1))
                await member.machine.until(linked(1))
                asked = [Ask(n, Survey()) for n in range(100)]
                for ask in asked:
                    broker.links.send(BROKER, address, ask)
                await member.machine.until(heard(*asked))
                census = Census("c", 1, 2, 3, 4, 5, 6)
                member.server.send(MEMBER, BROKER, Leading(7))
                member.server.send(MEMBER, BROKER, QueryAnswer(99, census))
                await broker.machine.until(heard(Leading(7), QueryAnswer(99, census)))
            assert broker.machine.events[0] == Linked(address)
            assert member.machine.events[0] == Linked(BROKER)
            assert {e.sender for e in member.machine.events if isinstance(e, Received)} == {BROKER}
            assert {e.sender for e in broker.machine.events if isinstance(e, Received)} == {address}
            assert member.server.counters.letters_in == 100

    run(scene())


def test_a_broken_connection_is_made_again_and_told_as_linked() -> None:
    async def scene() -> None:
        member = Member()
        async with member.serving() as address:
            broker = Broker(address)
            async with broker.dialing():
                await broker.machine.until(linked(1))
                async with member.replaced():
                    await _until(lambda: broker.links.gauges.connected == 0)
                    broker.links.send(BROKER, address, Alive(1))
                    assert broker.links.counters.lost == 1
                await broker.machine.until(linked(2))
                broker.links.send(BROKER, address, Alive(2))
                await member.machine.until(heard(Alive(2)))
            said = broker.lines.getvalue()
            assert said.count("a member is here") == 2
            assert said.count("no member is here") >= 1

    run(scene())


async def _until(holds: Callable[[], bool]) -> None:
    # Nobody tells when a counter has grown.
    while not holds():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def test_a_member_that_is_not_there_yet_is_dialed_until_it_is() -> None:
    async def scene() -> None:
        member = Member()
        broker = Broker(member.address)
        async with broker.dialing():
            await _until(lambda: "no member is here" in broker.lines.getvalue())
            async with member.serving():
                await broker.machine.until(linked(1))
                assert not broker.links.refused.done()

    run(scene())


@pytest.mark.parametrize(
    ("broker", "member", "refusal", "sentence"),
    [
        ({"cluster": "d"}, {}, WrongCluster, "metadata-0 belongs to cluster c, not to d"),
        ({"token": "x"}, {"token": "y"}, AccessDenied, "peer_token"),
        ({}, {"token": "y"}, AccessDenied, "peer_token"),
        ({"incarnation": "1"}, {"incarnation": "2"}, WrongCluster, "c (2), not to c (1) of its"),
        ({"node": ""}, {}, AccessDenied, "--name"),
    ],
)
def test_a_stranger_is_refused_with_a_sentence_that_both_sides_log(
    broker: dict[str, Any],
    member: dict[str, Any],
    refusal: type[AnabranchError],
    sentence: str,
) -> None:
    async def scene() -> None:
        there = Member(**member)
        async with there.serving() as address:
            here = Broker(address, **broker)
            async with here.dialing():
                error = await here.links.refused
                assert isinstance(error, refusal)
                assert sentence in error.message
                await _until(lambda: sentence in here.lines.getvalue())
                assert sentence in there.lines.getvalue()
            assert there.machine.events == []
            assert there.server.gauges.connected == 0

    run(scene())


def test_another_version_is_refused() -> None:
    async def scene() -> None:
        there = Member()
        async with there.serving() as address:
            here = Broker(address, version=frames.PEER_VERSION + 1)
            async with here.dialing():
                error = await here.links.refused
                assert isinstance(error, VersionMismatch)
                assert "upgrade the older" in error.message

    run(scene())


def test_of_two_connections_of_one_name_the_newer_is_the_one() -> None:
    async def scene() -> None:
        member = Member()
        async with member.serving() as address:
            older = await _greeted(address)
            newer = await _greeted(address)
            assert await older.read(1) == b"", "the older is closed"
            newer.write(b"".join(frames.encode_letter(Alive(2))))
            await member.machine.until(heard(Alive(2)))
            assert member.server.gauges.connected == 1
            member.server.send(MEMBER, BROKER, Leading(3))
            assert (await newer.read(1 << 16)).endswith(b"".join(frames.encode_letter(Leading(3))))
            newer.close()
            older.close()

    run(scene())


class Wire:
    """A connection by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.read = reader.read
        self.write = writer.write
        self.close = writer.close


async def _greeted(address: str, **more: Any) -> Wire:
    wire = Wire(*await asyncio.open_connection(*parse_address(address), **more))
    wire.write(frames.encode_greeting(frames.Greeting(frames.PEER_VERSION, "c", BROKER)))
    (_, greeting), *_ = bolt_peers.messages_of_members(1 << 16).feed(await wire.read(1 << 16))
    assert isinstance(greeting, frames.Greeting)
    return wire


def test_who_does_not_read_is_left_and_not_waited_for() -> None:
    async def scene() -> None:
        member = Member(limits=Limits(peer_unsent_bytes_max=1 << 16))
        async with member.serving() as address:
            reader, writer = await asyncio.open_connection(*parse_address(address), limit=1 << 10)
            writer.write(frames.encode_greeting(frames.Greeting(frames.PEER_VERSION, "c", BROKER)))
            await member.machine.until(linked(1))
            while member.server.counters.left_unread == 0:
                for _ in range(100):
                    member.server.send(
                        MEMBER, BROKER, QueryAnswer(1, Census("c" * 10_000, *range(6)))
                    )
                await asyncio.sleep(0)
            await _until(lambda: member.server.gauges.connected == 0)
            writer.close()
            assert reader is not None

    run(scene())


def test_who_is_silent_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PULSE_S", 0.02)

    async def scene() -> None:
        member = Member()
        async with member.serving() as address:
            broker = Broker(address)
            mute = await _greeted(address)
            await _until(lambda: member.server.counters.left_silent == 1)
            async with broker.dialing():
                await broker.machine.until(linked(1))
                before = broker.links.counters.bytes_in
                await _until(lambda: broker.links.counters.bytes_in > before + 100)
            mute.close()

    run(scene())


def test_what_is_no_peer_is_left() -> None:
    async def scene() -> None:
        member = Member()
        async with member.serving() as address:
            reader, writer = await asyncio.open_connection(*parse_address(address))
            writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            assert await reader.read() == b""
            writer.close()
            assert member.machine.events == []

    run(scene())


def test_a_letter_that_is_too_large_is_not_sent_and_harms_no_other() -> None:
    async def scene() -> None:
        member = Member(limits=Limits(peer_frame_bytes_max=1_000))
        async with member.serving() as address:
            broker = Broker(address)
            async with broker.dialing():
                await member.machine.until(linked(1))
                member.server.send(MEMBER, BROKER, QueryAnswer(1, Census("c" * 2_000, *range(6))))
                member.server.send(MEMBER, BROKER, Leading(1))
                await broker.machine.until(heard(Leading(1)))
            assert member.server.counters.lost == 1
            assert "too large" in member.lines.getvalue()

    run(scene())


def test_letters_are_dropped_where_a_failpoint_says_so(disarmed: None) -> None:
    async def scene() -> None:
        member = Member()
        async with member.serving() as address:
            broker = Broker(address)
            async with broker.dialing():
                await broker.machine.until(linked(1))
                failpoints.arm("peers.send=drop@2")
                for epoch in (1, 2, 3):
                    broker.links.send(BROKER, address, Alive(epoch))
                await member.machine.until(heard(Alive(1), Alive(3)))

    run(scene())


def test_peers_show_each_other_certificates(certificates: dict[str, TlsSettings]) -> None:
    async def scene() -> None:
        ours, theirs = certificates["ours"], certificates["theirs"]
        member = Member()
        async with member.serving(listening(ours)) as address:
            broker = Broker(address)
            async with broker.dialing(dialing(ours)):
                await broker.machine.until(linked(1))
                broker.links.send(BROKER, address, Alive(1))
                await member.machine.until(heard(Alive(1)))
            for strange in (dialing(theirs), dialing(TlsSettings(ca=ours.ca)), None):
                stranger = Broker(address, node="stranger")
                async with stranger.dialing(strange):
                    await _until(
                        lambda stranger=stranger: "no member is here" in stranger.lines.getvalue()
                    )
                assert stranger.machine.events == []
            assert "stranger" not in member.lines.getvalue()

    run(scene())


def test_a_broker_is_taken_only_by_the_name_in_its_certificate(tmp_path: Path) -> None:
    """The authority has signed for others too: for a gateway, or for a whole company."""
    issuer = Issuer(tmp_path / "ca")
    ours = issuer.issue("broker", names=f"{LOOPBACK},DNS:*.brokers.test")
    gateway = issuer.issue("gateway", names=f"{LOOPBACK},DNS:gateway.test,DNS:brokers.test")

    async def scene() -> None:
        member = Member(names="{name}.brokers.test")
        async with member.serving(listening(ours)) as address:
            stranger = Broker(address)
            async with stranger.dialing(dialing(gateway)):
                refused = "no certificate that was issued for broker-0.brokers.test"
                await _until(lambda: refused in stranger.lines.getvalue())
                assert stranger.machine.events == []
            # In a pod a broker is called by the pod's name and UID.
            for node in (BROKER, f"{BROKER}.3ce15f5e-b33b-419d-8ab0-05762fc3bd3e"):
                broker = Broker(address, node=node)
                async with broker.dialing(dialing(ours)):
                    await broker.machine.until(linked(1))
        assert member.server.counters.refused >= 1

    run(scene())


@pytest.mark.parametrize(
    ("kind", "pattern", "name", "covers"),
    [
        ("DNS", "a.test", "a.test", True),
        ("DNS", "A.Test", "a.test.", True),
        ("DNS", "*.test", "a.test", True),
        ("DNS", "*.test", "b.a.test", False),
        ("DNS", "*.test", ".test", False),
        ("DNS", "*.test", "test", False),
        ("DNS", "*", "test", False),
        ("DNS", "a*.test", "ab.test", False),
        ("DNS", "127.0.0.1", "127.0.0.1", True),
        ("IP Address", "127.0.0.1", "127.0.0.1", True),
        ("IP Address", "0:0:0:0:0:0:0:1\n", "::1", True),
        ("IP Address", "127.0.0.1", "127.0.0.2", False),
        ("email", "a.test", "a.test", False),
    ],
)
def test_names_of_certificates(kind: str, pattern: str, name: str, covers: bool) -> None:
    class Transport:
        def get_extra_info(self, _: str) -> object:
            return {"subjectAltName": ((kind, pattern),)}

    assert bears_name(cast("asyncio.Transport", Transport()), name) is covers


def test_half_a_tls_configuration_is_refused(certificates: dict[str, TlsSettings]) -> None:
    ours = certificates["ours"]
    check_mutual(ours, "peer_tls")
    check_mutual(TlsSettings(), "peer_tls")
    with pytest.raises(BadRequest, match="all three"):
        check_mutual(TlsSettings(ca=ours.ca), "peer_tls")
    with pytest.raises(BadRequest, match="readable PEM"):
        listening(TlsSettings(cert=ours.key, key=ours.key))
    with pytest.raises(BadRequest, match="readable PEM"):
        dialing(TlsSettings(ca="/no/such/file"))
    with pytest.raises(BadRequest, match="has no certificate"):
        dialing(TlsSettings(key=ours.key))
    assert listening(TlsSettings()) is None
    assert dialing(TlsSettings()) is None
