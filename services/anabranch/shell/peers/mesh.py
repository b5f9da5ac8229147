"""The network of one process of a cluster: the processes that it dials, and those that dial it.

Letters are lost while there is no connection; when there is one, the machine is told `Linked`, and
repeats what matters. A process of another cluster, one that speaks another version, or one that
doesn't know the token is refused with a sentence that both sides log.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from anabranch.core.errors import AnabranchError
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import Event, Linked, Received
from anabranch.core.wire.peers import Greeting, encode_greeting, first_greeting
from anabranch.shell.authority.tokens import Tokens, tokens_of
from anabranch.shell.net.handshake import secured
from anabranch.shell.net.reload import Renewed
from anabranch.shell.net.room import Room
from anabranch.shell.peers.connection import Line, PeerCounters, PeerGauges
from anabranch.shell.peers.dialer import PeerLink
from anabranch.shell.peers.half_letters import LetterRoom
from anabranch.shell.peers.inbound import Inbound
from anabranch.shell.peers.protocol import PeerProtocol
from anabranch.shell.runtime.failpoints import reached
from anabranch.shell.telemetry.log import Log

IDLE_S = 300.0
"""A process to which nothing was sent for so long isn't dialed any more, until something is."""
DEAF_S = 1.0
"""Letters of a process that can't be dialed for so long are dropped. A machine that got them would
take the process to be reachable, and count on what it can't ask of it.
"""
HOSTS_MAX = 1_024
"""Of more, those that were met first are forgotten, but for processes that this one dials."""
_BACKLOG = 1_024

Post = Callable[[str, Event], None]


@dataclass(slots=True)
class _Way:
    """To one other process."""

    link: PeerLink
    task: asyncio.Task[None]
    kept: bool
    """Dialed whether or not anything is sent there."""
    used: bool = True


