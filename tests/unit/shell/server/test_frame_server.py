"""One port for the clients of every engine, and for nodes: the first frame says who has come."""

import asyncio
import io
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.unit.shell.nodes import Puppet, run, until

from anabranch.core.belfast.protocol import codec as belfast
from anabranch.core.belfast.protocol import messages as ticks
from anabranch.core.belfast.protocol.clients import BELFAST
from anabranch.core.bolt.protocol import codec as bolt
from anabranch.core.bolt.protocol.clients import BOLT
from anabranch.core.bolt.protocol.messages import Hello, Survey, Welcome
from anabranch.core.errors import AnabranchError, BadFrame, JournalBehind, Unauthorized, Unavailable
from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.protocol import codec as erwin
from anabranch.core.erwin.protocol import messages as entries
from anabranch.core.limits import Limits
from anabranch.core.machine import Request
from anabranch.core.sequencing.protocol import codec as sequencing
from anabranch.core.sequencing.protocol import messages as audits
from anabranch.core.wire.client_protocol import ClientProtocol
from anabranch.core.wire.frames import HEADER, FrameReader
from anabranch.core.wire.peers import GREETING_BYTES_MAX, Greeting, encode_greeting
from anabranch.shell.authority.shared import SharedToken
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.engines import (
    belfast_service,
    bolt_service,
    erwin_shard_service,
    sequencing_service,
)
from anabranch.shell.server.frame_server import FrameServer
from anabranch.shell.server.service import Absence, Service
from anabranch.shell.telemetry.log import Log

LIMITS = Limits()
NODES: dict[str, tuple[Callable[..., Service], Any, Any]] = {
    "/1/sequencer-0": (belfast_service, belfast, ticks),
    "/1/shard-0-0": (belfast_service, belfast, ticks),
    "/2/sequencer-0": (sequencing_service, sequencing, audits),
    "/2/shard-0-0": (erwin_shard_service, erwin, entries),
}
"""By its name, how a node is served, and its protocol's codec and messages."""


def located(messages: Any) -> Any:
    """The question for the directory. An Erwin shard answers the sequencing layer's."""
    return getattr(messages, "Locate", audits.Locate)()


class Nodes:
    """Whom greetings are handed to."""

    def __init__(self) -> None:
        self.met: list[tuple[Greeting, bool]] = []

    def welcome(self, transport: asyncio.Transport, greeting: Greeting, *, checked: bool) -> None:
        self.met.append((greeting, checked))
        transport.close()


