"""Clients of a node, over sockets of this machine: what they are told, and what they may cost."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.shell.nodes import HELLO, Client, Node, run, until

from anabranch.core.belfast.ledger.windows import Run
from anabranch.core.belfast.protocol import codec as frames
from anabranch.core.belfast.protocol.messages import (
    Append,
    Appended,
    Confirmed,
    Delivered,
    Directory,
    Done,
    Inspect,
    Locate,
    Subscribe,
    Trim,
)
from anabranch.core.errors import (
    AnabranchError,
    Overloaded,
    Unauthorized,
    Unavailable,
    VersionMismatch,
    WrongCluster,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import Effect, Event, Gone, Replies, Reply, Request, Requests
from anabranch.core.wire.frames import HEADER
from anabranch.core.wire.session import Cancel, Credit
from anabranch.shell.net.connect import Hint, parse_address

DIRECTORY = Directory(1, 2, "leader:1", (), 3, 4)


def acknowledge(event: Event) -> Sequence[Effect]:
    """Everything is appended at once, at the position of its own first byte."""
    match event:
        case Requests(tokens, messages):
            runs = [Appended((Run(message.batch[0], 1),)) for message in messages]
            return [Replies(tokens, runs)]
        case Request(token, Locate()):
            return [Reply(token, DIRECTORY)]
        case Request(token, Trim()):
            return [Reply(token, Done())]
        case _:
            return []


def asked(node: Node) -> list[Any]:
    return [event.message for event in node.puppet.events if isinstance(event, Request)]


def token_of(node: Node, kind: type) -> int:
    (found,) = [
        event.token
        for event in node.puppet.events
        if isinstance(event, Request) and isinstance(event.message, kind)
    ]
    return found


def test_appends_that_come_together_reach_the_machine_together_and_are_answered() -> None:
    async def scene() -> None:
        node = Node()
        node.puppet.rule = acknowledge
        async with node.alive():
            client = await Client.of(node)
            assert client.line.welcome.cluster == "c"
            for request in range(1, 101):
                client.line.send(request, Append(bytes([request])))
            client.line.send(101, Locate())
            await until(lambda: len(client.told) == 101)
            expected = [(n, Appended((Run(n, 1),))) for n in range(1, 101)]
            assert client.told == [*expected, (101, DIRECTORY)]
            assert len(node.puppet.events) < 10, "not each by itself"
            client.line.close()
            await until(lambda: node.server.gauges.connections == 0)

    run(scene())


def test_clients_are_told_where_nodes_were_met_and_dial_them_there() -> None:
    """Names of what was replaced lead nowhere for a while: this one never does."""

    async def scene() -> None:
        known, replaced = Node(), Node(name="replaced.invalid")
        known.nodes.append(replaced.address)
        known.puppet.rule = acknowledge
        async with known.alive(), replaced.alive():
            known.mesh.hosts |= {replaced.address: "127.0.0.1", "stranger:1": "127.0.0.1"}
            client = await Client.of(known)
            client.line.send(1, Locate())
            await until(lambda: len(client.told) == 1)
            [(_, told)] = client.told
            assert isinstance(told, Directory)
            assert told.hosts == {replaced.address: "127.0.0.1"}, "a stranger is nobody's node"
            with pytest.raises(Unavailable):
                await Client.of(replaced)
            hint = Hint(told.hosts[replaced.address])
            other = await Client.of(replaced, hint=hint)
            assert other.line.welcome.node == replaced.address
            other.line.close()
            client.line.close()

    run(scene())


def test_a_subscription_gets_many_replies_and_its_credit_and_end_refer_to_it() -> None:
    async def scene() -> None:
        node = Node()
        async with node.alive():
            client, other = await Client.of(node), await Client.of(node)
            client.line.send(7, Subscribe("a", 0))
            await until(lambda: len(asked(node)) == 1)
            token = token_of(node, Subscribe)
            delivered = Delivered(1, 9, True, (Run(3, 2),), (b"batch",), ((0, 2),))
            node.puppet.rule = lambda event: (
                [Reply(token, delivered), Reply(token, Confirmed(1, 9))]
                if isinstance(event, Request) and isinstance(event.message, Credit)
                else []
            )
            client.line.send(8, Credit(7, 1 << 20))
            await until(lambda: len(client.told) == 2)
            assert client.told == [(7, delivered), (7, Confirmed(1, 9))]
            assert asked(node)[1] == Credit(token, 0), "nothing had come by then"
            other.line.send(7, Cancel(7))
            client.line.send(9, Cancel(7))
            client.line.send(10, Credit(7, 1))
            client.line.send(11, Locate())
            await until(lambda: isinstance(asked(node)[-1], Locate))
            assert asked(node)[2:] == [Cancel(token), Locate()]
            assert not other.told
            client.line.close()
            other.line.close()

    run(scene())


def test_windows_of_all_subscriptions_come_out_of_one_budget() -> None:
    async def scene() -> None:
        node = Node(limits=Limits(reply_bytes_max=1 << 20))
        async with node.alive():
            client = await Client.of(node)
            for number in range(1, 101):
                client.line.send(number, Subscribe("a", number))
            await until(lambda: len(asked(node)) + len(client.told) == 100)
            refused = {message.code for _, message in client.told if isinstance(message, Refused)}
            assert refused == {"overloaded"}
            windows = [each.window_bytes for each in asked(node) if isinstance(each, Subscribe)]
            budgets = node.server.budgets
            assert sum(windows) == budgets.replies.used <= 1 << 20
            assert len(windows) == budgets.subscriptions.used > 30
            client.line.close()
            await until(lambda: not budgets.replies.used and not budgets.connections.used)
            assert not budgets.subscriptions.used
            assert not budgets.requests.used

    run(scene())


def test_who_leaves_is_told_as_gone_with_what_is_unanswered() -> None:
    async def scene() -> None:
        node = Node()
        async with node.alive():
            client = await Client.of(node)
            client.line.send(1, Trim(5))
            client.line.send(2, Subscribe("a", 0))
            await until(lambda: len(asked(node)) == 2)
            client.line.close()
            await until(lambda: isinstance(node.puppet.events[-1], Gone))
            tokens = [token_of(node, Trim), token_of(node, Subscribe)]
            assert node.puppet.events[-1] == Gone(tokens)
            assert not client.over, "who closes knows it"

    run(scene())


@pytest.mark.parametrize(
    ("node", "hello", "refusal"),
    [
        ({}, replace(HELLO, version=9), VersionMismatch),
        ({}, replace(HELLO, cluster="d"), WrongCluster),
        ({"token": "secret"}, HELLO, Unauthorized),
        ({"token": "secret"}, replace(HELLO, token="other"), Unauthorized),
        ({"limits": Limits(connections_max=0)}, HELLO, Overloaded),
    ],
)
def test_a_stranger_is_refused_with_the_reason(
    node: dict[str, Any], hello: Any, refusal: type[AnabranchError]
) -> None:
    async def scene() -> None:
        one = Node(**node)
        async with one.alive():
            with pytest.raises(refusal):
                await Client.of(one, hello)
            assert one.puppet.events == []
            await until(lambda: one.server.gauges.connections == 0)

    run(scene())


def test_who_knows_the_token_is_let_in() -> None:
    async def scene() -> None:
        node = Node(token="secret")
        async with node.alive():
            client = await Client.of(node, replace(HELLO, token="secret"))
            client.line.close()

    run(scene())


def test_a_client_hears_once_that_its_node_stops_and_gets_what_was_begun() -> None:
    async def scene() -> None:
        node = Node()
        async with node.alive():
            client = await Client.of(node)
            client.line.send(1, Append(b"a"))
            client.line.send(2, Subscribe("a", 0))
            await until(lambda: len(node.puppet.events) == 2)
            (appended,) = [e for e in node.puppet.events if isinstance(e, Requests)]
            stopping = asyncio.get_running_loop().create_task(node.server.stop())
            await asyncio.sleep(0)
            client.line.send(3, Locate())
            await until(lambda: len(client.told) == 1)
            request, refused = client.told[0]
            assert isinstance(refused, Refused)
            assert (request, refused.code) == (3, "unavailable")
            node.puppet.rule = lambda _: [Reply(appended.tokens[0], Appended((Run(1, 1),)))]
            node.host.post(node.address, Gone([]))
            await stopping
            await until(lambda: len(client.over) == 1)
            assert client.told[1:] == [(1, Appended((Run(1, 1),)))]

    run(scene())


def test_a_client_that_is_owed_too_much_isnt_read_until_half_is_answered() -> None:
    async def scene() -> None:
        node = Node(limits=Limits(connection_bytes_max=100_000))
        async with node.alive():
            client = await Client.of(node)
            sent = 200
            for request in range(1, sent + 1):
                client.line.send(request, Append(bytes([request]) * 20_000))
                await asyncio.sleep(0)

            def taken() -> int:
                events = node.puppet.events
                return sum(len(e.tokens) for e in events if isinstance(e, Requests))

            await until(lambda: taken() >= 5)
            before = -1
            while before != taken():
                before = taken()
                for _ in range(20):
                    await asyncio.sleep(0)
            assert taken() < sent // 2, "what the socket and one read hold, at most"
            node.puppet.rule = acknowledge
            pending = [e for e in node.puppet.events if isinstance(e, Requests)]
            node.puppet.rule = lambda event: (
                [effect for each in pending for effect in acknowledge(each)]
                if isinstance(event, Gone)
                else acknowledge(event)
            )
            node.host.post(node.address, Gone([]))
            await until(lambda: len(client.told) == sent)
            assert sorted(request for request, _ in client.told) == list(range(1, sent + 1))
            client.line.close()

    run(scene())


def test_a_client_that_does_not_fetch_is_left() -> None:
    async def scene() -> None:
        node = Node(limits=Limits(connection_bytes_max=10_000))
        async with node.alive():
            reader, writer = await asyncio.open_connection(
                *parse_address(node.address), limit=1_000
            )
            writer.writelines(frames.encode_request(0, HELLO))
            await reader.readexactly(HEADER.size)
            writer.writelines(frames.encode_request(1, Subscribe("a", 0)))
            await until(lambda: len(asked(node)) == 1)
            token = token_of(node, Subscribe)
            batch = b"x" * 100_000
            delivered = Delivered(1, 9, True, (Run(3, 2),), (batch,), ((0, 2),))
            node.puppet.rule = lambda event: (
                [Reply(token, delivered)] if isinstance(event, Gone) and not event.tokens else []
            )

            def pushed() -> bool:
                node.host.post(node.address, Gone([]))
                return node.server.counters.left_unread == 1

            await until(pushed)
            await until(lambda: node.server.gauges.connections == 0)
            writer.close()

    run(scene())


def test_what_is_wrong_with_one_request_costs_no_other() -> None:
    async def scene() -> None:
        node = Node()
        node.puppet.rule = acknowledge
        async with node.alive():
            client = await Client.of(node)
            client.line.send(1, Subscribe("a", 0))
            client.line.send(1, Locate())
            client.line.send(2, HELLO)
            client.line.send(3, Locate())
            await until(lambda: len(client.told) == 3)
            codes = [m.code for _, m in client.told if isinstance(m, Refused)]
            assert codes == ["bad-request", "bad-request"]
            assert client.told[-1] == (3, DIRECTORY)
            client.line.close()

    run(scene())


def test_a_length_that_cant_be_believed_costs_the_connection() -> None:
    async def scene() -> None:
        node = Node(limits=Limits(frame_bytes_max=10_000))
        async with node.alive():
            client = await Client.of(node)
            client.line.send(1, Append(b"x" * 20_000))
            await until(lambda: len(client.over) == 1)
            assert "frame_bytes_max" in client.over[0]

    run(scene())


@pytest.mark.parametrize("question", [Locate(), Inspect()])
def test_a_node_makes_no_more_replies_than_there_is_room_for(question: Locate | Inspect) -> None:
    """The others wait in the connection, and are asked as replies leave."""

    async def scene() -> None:
        node = Node(limits=Limits(reply_bytes_max=1 << 20))
        async with node.alive():
            client = await Client.of(node)
            for request in range(1, 1_001):
                client.line.send(request, question)
            client.line.send(1_001, Trim(1))
            await until(lambda: asked(node)[-1:] == [Trim(1)])
            assert len(asked(node)) == 4 + 1
            node.puppet.rule = lambda event: (
                [Reply(event.token, DIRECTORY)] if isinstance(event, Request) else []
            )
            tokens = [event.token for event in node.puppet.events if isinstance(event, Request)]
            for token in tokens:
                node.host.post(node.address, Request(token, question))
            await until(lambda: len(client.told) == 1_001)
            assert client.told == [
                *((request, DIRECTORY) for request in [1, 2, 3, 4, 1_001, *range(5, 1_001)])
            ]
            assert node.server.budgets.replies.used == 0
            client.line.close()

    run(scene())
