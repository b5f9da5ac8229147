"""Letters between nodes, over sockets of this machine: what is said when links break."""

import asyncio
import socket
import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.certificates import Issuer
from tests.unit.shell.nodes import Client, Node, run, until

from anabranch.core.belfast.protocol import codec as frames
from anabranch.core.belfast.protocol.letters import Alive, Learn, Seal
from anabranch.core.belfast.protocol.messages import BELFAST_VERSION
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import Linked, Received
from anabranch.core.wire.frames import HEADER
from anabranch.core.wire.peers import (
    LETTER,
    Greeting,
    encode_greeting,
    encode_letter,
    greetings,
)
from anabranch.shell.net.connect import parse_address
from anabranch.shell.net.tls import TlsSettings, trusting
from anabranch.shell.peers import connection, half_letters, mesh
from anabranch.shell.runtime import failpoints


def linked(node: Node, to: Node, times: int = 1) -> bool:
    return node.puppet.events.count(Linked(to.address)) >= times


async def link(node: Node, to: Node) -> None:
    """The first letter has the other node dialed, and is lost."""
    node.send(to, Seal(shard=0, epoch=0))
    await until(lambda: linked(node, to))


def test_each_dials_the_other_and_letters_come_in_order_with_their_senders_address() -> None:
    async def scene() -> None:
        one, other = Node(), Node()
        async with one.alive(), other.alive():
            await link(one, other)
            await link(other, one)
            there = [Seal(shard=1, epoch=n) for n in range(100)]
            back = [Learn(shard=1, epoch=n, primary=one.address) for n in range(100)]
            for letter in there:
                one.send(other, letter)
            for letter in back:
                other.send(one, letter)
            await until(lambda: other.puppet.letters == there and one.puppet.letters == back)
            senders = {e.sender for e in other.puppet.events if isinstance(e, Received)}
            assert senders == {one.address}
            assert one.mesh.gauges.connected == 1
            assert one.mesh.counters.lost == 1
            assert one.mesh.counters.letters_in == 100

    run(scene())


def test_letters_to_one_that_is_away_are_lost_and_it_is_dialed_until_it_is_back() -> None:
    async def scene() -> None:
        one, other = Node(), Node()
        async with one.alive():
            one.send(other, Seal(shard=1, epoch=1))
            await until(lambda: "no node is here" in one.lines.getvalue())
            assert one.mesh.counters.lost == 1
            async with other.alive():
                await until(lambda: linked(one, other))
                one.send(other, Seal(shard=1, epoch=2))
                await until(lambda: other.puppet.letters == [Seal(shard=1, epoch=2)])
            await until(lambda: one.mesh.gauges.connected == 0)
            one.send(other, Seal(shard=1, epoch=3))
            assert one.mesh.counters.lost == 2
            async with other.alive():
                await until(lambda: linked(one, other, 2))
                one.send(other, Seal(shard=1, epoch=4))
                await until(
                    lambda: other.puppet.letters == [Seal(shard=1, epoch=2), Seal(shard=1, epoch=4)]
                )
            assert one.lines.getvalue().count("a node is here") == 2

    run(scene())


