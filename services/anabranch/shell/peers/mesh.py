"""A node's letters to others, and theirs to it: each dials the other, and writes where it dialed.

A node is named by the address at which it is dialed. It is dialed when something is first sent to
it, and as long as that goes on. Letters are lost while there is no connection; when there is one,
the machine is told `Linked`, and repeats what matters.
"""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import msgspec

from anabranch.core.belfast.protocol.codec import Letter, greetings, letters
from anabranch.core.belfast.protocol.messages import BELFAST_VERSION
from anabranch.core.errors import AccessDenied, AnabranchError
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import Event, Linked, Received
from anabranch.core.wire.frames import FrameReader
from anabranch.core.wire.peers import FromNode, Greeting, Pulse, encode_greeting
from anabranch.shell.authority.tokens import Tokens, tokens_of
from anabranch.shell.net.reload import Renewed
from anabranch.shell.peers.connection import Line, PeerCounters, PeerGauges
from anabranch.shell.peers.dialer import PeerLink, is_address, objection
from anabranch.shell.peers.inbound import Inbound
from anabranch.shell.runtime.failpoints import reached
from anabranch.shell.telemetry.log import Log

IDLE_S = 300.0
"""A node to which nothing was sent for so long isn't dialed any more, until something is."""
DEAF_S = 1.0
"""A node that can't be dialed for so long isn't heard either. A machine that hears it would take it
to be there, and go on to count on what it can't be asked for.
"""

Post = Callable[[str, Event], None]
LetterOrPulse = Letter | Pulse


@dataclass(slots=True)
class _Way:
    """To one other node."""

    link: PeerLink[FromNode]
    task: asyncio.Task[None]
    used: bool = True


class Mesh:
    """`ports.Network` of one node. Its machine is run under its address, as everybody calls it."""

    noun, here, away = "node", "a node is here", "no node is here"

    def __init__(
        self,
        address: str,
        cluster: str,
        limits: Limits,
        log: Log,
        *,
        release: str = "",
        token: Tokens | str | None = None,
    ) -> None:
        self._address = address
        self._tokens = tokens_of(token)
        self._post: Post
        self._tls: Renewed[ssl.SSLContext] | None = None
        self._ways: dict[str, _Way] = {}
        self.hosts: dict[str, str] = {}
        """Where nodes were met last; the names that they are known by may lead elsewhere."""
        self._inbound = Inbound[LetterOrPulse]("node")
        self._sweep: asyncio.TimerHandle | None = None
        self._greeting = Greeting(BELFAST_VERSION, cluster, address, release)
        self.limits = limits
        self.log = log
        self.counters = PeerCounters()
        self.gauges = PeerGauges()
        """`connected` counts those that were dialed."""

    def start(self, post: Post, tls: Renewed[ssl.SSLContext] | None = None) -> None:
        """From here on letters are sent; what comes is posted to the machine of this node."""
        self._post = post
        self._tls = tls
        self._sweep = asyncio.get_running_loop().call_later(IDLE_S, self._sweep_up)

    async def stop(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        ways, self._ways = self._ways, {}
        for way in ways.values():
            way.link.end()
            way.task.cancel()
        await asyncio.gather(*(way.task for way in ways.values()), return_exceptions=True)
        await self._inbound.stop("this node stops")

    def send(self, sender: str, to: str, message: msgspec.Struct) -> None:
        way = self._ways.get(to)
        if way is None:
            way = self._dial(to)
        way.used = True
        way.link.send(message)

    def _dial(self, to: str) -> _Way:
        link = PeerLink[FromNode](self, to, self.hosts.get(to, ""))
        task = asyncio.get_running_loop().create_task(link.keep(self._tls))
        self._ways[to] = way = _Way(link, task)
        return way

    def _sweep_up(self) -> None:
        """Nothing was sent there since the last time."""
        for address in [address for address, way in self._ways.items() if not way.used]:
            way = self._ways.pop(address)
            way.task.cancel()
            way.link.end()
        for way in self._ways.values():
            way.used = False
        self._sweep = asyncio.get_running_loop().call_later(IDLE_S, self._sweep_up)

    def reader(self) -> FrameReader[FromNode]:
        return greetings()

    def linked(self, address: str) -> None:
        self._post(self._address, Linked(address))

    def received(self, address: str, message: FromNode) -> None:
        """Who was dialed writes its letters to where it dials us."""

    def is_meant(self, address: str, node: str) -> bool:
        return node == address

    def refuse(self, error: AnabranchError) -> None:
        """It is dialed again: it may be set right."""

    @property
    def greeting(self) -> Greeting:
        """With the token of today."""
        return msgspec.structs.replace(self._greeting, token=self._tokens.first)

    def welcome(self, transport: asyncio.Transport, greeting: Greeting, known: bool) -> None:
        """Somebody has dialed this node and greets as one of us; `known` by a certificate, where
        they are asked for.
        """
        refusal = self._objection(greeting, known)
        if refusal is not None:
            self.counters.refused += 1
            self.log.warning("refused a node", node=greeting.node, reason=refusal.message)
            transport.write(encode_greeting(Refused.of(refusal)))
            transport.close()
            return
        self._inbound.drop(greeting.node)
        reader = letters(self.limits.peer_frame_bytes_max)
        line = Line[LetterOrPulse](self, reader, self.limits, self.counters, self.log)
        transport.set_protocol(line)
        line.connection_made(transport)
        line.greeted(greeting.node)
        self._inbound.name(line)
        line.say(encode_greeting(self.greeting))
        self._meet(greeting.node, transport)

    def _meet(self, node: str, transport: asyncio.Transport) -> None:
        """A node that was replaced dials the others, whose names still lead to them. They learn
        from that where it is, before any resolver tells them.
        """
        name = transport.get_extra_info("peername")
        if not isinstance(name, tuple):
            return
        self.hosts[node] = host = cast("tuple[str, int]", name)[0]
        way = self._ways.get(node)
        if way is not None:
            way.link.met(host)

    def _objection(self, greeting: Greeting, known: bool) -> AnabranchError | None:
        here = f"node {self._address}"
        refusal = objection(here, self._greeting, self._tokens, greeting)
        if refusal is None and not known:
            reason = "it shows no certificate of its authority that was issued for this name (tls)"
            refusal = AccessDenied(here, greeting.node, reason)
        if refusal is None and not is_address(greeting.node):
            refusal = AccessDenied(here, f"a node named {greeting.node!r}", "nobody could dial it")
        return refusal

    def made(self, line: Line[LetterOrPulse]) -> None:
        self._inbound.add(line)

    def heard(self, line: Line[LetterOrPulse], message: LetterOrPulse) -> None:
        if not self._inbound.counts(line):
            return
        way = self._ways.get(line.peer)
        if way is not None and way.link.down_s > DEAF_S:
            self.counters.lost += 1
            return
        self.counters.letters_in += 1
        if not reached("peers.receive"):
            self._post(self._address, Received(line.peer, message))

    def lost(self, line: Line[LetterOrPulse], why: str) -> None:
        if self._inbound.remove(line):
            self.log.info("a node has gone", node=line.peer, reason=why)
