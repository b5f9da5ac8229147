"""The network between processes of a cluster: members of the metadata group listen, brokers dial
every one of them.

Letters are lost while there is no connection; when there is one, the machine is told `Linked`, and
repeats what matters. Whoever is of another cluster, speaks another version or doesn't know the
token is refused with a sentence that both sides log.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence

import msgspec

from anabranch.core.bolt.protocol.letters import FromMetadata, ToMetadata
from anabranch.core.bolt.protocol.peers import (
    FromBroker,
    FromMember,
    greetings_of_brokers,
    letters_of_brokers,
    messages_of_members,
)
from anabranch.core.errors import AccessDenied, AnabranchError
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import Event, Linked, Received
from anabranch.core.wire.frames import FrameReader
from anabranch.core.wire.peers import PEER_VERSION, Greeting, encode_greeting
from anabranch.shell.authority.tokens import Tokens, tokens_of
from anabranch.shell.net.reload import Renewed
from anabranch.shell.peers.connection import HANDSHAKE_S, Line, PeerCounters, PeerGauges
from anabranch.shell.peers.dialer import PeerLink, objection
from anabranch.shell.peers.inbound import Inbound
from anabranch.shell.runtime.failpoints import reached
from anabranch.shell.telemetry.log import Log

NAME = "{name}"
"""The place of a broker's name in `peer_names`, up to its first dot."""
_BACKLOG = 1_024

Post = Callable[[str, Event], None]


class PeerServer:
    """A member's side. A broker is known by its name, and its newest connection is the one."""

    def __init__(
        self,
        node: str,
        cluster: str,
        limits: Limits,
        log: Log,
        *,
        release: str = "",
        token: Tokens | str | None = None,
        incarnation: str = "",
        names: str = "",
    ) -> None:
        """`names`: how a broker's certificate must name it, `{name}` standing for its own name."""
        self._node = node
        self._names = names
        self._limits = limits
        self._log = log
        self._greeting = Greeting(PEER_VERSION, cluster, node, release, None, incarnation)
        self._tokens = tokens_of(token)
        self._post: Post
        self._listener: asyncio.Server | None = None
        self._inbound = Inbound[FromBroker]("broker")
        self.counters = PeerCounters()
        self.gauges = PeerGauges()

    async def start(self, post: Post, on: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        """Listen; what comes is posted to the machine of this node."""
        self._post = post
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            self._answer,
            sock=on,
            backlog=_BACKLOG,
            ssl=tls,
            ssl_handshake_timeout=HANDSHAKE_S if tls else None,
        )

    async def stop(self) -> None:
        if self._listener is not None:
            self._listener.close()
        await self._inbound.stop("this member stops")

    def send(self, sender: str, to: str, message: ToMetadata | FromMetadata) -> None:
        line = self._inbound.of(to)
        if line is None:
            self.counters.lost += 1
        else:
            line.send(message)

    def made(self, line: Line[FromBroker]) -> None:
        self._inbound.add(line)

    def heard(self, line: Line[FromBroker], message: FromBroker) -> None:
        if isinstance(message, Greeting):
            self._greet(line, message)
            return
        if not self._inbound.counts(line):
            return
        self.counters.letters_in += 1
        if not reached("peers.receive"):
            self._post(self._node, Received(line.peer, message))

    def lost(self, line: Line[FromBroker], why: str) -> None:
        if self._inbound.remove(line):
            self.gauges.connected -= 1
            self._log.info("a broker has gone", broker=line.peer, reason=why)

    def _answer(self) -> Line[FromBroker]:
        return Line(self, greetings_of_brokers(), self._limits, self.counters, self._log)

    def _greet(self, line: Line[FromBroker], greeting: Greeting) -> None:
        refusal = self._objection(line, greeting)
        if refusal is not None:
            self.counters.refused += 1
            self._log.warning("refused a broker", broker=greeting.node, reason=refusal.message)
            line.say(encode_greeting(Refused.of(refusal)))
            line.end(refusal.message)
            return
        self.gauges.connected -= self._inbound.drop(greeting.node)
        line.greeted(greeting.node, letters_of_brokers(self._limits.peer_frame_bytes_max))
        if not line.peer:
            return
        self._inbound.name(line)
        self.gauges.connected += 1
        line.say(encode_greeting(self._greeting))
        self._log.info("a broker is here", broker=greeting.node, release=greeting.release)
        self._post(self._node, Linked(greeting.node))

    def _objection(self, line: Line[FromBroker], greeting: Greeting) -> AnabranchError | None:
        here = f"metadata member {self._node}"
        found = objection(here, self._greeting, self._tokens, greeting)
        if found is None and not greeting.node:
            return AccessDenied(here, "a broker without a name", "give it one with --name")
        if found is None and self._names:
            # In a pod a broker is called by the pod's name, a dot, and the pod's UID.
            name = self._names.replace(NAME, greeting.node.partition(".")[0])
            if not line.shows(name):
                reason = f"its certificate wasn't issued for {name} (peer_names)"
                return AccessDenied(here, f"broker {greeting.node}", reason)
        return found


class PeerLinks:
    """A broker's side: a member is known by the address at which it is dialed."""

    noun, here, away = "member", "a member is here", "no member is here"

    def __init__(
        self,
        node: str,
        cluster: str,
        members: Sequence[str],
        limits: Limits,
        log: Log,
        *,
        release: str = "",
        token: Tokens | str | None = None,
        incarnation: str = "",
    ) -> None:
        self._node = node
        self._tokens = tokens_of(token)
        self._greeting = Greeting(PEER_VERSION, cluster, node, release, None, incarnation)
        self._post: Post
        self._tasks: list[asyncio.Task[None]] = []
        self.limits = limits
        self.log = log
        self.counters = PeerCounters()
        self.gauges = PeerGauges()
        self._links: dict[str, PeerLink[FromMember]] = {
            member: PeerLink(self, member) for member in members
        }
        self.refused: asyncio.Future[AnabranchError] = asyncio.get_running_loop().create_future()
        """Done when a member has refused this broker before any has taken it: it may be wrong."""
        self._taken = False

    def start(self, post: Post, tls: Renewed[ssl.SSLContext] | None = None) -> None:
        self._post = post
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(link.keep(tls)) for link in self._links.values()]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for link in self._links.values():
            link.end()

    def send(self, sender: str, to: str, message: ToMetadata | FromMetadata) -> None:
        self._links[to].send(message)

    @property
    def greeting(self) -> Greeting:
        """With the token of today."""
        return msgspec.structs.replace(self._greeting, token=self._tokens.first)

    def reader(self) -> FrameReader[FromMember]:
        return messages_of_members(self.limits.peer_frame_bytes_max)

    def linked(self, address: str) -> None:
        self._taken = True
        self._post(self._node, Linked(address))

    def received(self, address: str, message: FromMember) -> None:
        self.counters.letters_in += 1
        if not reached("peers.receive"):
            self._post(self._node, Received(address, message))

    def is_meant(self, address: str, node: str) -> bool:
        """Members have names beside their addresses, and all of them may be asked the same."""
        return True

    def refuse(self, error: AnabranchError) -> None:
        if not self._taken and not self.refused.done():
            self.refused.set_result(error)