class Resolver:
    """What names lead to: nowhere, or to where somebody was."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.leads: dict[str, list[str]] = {}
        self.asked: list[str] = []
        ask = asyncio.BaseEventLoop.getaddrinfo

        async def answer(loop: Any, host: str, port: int, **more: Any) -> Any:
            self.asked.append(host)
            if host not in self.leads:
                return await ask(loop, host, port, **more)
            if not self.leads[host]:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            made = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
            return [(*made, (address, port)) for address in self.leads[host]]

        monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", answer)


@pytest.mark.parametrize("leads_to", [[], ["127.0.0.9"]], ids=["nowhere", "where it was"])
def test_a_node_that_was_replaced_is_reached_whatever_its_name_leads_to(
    monkeypatch: pytest.MonkeyPatch, leads_to: list[str]
) -> None:
    """It dials the others, who learn from that where it is."""

    async def scene() -> None:
        names = Resolver(monkeypatch)
        names.leads = {"partner": ["127.0.0.1"], "primary": leads_to}
        partner, primary = Node(name="partner"), Node(name="primary")
        async with partner.alive(), primary.alive():
            partner.send(primary, Seal(shard=1, epoch=1))
            await until(lambda: "no node is here" in partner.lines.getvalue())
            primary.send(partner, Seal(shard=1, epoch=2))
            await until(lambda: linked(partner, primary))
            partner.send(primary, Seal(shard=1, epoch=3))
            await until(lambda: primary.puppet.letters == [Seal(shard=1, epoch=3)])
            assert partner.mesh.hosts == {primary.address: "127.0.0.1"}
            assert names.asked.count("primary") >= 1

    run(scene())


def test_who_answers_at_an_address_that_was_anothers_isnt_taken_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene() -> None:
        one, other = Node(), Node()
        Resolver(monkeypatch).leads = {"gone": ["127.0.0.1"]}
        _, port = parse_address(other.address)
        async with one.alive(), other.alive():
            one.mesh.send(one.address, f"gone:{port}", Seal(shard=1, epoch=1))
            await until(lambda: f"{other.address} is there now" in one.lines.getvalue())
            assert not one.puppet.events

    run(scene())


@pytest.mark.parametrize("patience_s", [0.0, 60.0])
def test_a_node_that_cant_be_dialed_for_a_while_isnt_heard(
    monkeypatch: pytest.MonkeyPatch, patience_s: float
) -> None:
    """Or it would be counted on for what nobody can ask of it."""
    monkeypatch.setattr(mesh, "DEAF_S", patience_s)

    async def scene() -> None:
        leader, replica = Node(), Node()  # which nobody runs
        async with leader.alive():
            leader.send(replica, Seal(shard=1, epoch=1))
            await until(lambda: "no node is here" in leader.lines.getvalue())
            _, writer, _ = await greeted(leader, replica.address)
            writer.write(b"".join(encode_letter(Learn(shard=1, epoch=1, primary=""))))
            counters = leader.mesh.counters
            await until(lambda: counters.lost > 1 or counters.letters_in > 0)
            assert bool(leader.puppet.letters) == (patience_s > 0)
            writer.close()

    run(scene())


def test_one_to_which_nothing_is_sent_is_left_and_dialed_again_when_something_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mesh, "IDLE_S", 0.02)

    async def scene() -> None:
        one, other = Node(), Node()
        async with one.alive(), other.alive():
            one.send(other, Seal(shard=1, epoch=1))
            await until(lambda: other.mesh.counters.connections > 0)
            await until(lambda: one.mesh.gauges.connected == 0)
            await until(lambda: "a node has gone" in other.lines.getvalue())
            before = other.mesh.counters.connections
            one.send(other, Seal(shard=1, epoch=2))
            await until(lambda: other.mesh.counters.connections > before)

    run(scene())


@pytest.mark.parametrize(
    ("ours", "theirs", "sentence"),
    [
        ({"cluster": "d"}, {}, "belongs to cluster c, not to d"),
        ({"peer_token": "x"}, {"peer_token": "y"}, "peer_token"),
        ({}, {"peer_token": "y"}, "peer_token"),
    ],
)
def test_a_stranger_is_refused_with_a_sentence_that_both_sides_log(
    ours: dict[str, Any], theirs: dict[str, Any], sentence: str
) -> None:
    async def scene() -> None:
        one, other = Node(**ours), Node(**theirs)
        async with one.alive(), other.alive():
            one.send(other, Seal(shard=1, epoch=1))
            await until(lambda: sentence in one.lines.getvalue())
            assert sentence in other.lines.getvalue()
            assert one.puppet.events == other.puppet.events == []
            assert other.mesh.counters.refused >= 1
            assert one.mesh.gauges.connected == 0

    run(scene())


def test_another_version_is_refused() -> None:
    async def scene() -> None:
        one, other = Node(), Node()
        one.protocol = replace(one.protocol, version=99)
        async with other.alive(), one.alive():
            one.send(other, Seal(shard=1, epoch=1))
            await until(lambda: "upgrade the older" in one.lines.getvalue())
            assert "upgrade the older" in other.lines.getvalue()

    run(scene())


async def greeted(node: Node, name: str = "127.0.0.1:9", **more: Any) -> Any:
    """A connection by hand, of somebody who greets under this name, and what it is answered."""
    reader, writer = await asyncio.open_connection(*parse_address(node.address), **more)
    writer.write(encode_greeting(Greeting(BELFAST_VERSION, "c", name)))
    ((_, answer),) = greetings().feed(await reader.read(1 << 16))
    return reader, writer, answer


def test_of_two_connections_of_one_node_the_newer_is_the_one() -> None:
    async def scene() -> None:
        node = Node()
        async with node.alive():
            older, to_older, _ = await greeted(node)
            _, to_newer, answer = await greeted(node)
            assert answer == node.mesh.greeting
            assert await older.read(1) == b"", "the older is closed"
            to_newer.write(b"".join(encode_letter(Seal(shard=1, epoch=2))))
            await until(lambda: node.puppet.letters == [Seal(shard=1, epoch=2)])
            to_older.close()
            to_newer.close()

    run(scene())


def test_who_was_met_under_ever_new_names_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mesh, "HOSTS_MAX", 2)

    async def scene() -> None:
        node = Node()
        async with node.alive():
            dialed = "127.0.0.1:10"
            node.mesh.send(node.address, dialed, Seal(shard=0, epoch=0))
            for name in (dialed, *(f"127.0.0.1:{port}" for port in range(11, 15))):
                _, writer, _ = await greeted(node, name)
                writer.close()
            assert list(node.mesh.hosts) == [dialed, "127.0.0.1:14"]

    run(scene())


def half_letter(size: int) -> bytes:
    """The beginning of a letter of this size."""
    return HEADER.pack(size, LETTER, 0, 0, 0) + bytes(100)


def test_large_letters_that_have_begun_wait_for_room_and_go_on_when_there_is_some() -> None:
    async def scene() -> None:
        limits = Limits()
        node = Node(limits=limits)
        async with node.alive():
            most = limits.peer_frame_bytes_max
            dialed = [await greeted(node, f"127.0.0.1:{port}") for port in range(11, 21)]
            for _, writer, _ in dialed:
                writer.write(half_letter(most - 4))
            await until(lambda: node.mesh.room.used == 8 * most)
            letter = Seal(shard=1, epoch=2)
            _, small, _ = await greeted(node, "127.0.0.1:30")
            small.write(b"".join(encode_letter(letter)))
            await until(lambda: node.puppet.letters == [letter])
            for _, writer, _ in dialed[:8]:
                writer.close()
            await until(lambda: node.mesh.room.used == 2 * most)
            for _, writer, _ in (*dialed, (None, small, None)):
                writer.close()
            await until(lambda: node.mesh.room.used == 0)

    run(scene())


def test_a_large_letter_of_which_a_byte_comes_now_and_then_ends_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(half_letters, "LETTER_S", 0.05)

    async def scene() -> None:
        node = Node()
        async with node.alive():
            _, writer, _ = await greeted(node)
            writer.write(half_letter(1 << 20))
            pieces = asyncio.create_task(drip(writer))
            await until(lambda: node.mesh.counters.left_silent == 1)
            await until(lambda: node.mesh.room.used == 0)
            pieces.cancel()
            writer.close()

    run(scene())


async def drip(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"x")
        await asyncio.sleep(0.005)


def test_a_node_that_nobody_could_dial_or_that_bears_our_name_is_refused() -> None:
    async def scene() -> None:
        node = Node()
        async with node.alive():
            for name in ("", "somebody", "host:0", ":7"):
                _, writer, answer = await greeted(node, name)
                assert "nobody could dial it" in answer.error().message
                writer.close()
            _, writer, answer = await greeted(node, node.address)
            assert "this node's own name" in answer.error().message
            writer.close()

    run(scene())


def test_who_is_silent_is_left_and_who_says_nothing_but_pulses_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "PULSE_S", 0.02)

    async def scene() -> None:
        one, other = Node(), Node()
        async with one.alive(), other.alive():
            await link(one, other)
            _, writer, _ = await greeted(other)
            await until(lambda: other.mesh.counters.left_silent >= 1)
            before = one.mesh.counters.bytes_in
            await until(lambda: one.mesh.counters.bytes_in > before)
            writer.close()

    run(scene())


def test_what_is_neither_a_node_nor_a_client_is_left() -> None:
    async def scene() -> None:
        node = Node()
        async with node.alive():
            for said in (
                b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
                b"".join(encode_letter(Seal(shard=1, epoch=1))),
                encode_greeting(Greeting(1, "c", "127.0.0.1:9"))
                + b"".join(encode_letter(Seal(shard=1, epoch=1))),
                encode_greeting(Greeting(1, "c", "x" * 5_000)),
            ):
                reader, writer = await asyncio.open_connection(*parse_address(node.address))
                writer.write(said)
                ((request, answer),) = frames.replies().feed(await reader.read())
                assert isinstance(answer, Refused)
                assert (request, answer.code) == (0, "bad-frame")
                writer.close()
            assert node.puppet.events == []

    run(scene())


def test_a_letter_that_is_too_large_is_not_sent_and_harms_no_other() -> None:
    async def scene() -> None:
        one, other = Node(limits=Limits(peer_frame_bytes_max=1_000)), Node()
        async with one.alive(), other.alive():
            await link(one, other)
            one.send(other, Alive("a" * 2_000, (), 1, 1, 1))
            one.send(other, Seal(shard=1, epoch=1))
            await until(lambda: other.puppet.letters == [Seal(shard=1, epoch=1)])
            assert "too large" in one.lines.getvalue()

    run(scene())


def test_letters_are_dropped_where_a_failpoint_says_so(disarmed: None) -> None:
    async def scene() -> None:
        one, other = Node(), Node()
        async with one.alive(), other.alive():
            await link(one, other)
            failpoints.arm("peers.receive=drop@2")
            for epoch in (1, 2, 3):
                one.send(other, Seal(shard=1, epoch=epoch))
            await until(
                lambda: other.puppet.letters == [Seal(shard=1, epoch=1), Seal(shard=1, epoch=3)]
            )

    run(scene())


def test_nodes_show_each_other_certificates(certificates: dict[str, TlsSettings]) -> None:
    async def scene() -> None:
        one, other = Node(tls=certificates["ours"]), Node(tls=certificates["ours"])
        async with one.alive(), other.alive():
            await link(one, other)
            one.send(other, Seal(shard=1, epoch=1))
            await until(lambda: other.puppet.letters == [Seal(shard=1, epoch=1)])
            for strange in (certificates["theirs"], TlsSettings()):
                stranger = Node(tls=strange)
                async with stranger.alive():
                    stranger.send(other, Seal(shard=1, epoch=2))
                    await until(lambda s=stranger: "no node is here" in s.lines.getvalue())
                    assert stranger.puppet.events == []
            assert other.puppet.letters == [Seal(shard=1, epoch=1)]

    run(scene())


def test_a_node_is_taken_only_by_the_name_in_its_certificate(tmp_path: Path) -> None:
    issuer = Issuer(tmp_path / "ca")
    ours = issuer.issue("node")
    other = issuer.issue("gateway", names="DNS:gateway.test")

    async def scene() -> None:
        one = Node(tls=ours)
        async with one.alive():
            stranger = Node(tls=other)
            async with stranger.alive():
                stranger.send(one, Seal(shard=0, epoch=0))
                await until(lambda: "issued for 127.0.0.1" in stranger.lines.getvalue())
                assert one.mesh.counters.refused == 1
                assert not linked(stranger, one)

    run(scene())


def test_who_shows_no_certificate_may_be_a_client_and_no_node(
    certificates: dict[str, TlsSettings],
) -> None:
    async def scene() -> None:
        node, context = Node(tls=certificates["ours"]), bare(certificates["ours"])
        async with node.alive():
            client = await Client.of(node, tls=context)
            assert client.line.welcome.node == node.address
            client.line.close()
            _, writer, answer = await greeted(node, ssl=context)
            assert "shows no certificate" in answer.error().message
            writer.close()

    run(scene())


def bare(ours: TlsSettings) -> ssl.SSLContext:
    """Of somebody who trusts our authority, and has no certificate of it."""
    return trusting(TlsSettings(ca=ours.ca)).current()