class Caller:
    """A client of any engine, byte by byte."""

    def __init__(
        self, replies: FrameReader[Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._replies = replies
        self._reader = reader
        self._writer = writer
        self.heard: list[tuple[int, Any]] = []

    def say(self, *frames: list[Any]) -> None:
        self._writer.writelines([part for frame in frames for part in frame])

    async def hear(self) -> tuple[int, Any]:
        while not self.heard:
            data = await self._reader.read(1 << 16)
            assert data, "the server has hung up"
            self.heard += self._replies.feed(data)
        return self.heard.pop(0)

    async def left(self) -> None:
        assert await self._reader.read() == b""

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


class Home:
    """A server in front of a broker and two machines of a Belfast log."""

    def __init__(self) -> None:
        clock = Clock()
        log = Log(clock.now, stream=io.StringIO())
        self.machines = {name: Puppet() for name in ("broker", *NODES)}
        self.host = Host("c", None, None, now=clock.now, log=log)
        self.host.start(dict(self.machines))
        self.nodes = Nodes()
        self.server = FrameServer(LIMITS, peers=self.nodes)
        everybody = SharedToken(None)
        self.server.serve(
            bolt_service(self.host, "broker", LIMITS, cluster="c", version="1", authority=everybody)
        )
        self.services: dict[str, Service] = {}
        for name, (service, _, _) in NODES.items():
            self.services[name] = service(
                self.host, name, LIMITS, cluster="c", version="1", authority=everybody, name=name
            )
            self.server.serve(self.services[name])
        self.port = 0
        self.callers: list[Caller] = []

    async def call(self, replies: FrameReader[Any]) -> Caller:
        caller = Caller(replies, *await asyncio.open_connection("127.0.0.1", self.port))
        self.callers.append(caller)
        return caller

    async def belfast(self, node: str, token: str | None = None) -> Caller:
        caller = await self.call(belfast.replies())
        caller.say(belfast.encode_request(0, ticks.Hello(1, "c", "test", token, node)))
        return caller


@asynccontextmanager
async def home() -> AsyncGenerator[Home]:
    found = Home()
    found.port = await found.server.start("127.0.0.1", 0)
    yield found
    for caller in found.callers:
        await caller.close()
    await found.server.stop()
    await found.host.stop()


def test_clients_of_each_engine_reach_their_machine_at_one_port() -> None:
    async def scene() -> None:
        async with home() as here:
            broker = await here.call(bolt.replies())
            broker.say(bolt.encode_request(1, Hello(1, "test")), bolt.encode_request(2, Survey()))
            assert isinstance((await broker.hear())[1], Welcome)
            for name, (_, codec, messages) in NODES.items():
                caller = await here.call(codec.replies())
                caller.say(codec.encode_request(0, messages.Hello(1, "c", "test", None, name)))
                request, welcome = await caller.hear()
                assert request == 0
                assert isinstance(welcome, messages.Welcome)
                assert welcome.node == name
                caller.say(codec.encode_request(1, located(messages)))
            asked = {name: each.events for name, each in here.machines.items()}
            await until(lambda: all(asked.values()))
            found = {
                name: [event.message for event in events if isinstance(event, Request)]
                for name, events in asked.items()
            }
            located_by = {name: [located(messages)] for name, (_, _, messages) in NODES.items()}
            assert found == {"broker": [Survey()], **located_by}

    run(scene())


@pytest.mark.parametrize("node", ["/1/sequencer-1", "", "elsewhere:7440"])
def test_a_node_that_nobody_serves_yet_may_be_asked_for_again(node: str) -> None:
    async def scene() -> None:
        async with home() as here:
            caller = await here.belfast(node)
            _, refused = await caller.hear()
            assert isinstance(refused, Refused)
            assert isinstance(refused.error(), Unavailable)
            await caller.left()

    run(scene())


def test_a_server_for_nodes_alone_hangs_up_on_clients_and_takes_greetings() -> None:
    async def scene() -> None:
        nodes = Nodes()
        server = FrameServer(LIMITS, peers=nodes)
        port = await server.start("127.0.0.1", 0)
        hellos = [
            bolt.encode_request(1, Hello(1, "test")),
            belfast.encode_request(0, ticks.Hello(1, "c", "test", None, "x")),
            [b"GET / HTTP/1.1\r\n\r\n"],
        ]
        for hello in hellos:
            caller = Caller(bolt.replies(), *await asyncio.open_connection("127.0.0.1", port))
            caller.say(hello)
            await caller.left()
            await caller.close()
        assert server.counters.refused == len(hellos)
        greeting = Greeting(1, "c", "h:1")
        caller = Caller(bolt.replies(), *await asyncio.open_connection("127.0.0.1", port))
        caller.say([encode_greeting(greeting)])
        await caller.left()
        await caller.close()
        assert nodes.met == [(greeting, False)]
        await server.stop()

    run(scene())


def test_whoever_may_ask_is_told_why_a_node_is_not_served() -> None:
    async def scene() -> None:
        async with home() as here:
            why = JournalBehind("x/sequencer-0", 0, "it reached entry 7", "put it back")
            here.server.explain(BELFAST, "/2/sequencer-0", Absence(SharedToken("it"), why))
            told = list[type[AnabranchError]]()
            for token in ("it", "another"):
                caller = await here.belfast("/2/sequencer-0", token)
                _, refused = await caller.hear()
                assert isinstance(refused, Refused)
                told.append(type(refused.error()))
                await caller.left()
            assert told == [JournalBehind, Unauthorized]
            here.server.explain(BELFAST, "/2/sequencer-0", None)
            caller = await here.belfast("/2/sequencer-0", "it")
            _, refused = await caller.hear()
            assert isinstance(refused, Refused)
            assert isinstance(refused.error(), Unavailable)

    run(scene())


def test_a_node_that_is_alone_is_found_by_any_name_that_it_is_dialed_by() -> None:
    async def scene() -> None:
        async with home() as here:
            alone = belfast_service(
                here.host,
                "/1/shard-0-0",
                LIMITS,
                cluster="c",
                version="1",
                authority=SharedToken(None),
            )
            here.server.serve(alone)
            for name in ("", "forwarded:1"):
                caller = await here.belfast(name)
                assert isinstance((await caller.hear())[1], ticks.Welcome)
            refused = await here.belfast("/2/shard-0-0")
            assert isinstance((await refused.hear())[1], Refused)

    run(scene())


def test_a_greeting_is_handed_to_the_nodes_though_it_looks_like_a_request() -> None:
    """Its frame is of the kind that Bolt's requests have too."""

    async def scene() -> None:
        async with home() as here:
            caller = await here.call(bolt.replies())
            greeting = Greeting(1, "c", "h:1")
            caller.say([encode_greeting(greeting)])
            await caller.left()
            assert here.nodes.met == [(greeting, False)]
            await until(lambda: here.server.gauges.connections == 0)
            assert here.server.budgets.connections.used == 0

    run(scene())


@pytest.mark.parametrize("engine", ["bolt", "belfast"])
def test_what_is_no_hello_is_refused_in_the_frames_of_its_engine(engine: str) -> None:
    frames: Any = {"bolt": bolt, "belfast": belfast}[engine]
    wrong: Any = {"bolt": Survey(), "belfast": ticks.Locate()}[engine]

    async def scene() -> None:
        async with home() as here:
            caller = await here.call(frames.replies())
            caller.say(frames.encode_request(7, wrong))
            request, refused = await caller.hear()
            assert (request, refused.code) == (7, BadFrame.code)
            await caller.left()

    run(scene())


def test_no_more_than_a_small_frame_is_taken_from_a_stranger() -> None:
    async def scene() -> None:
        async with home() as here:
            for hello in (
                bolt.encode_request(1, Hello(1, "x" * GREETING_BYTES_MAX)),
                [HEADER.pack(1 << 20, 1, 0, 0, 1), bytes(GREETING_BYTES_MAX)],
            ):
                caller = await here.call(bolt.replies())
                caller.say(hello)
                _, refused = await caller.hear()
                assert refused.code == BadFrame.code
            assert here.server.budgets.requests.used == 0

    run(scene())


@pytest.mark.parametrize("engine", ["bolt", "belfast"])
def test_a_frame_that_cant_be_believed_is_refused_in_the_frames_of_its_engine(engine: str) -> None:
    frames: Any = {"bolt": bolt, "belfast": belfast}[engine]

    async def scene() -> None:
        async with home() as here:
            caller = await here.call(frames.replies())
            caller.say([HEADER.pack(1 << 30, frames.CODEC.hello[0], 0, 0, 1), bytes(100)])
            request, refused = await caller.hear()
            assert (request, refused.code) == (0, BadFrame.code)
            await caller.left()

    run(scene())


def test_an_engine_that_is_expected_first_doesnt_speak_for_the_one_that_is_served() -> None:
    server = FrameServer(LIMITS)
    server.expect(BELFAST)
    assert server.fallback is BELFAST

    async def scene() -> None:
        host = Host("c", None, None, now=Clock().now, log=Log(Clock().now))
        host.start({"broker": Puppet()})
        everybody = SharedToken(None)
        server.serve(
            bolt_service(host, "broker", LIMITS, cluster="c", version="1", authority=everybody)
        )
        assert server.fallback is BOLT

    run(scene())


def test_a_service_that_is_withdrawn_takes_its_own_clients_along() -> None:
    async def scene() -> None:
        async with home() as here:
            gone, staying = await here.belfast("/1/shard-0-0"), await here.belfast("/1/sequencer-0")
            await gone.hear()
            await staying.hear()
            await here.server.withdraw(here.services["/1/shard-0-0"])
            await gone.left()
            assert here.server.gauges.connections == 1
            again = await here.belfast("/1/shard-0-0")
            assert (await again.hear())[1].code == Unavailable.code
            staying.say(belfast.encode_request(3, ticks.Locate()))
            await until(lambda: bool(here.machines["/1/sequencer-0"].events))

    run(scene())


def test_every_engine_has_a_name_and_a_kind_of_hello_of_its_own() -> None:
    engines: list[ClientProtocol] = [BOLT, BELFAST]
    assert len({each.name for each in engines}) == len(engines)
    assert len({each.codec.hello[0] for each in engines}) == len(engines)
