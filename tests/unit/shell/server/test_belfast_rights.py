"""A Belfast node lets clients do what Kubernetes says they may, by the rights on its log."""

import io
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.shell.nodes import HELLO, PATIENCE_S, Client, Node, run, until
from tests.unit.shell.server.test_belfast_connections import acknowledge
from tests.unit.shell.server.test_rights_of_connections import TERMS, People

from anabranch.core.belfast.protocol.messages import (
    Append,
    Appended,
    Directory,
    Done,
    Inspect,
    Leave,
    Locate,
    Subscribe,
    ToServer,
    Trim,
)
from anabranch.core.errors import Overloaded, Unauthenticated
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import Request, Requests
from anabranch.core.rights.claims import LOGS, Subject, Verb
from anabranch.core.rights.judge import Guest, Judge
from anabranch.core.rights.one_log import log_of
from anabranch.core.wire.session import Cancel
from anabranch.shell.authority.open import NoCatalogue
from anabranch.shell.authority.reviewer import Warden
from anabranch.shell.server.append_limits import AppendLimits
from anabranch.shell.telemetry.log import Log, LogFormat

LOG = "c"
"""The cluster of every `Node`, and so its log's name."""


class House:
    """A node whose clients need rights, and who has them."""

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        allow_ms: int = TERMS.allow_ms,
        append_limits: AppendLimits | None = None,
    ) -> None:
        self.people = People()
        self.people.rights = {(Verb.APPEND, LOG), (Verb.READ, LOG)}
        self.warden = Warden(
            Judge(replace(TERMS, allow_ms=allow_ms, entries_max=1_000), "shop", "anabranch"),
            self.people,
            NoCatalogue(),
            Log(time.time_ns, stream=io.StringIO()),
            now=time.monotonic_ns,
            deadline_ms=round(PATIENCE_S * 1_000),
        )
        self.node = Node(limits=limits, authority=self.warden, append_limits=append_limits)
        self.node.puppet.rule = acknowledge

    @asynccontextmanager
    async def client(self, token: str = "token") -> AsyncGenerator[Client]:
        async with self.node.alive():
            client = await Client.of(self.node, replace(HELLO, token=token))
            yield client
            client.line.close()
            await until(lambda: self.node.server.gauges.connections == 0)
            await self.warden.close()

    def asked(self, kind: type) -> list[Any]:
        events = self.node.puppet.events
        many = [m for event in events if isinstance(event, Requests) for m in event.messages]
        one = [event.message for event in events if isinstance(event, Request)]
        return [each for each in (*many, *one) if isinstance(each, kind)]


async def answer(client: Client, request: int, message: ToServer) -> Any:
    client.line.send(request, message)
    await until(lambda: request in dict(client.told))
    return dict(client.told)[request]


def test_what_is_allowed_is_done_and_what_isnt_is_refused_alone() -> None:
    async def scene() -> None:
        house = House()
        async with house.client() as client:
            assert isinstance(await answer(client, 1, Append(b"a")), Appended)
            for request, message in enumerate((Trim(3), Leave("a")), 2):
                refused = await answer(client, request, message)
                assert isinstance(refused, Refused)
                assert refused.code == "forbidden"
                assert f"{LOGS} {LOG}" in refused.message or LOG in refused.message
            assert isinstance(await answer(client, 4, Append(b"b")), Appended)
            assert house.asked(Trim) == house.asked(Leave) == []

    run(scene())


def test_appends_keep_their_order_while_a_right_is_found_out() -> None:
    async def scene() -> None:
        house = House()
        async with house.client() as client:
            house.people.free.clear()
            for request in range(1, 51):
                client.line.send(request, Append(bytes([request])))
            await until(lambda: ("append", LOG) in house.people.asked)
            assert house.asked(Append) == []
            house.people.free.set()
            await until(lambda: len(client.told) == 50)
            found = b"".join(each.batch for each in house.asked(Append))
            assert found == bytes(range(1, 51))
            assert house.people.asked.count(("append", LOG)) == 1

    run(scene())


def test_the_nodes_are_found_without_any_right() -> None:
    async def scene() -> None:
        house = House()
        house.people.rights.clear()
        async with house.client() as client:
            assert isinstance(await answer(client, 1, Locate()), Directory)
            assert (await answer(client, 2, Inspect())).code == "forbidden"

    run(scene())


def test_a_token_that_is_nobodys_is_turned_away() -> None:
    async def scene() -> None:
        house = House()
        house.people.guest = "it is nobody's"
        async with house.node.alive():
            for hello in (replace(HELLO, token="other"), HELLO):
                with pytest.raises(Unauthenticated):
                    await Client.of(house.node, hello)
            assert house.node.puppet.events == []
            await until(lambda: house.node.server.gauges.connections == 0)
            await house.warden.close()

    run(scene())


def test_a_subscription_ends_when_its_right_is_gone() -> None:
    async def scene() -> None:
        house = House(allow_ms=1_000)
        async with house.client() as client:
            client.line.send(1, Subscribe("a", 0))
            await until(lambda: len(house.asked(Subscribe)) == 1)
            house.people.rights.discard((Verb.READ, LOG))
            await until(lambda: len(client.told) == 1)
            ((request, refused),) = client.told
            assert isinstance(refused, Refused)
            assert (request, refused.code) == (1, "forbidden")
            assert len(house.asked(Cancel)) == 1

    run(scene())


def test_clients_are_told_apart_in_the_budgets() -> None:
    """One that holds all it can get leaves room for another."""

    async def scene() -> None:
        house = House(Limits(connections_max=8))
        async with house.client() as client:
            more = [await Client.of(house.node, replace(HELLO, token="token")) for _ in range(3)]
            with pytest.raises(Overloaded):
                await Client.of(house.node, replace(HELLO, token="token"))
            house.people.guest = Guest("bea")
            other = await Client.of(house.node, replace(HELLO, token="another"))
            assert isinstance(await answer(other, 1, Append(b"x")), Appended)
            for each in (client, other, *more):
                each.line.close()

    run(scene())


def test_commands_are_logged_with_who_gave_them_and_denials_too() -> None:
    async def scene() -> None:
        house = House()
        house.node.form = LogFormat.JSON
        house.people.rights = {(Verb.TRIM, LOG)}
        async with house.client() as client:
            assert isinstance(await answer(client, 1, Trim(3)), Done)
            assert isinstance(await answer(client, 2, Append(b"x")), Refused)
        lines = [json.loads(line) for line in house.node.lines.getvalue().splitlines()]
        (allowed,) = [line for line in lines if line["event"] == "a command was allowed"]
        assert (allowed["who"], allowed["command"]) == ("ann", "trim")
        assert allowed["by"] == f"trim {LOGS}/{LOG}"
        (denied,) = [line for line in lines if line["event"] == "a request was denied"]
        assert "ann" in denied["reason"]

    run(scene())


@pytest.mark.parametrize(
    ("cluster", "log"),
    [
        ("shop.ticks", Subject(LOGS, "ticks", "shop")),
        ("ticks", Subject(LOGS, "ticks", "shop")),
        ("other.ticks", Subject(LOGS, "other.ticks", "shop")),
    ],
)
def test_rights_are_those_on_the_log_that_the_operator_calls_so(cluster: str, log: Subject) -> None:
    """A name never leads into a namespace that isn't the service's own."""
    assert log_of(cluster, "shop") == log
