"""Numbers that no client means: they are refused where they enter, and cost nobody anything."""

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import fields, replace
from tests.integration.test_budgets import created, run, site
from tests.unit.core.bolt.protocol.test_codec import values
from tests.unit.shell.nodes import Client, Node, until
from tests.unit.shell.nodes import run as run_nodes

from anabranch.core.belfast.protocol import messages as belfast
from anabranch.core.bolt.protocol.messages import (
    ClientMessage,
    Control,
    Ping,
    Read,
    Records,
    Subscribe,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.types import NEVER, LogId
from anabranch.core.wire.numbers import fault_in

EXTREMES = (-(1 << 63), -NEVER, -1, 0, 1, 1 << 31, NEVER, NEVER + 1, (1 << 63) - 1, (1 << 64) - 1)


@st.composite
def extreme(draw: st.DrawFn, kind: Any) -> Any:
    """A message whose numbers are extreme, or those of a log that is there."""

    def drawn(message: Struct) -> Any:
        changed: dict[str, Any] = {}
        for field in fields(message):
            value = getattr(message, field.name)
            if isinstance(value, Struct):
                changed[field.name] = drawn(value)
            elif type(value) is int:
                changed[field.name] = draw(st.sampled_from((*EXTREMES, 1, 1, 0)))
        return replace(message, **changed)

    return drawn(draw(values(kind)))


@pytest.mark.parametrize("number", [-(1 << 63), -1000, -1, NEVER + 1, (1 << 64) - 1])
def test_a_window_that_no_memory_has_is_refused_by_its_field(number: int) -> None:
    for message in (Subscribe(LogId(1), 0, True, number), belfast.Subscribe("a", 0, None, number)):
        fault = fault_in(message)
        assert fault is not None
        assert fault.code == "bad-request"
        assert f"_bytes of {number}" in fault.message


def test_a_negative_window_is_refused_and_others_go_on_reading() -> None:
    async def scene() -> None:
        async with site() as here:
            eve, ann = await here.greeted(), await here.greeted()
            log = await created(ann)
            eve.say(Subscribe(log, 0, True, -1))
            assert await eve.code() == "bad-request"
            assert not here.embedded.budgets.subscriptions.used
            assert isinstance(await ann.call(Read(log, 0, 1, 1_000)), Records)

    run(scene())


def test_a_negative_window_is_refused_by_a_belfast_node_too() -> None:
    async def scene() -> None:
        node = Node()
        async with node.alive():
            client = await Client.of(node)
            client.line.send(1, belfast.Subscribe("a", 0, None, -1))
            await until(lambda: len(client.told) == 1)
            [(_, refused)] = client.told
            assert isinstance(refused, Refused)
            assert refused.code == "bad-request"
            assert not node.server.budgets.subscriptions.used
            client.line.close()

    run_nodes(scene())


async def survives(messages: list[ClientMessage]) -> None:
    """Ends when everything is given back; raises what the server failed of."""
    async with site() as here:
        wire = await here.greeted()
        await created(wire)
        for message in messages:
            wire.say(message)
        # Some of them wait, and this is refused at once, behind all of them.
        wire.say(Read(LogId(1), 0, -7_777, 1))
        while not (isinstance(told := await wire.answer(), Refused) and "-7777" in told.message):
            pass
        other = await here.greeted()
        await other.call(Ping())


@settings(max_examples=6, deadline=None, phases=[Phase.generate])
@given(st.lists(extreme(Control), min_size=10, max_size=30))
def test_no_number_stops_a_server_or_keeps_what_clients_share(
    messages: list[ClientMessage],
) -> None:
    run(survives(messages))


async def node_survives(messages: list[belfast.ToServer]) -> None:
    node = Node()
    async with node.alive():
        client = await Client.of(node)
        for request, message in enumerate(messages, 1):
            client.line.send(request, message)
        last = len(messages) + 1
        client.line.send(last, belfast.Subscribe("a", 0, None, -1))
        await until(lambda: any(request == last for request, _ in client.told))
        client.line.close()
        budgets = node.server.budgets
        kinds = (budgets.connections, budgets.requests, budgets.replies, budgets.subscriptions)
        await until(lambda: not any(kind.used for kind in kinds))
        assert not node.host.failed.done()


@settings(max_examples=10, deadline=None, phases=[Phase.generate])
@given(st.lists(extreme(belfast.ToServer), min_size=10, max_size=30))
def test_no_number_stops_a_belfast_node_or_keeps_what_clients_share(
    messages: list[belfast.ToServer],
) -> None:
    run_nodes(node_survives(messages))