class Mesh:
    """`ports.Network` of one machine, which runs under the name by which this process greets."""

    def __init__(
        self,
        protocol: PeerProtocol,
        node: str,
        cluster: str,
        limits: Limits,
        log: Log,
        *,
        release: str = "",
        token: Tokens | str | None = None,
        incarnation: str = "",
    ) -> None:
        self._node = node
        self._tokens = tokens_of(token)
        self._greeting = Greeting(protocol.version, cluster, node, release, None, incarnation)
        self._post: Post
        self._tls: Renewed[ssl.SSLContext] | None = None
        self._ways: dict[str, _Way] = {}
        self._inbound = Inbound[Any](protocol.dialer_noun)
        self._listener: asyncio.Server | None = None
        self._room: Room | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._taken = False
        self.protocol = protocol
        self.limits = limits
        self.log = log
        self.room = LetterRoom(limits)
        self.counters = PeerCounters()
        self.gauges = PeerGauges()
        """`connected` counts the processes to which letters can be written."""
        self.hosts: dict[str, str] = {}
        """Where processes were met last; the names that they are known by may lead elsewhere."""
        self.refused: asyncio.Future[AnabranchError] = asyncio.get_running_loop().create_future()
        """Done when another process has refused this one before any has taken it: this one may be
        the one that is wrong."""

    def start(
        self,
        post: Post,
        tls: Renewed[ssl.SSLContext] | None = None,
        *,
        members: Sequence[str] = (),
    ) -> None:
        """From here on letters are sent; what comes is posted to the machine of this process.

        `members`: the addresses to dial at once and for good. Others are dialed when something is
        first sent to them, and as long as that goes on.
        """
        assert not (self.protocol.answers and members), "a process that answers dials nobody"
        self._post = post
        self._tls = tls
        for address in members:
            self._dial(address, kept=True)
        self._sweep = asyncio.get_running_loop().call_later(IDLE_S, self._sweep_up)

    async def listen(
        self, on: socket.socket, tls: ssl.SSLContext | None = None, *, room: Room
    ) -> None:
        """Let other processes dial this one at a port of their own, where `room` bounds those that
        haven't greeted.
        """
        self._room = room
        self._listener = await asyncio.get_running_loop().create_server(
            secured(self._answer, tls, room), sock=on, backlog=_BACKLOG
        )

    async def stop(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        if self._listener is not None:
            self._listener.close()
        if self._room is not None:
            self._room.clear()
        ways, self._ways = self._ways, {}
        for way in ways.values():
            way.link.end()
            way.task.cancel()
        await asyncio.gather(*(way.task for way in ways.values()), return_exceptions=True)
        await self._inbound.stop(f"this {self.protocol.own_noun} stops")

    def send(self, sender: str, to: str, message: msgspec.Struct) -> None:
        if self.protocol.answers:
            line = self._inbound.of(to)
            if line is None:
                self.counters.lost += 1
            else:
                line.send(message)
            return
        way = self._ways.get(to)
        if way is None:
            way = self._dial(to, kept=False)
        way.used = True
        way.link.send(message)

    @property
    def greeting(self) -> Greeting:
        """With the token of today, unless this process dials nobody and need not show it."""
        if self.protocol.answers:
            return self._greeting
        return msgspec.structs.replace(self._greeting, token=self._tokens.first)

    def _dial(self, to: str, *, kept: bool) -> _Way:
        link = PeerLink(self, to, self.hosts.get(to, ""))
        task = asyncio.get_running_loop().create_task(link.keep(self._tls))
        self._ways[to] = way = _Way(link, task, kept)
        return way

    def _sweep_up(self) -> None:
        """End the connections over which nothing was sent since the last time."""
        idle = [to for to, way in self._ways.items() if not (way.used or way.kept)]
        for address in idle:
            way = self._ways.pop(address)
            way.task.cancel()
            way.link.end()
        for way in self._ways.values():
            way.used = False
        self._sweep = asyncio.get_running_loop().call_later(IDLE_S, self._sweep_up)

    # What happens on connections that this process has dialed.

    def linked(self, address: str) -> None:
        self._taken = True
        self._post(self._node, Linked(address))

    def received(self, address: str, message: Any) -> None:
        self.counters.letters_in += 1
        if not reached("peers.receive"):
            self._post(self._node, Received(address, message))

    def refuse(self, error: AnabranchError) -> None:
        """The other process is dialed again: it may be set right."""
        if not self._taken and not self.refused.done():
            self.refused.set_result(error)

    # What happens on connections that others have dialed.

    def welcome(self, transport: asyncio.Transport, greeting: Greeting, *, checked: bool) -> None:
        """Another process has dialed a port that this one shares with its clients, and greets.

        `checked`: certificates are asked for there.
        """
        line = self._answer()
        transport.set_protocol(line)
        line.connection_made(transport)
        self._greet(line, greeting, checked=checked)

    def made(self, line: Line[Any]) -> None:
        self._inbound.add(line)
        if self._room is not None and not self._room.enter(line):
            line.abort("this process has no connection to spare (connections_max)")

    def heard(self, line: Line[Any], message: Any) -> None:
        if isinstance(message, Greeting):
            self._greet(line, message, checked=True)
            return
        if not self._inbound.counts(line):
            return
        way = self._ways.get(line.peer)
        if way is not None and way.link.down_s > DEAF_S:
            self.counters.lost += 1
            return
        self.received(line.peer, message)

    def lost(self, line: Line[Any], why: str) -> None:
        self._leave_room(line)
        noun = self.protocol.dialer_noun
        if self._inbound.remove(line):
            self.gauges.connected -= self.protocol.answers
            gone = f"a {noun} has gone"
            self.log.info(gone, **{noun: line.peer}, reason=why)

    def _answer(self) -> Line[Any]:
        reader = first_greeting()
        return Line[Any](self, reader, self.limits, self.counters, self.log, self.room)

    def _leave_room(self, line: Line[Any]) -> None:
        if self._room is not None:
            self._room.leave(line)

    def _greet(self, line: Line[Any], greeting: Greeting, *, checked: bool) -> None:
        noun, node = self.protocol.dialer_noun, greeting.node
        shows = line.shows if checked else None
        refusal = self.protocol.objection(self._greeting, self._tokens, greeting, shows)
        if refusal is not None:
            self.counters.refused += 1
            refused = f"refused a {noun}"
            self.log.warning(refused, **{noun: node}, reason=refusal.message)
            line.say(encode_greeting(Refused.of(refusal)))
            line.end(refusal.message)
            return
        dropped = self._inbound.drop(node)
        self.gauges.connected -= dropped and self.protocol.answers
        line.greeted(node, self.protocol.from_dialers(self.limits.peer_frame_bytes_max))
        if not line.peer:
            return
        self._leave_room(line)
        self._inbound.name(line)
        line.say(encode_greeting(self.greeting))
        if self.protocol.answers:
            self.gauges.connected += 1
            here = f"a {noun} is here"
            self.log.info(here, **{noun: node}, release=greeting.release)
            self._post(self._node, Linked(node))
        else:
            self._meet(line)

    def _meet(self, line: Line[Any]) -> None:
        """A node that was replaced dials the others, whose names still lead to them. They learn
        from that where it is, before any resolver tells them.
        """
        host = line.host
        if host is None:
            return
        self.hosts.pop(line.peer, None)
        self.hosts[line.peer] = host
        if len(self.hosts) > HOSTS_MAX:
            del self.hosts[next((each for each in self.hosts if each not in self._ways), line.peer)]
        way = self._ways.get(line.peer)
        if way is not None:
            way.link.met(host)
