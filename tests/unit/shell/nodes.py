"""Nodes on loopback whose machines do as they are told, and what each was told itself."""

import asyncio
import io
import socket
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tests.unit.shell.frame_client import FrameClient

from anabranch.core.belfast.protocol.messages import BELFAST_VERSION, Hello, ToClient
from anabranch.core.limits import Limits
from anabranch.core.machine import Effect, Effects, Event, Received
from anabranch.core.types import Nanoseconds
from anabranch.ports import Authority
from anabranch.shell.authority.shared import SharedToken
from anabranch.shell.net.tls import TlsSettings, dialing, listening
from anabranch.shell.peers.engines import belfast_node
from anabranch.shell.peers.mesh import Mesh
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.append_limits import AppendLimits
from anabranch.shell.server.engines import belfast_service
from anabranch.shell.server.frame_server import FrameServer
from anabranch.shell.telemetry.log import Log, LogFormat

PATIENCE_S = 60.0
HELLO = Hello(BELFAST_VERSION, "c", "a client")

Rule = Callable[[Event], Sequence[Effect]]


_bound: list[socket.socket] = []


def run(scene: Coroutine[Any, Any, None]) -> None:
    """To its end, when its nodes give back their addresses."""
    try:
        asyncio.run(asyncio.wait_for(scene, PATIENCE_S))
    finally:
        while _bound:
            _bound.pop().close()


async def until(holds: Callable[[], bool]) -> None:
    # Nobody tells when a counter has grown.
    while not holds():  # noqa: ASYNC110
        await asyncio.sleep(0.005)


class Puppet:
    """Answers each event as its rule says."""

    def __init__(self) -> None:
        self.rule: Rule = lambda _: ()
        self.events: list[Event] = []

    def start(self, now: Nanoseconds) -> Effects:
        return ()

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        self.events.append(event)
        return tuple(self.rule(event))

    @property
    def letters(self) -> list[Any]:
        return [event.message for event in self.events if isinstance(event, Received)]


class Node:
    """One process of a Belfast log; its address stays while it comes and goes."""

    def __init__(
        self,
        *,
        cluster: str = "c",
        limits: Limits | None = None,
        token: str | None = None,
        authority: Authority | None = None,
        peer_token: str | None = None,
        tls: TlsSettings | None = None,
        name: str = "127.0.0.1",
        append_limits: AppendLimits | None = None,
    ) -> None:
        self._cluster = cluster
        self._limits = limits or Limits()
        self._token = token
        self.authority = authority
        self._peer_token = peer_token
        self._tls = tls or TlsSettings()
        self._append_limits = append_limits
        # Bound and not yet listening: who dials it is turned away, and nobody else can have it.
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        _bound.append(self._socket)
        self.address = f"{name}:{self._socket.getsockname()[1]}"
        self.lines = io.StringIO()
        self.form = LogFormat.HUMAN
        self.puppet = Puppet()
        self.nodes: list[str] = []
        """Of its log, by its settings."""
        self.network: type[Mesh] = Mesh
        self.protocol = belfast_node()
        self.mesh: Mesh
        self.server: FrameServer
        self.host: Host

    @asynccontextmanager
    async def alive(self) -> AsyncGenerator["Node"]:
        clock = Clock()
        log = Log(clock.now, self.form, self.lines)
        address, cluster, limits = self.address, self._cluster, self._limits
        protocol, token = self.protocol, self._peer_token
        self.mesh = mesh = self.network(protocol, address, cluster, limits, log, token=token)
        self.host = host = Host(cluster, None, None, now=clock.now, log=log, network=mesh)
        self.server = server = FrameServer(limits, log=log, peers=mesh)
        server.serve(
            belfast_service(
                host,
                address,
                limits,
                cluster=cluster,
                version="",
                authority=self.authority or SharedToken(self._token),
                hosts=mesh.hosts,
                nodes=self.nodes,
                append_limits=self._append_limits,
            )
        )
        mesh.start(host.post, dialing(self._tls))
        host.start({address: self.puppet})
        await server.take_over(self._socket.dup(), listening(self._tls, strangers=True))
        try:
            yield self
        finally:
            await server.stop()
            await mesh.stop()
            await host.stop()

    def send(self, to: "Node", letter: Any) -> None:
        self.mesh.send(self.address, to.address, letter)


class Client:
    """What one client was told."""

    def __init__(self) -> None:
        self.told: list[tuple[int, ToClient]] = []
        self.over: list[str] = []
        self.line: FrameClient

    @classmethod
    async def of(cls, node: Node, hello: Hello = HELLO, **more: Any) -> "Client":
        self = cls()
        self.line = await FrameClient.dialed(
            node.address,
            hello,
            heard=lambda request, message: self.told.append((request, message)),
            lost=self.over.append,
            **more,
        )
        return self
