"""The network between processes of a cluster: members of the metadata group listen, brokers dial
every one of them.

Letters are lost while there is no connection; when there is one, the machine is told `Linked`, and
repeats what matters. Whoever is of another cluster, speaks another version or doesn't know the
token is refused with a sentence that both sides log.
"""

import asyncio
import hmac
import socket
import ssl
from collections.abc import Callable, Sequence
from functools import partial

from anabranch.core.bolt.commands import Refused
from anabranch.core.bolt.letters import FromMetadata, ToMetadata
from anabranch.core.errors import (
    AccessDenied,
    AnabranchError,
    VersionMismatch,
    WrongCluster,
)
from anabranch.core.limits import Limits
from anabranch.core.machine import Event, Linked, Received
from anabranch.core.wire.peers import (
    PEER_VERSION,
    FromBroker,
    FromMember,
    Greeting,
    encode_greeting,
    greetings_of_brokers,
    letters_of_brokers,
    messages_of_members,
)
from anabranch.shell.chance import randbits
from anabranch.shell.failpoints import reached
from anabranch.shell.log import Log
from anabranch.shell.peerline import HANDSHAKE_S, Line, PeerCounters, PeerGauges
from anabranch.shell.renewal import Renewed

BACK_OFF_MIN_S, BACK_OFF_MAX_S = 0.1, 2.0
"""Between attempts to reach a member, half of it by chance."""
CONNECT_S = 5.0
STOP_S = 1.0
"""How long the other side may take to fetch what was written before the end."""
_BACKLOG = 1_024
_CHANCE_BITS = 16

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
        token: str | None = None,
        incarnation: str = "",
    ) -> None:
        self._node = node
        self._limits = limits
        self._log = log
        self._greeting = Greeting(PEER_VERSION, cluster, node, release, None, incarnation)
        self._token = token
        self._post: Post
        self._listener: asyncio.Server | None = None
        self._lines: dict[str, Line[FromBroker]] = {}
        self._all: dict[Line[FromBroker], None] = {}
        self._empty = asyncio.Event()
        self._empty.set()
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
        for line in list(self._all):
            line.end("this member stops")
        try:
            await asyncio.wait_for(self._empty.wait(), STOP_S)
        except TimeoutError:
            for line in list(self._all):
                line.abort("this member stops")
            await self._empty.wait()

    def send(self, sender: str, to: str, message: ToMetadata | FromMetadata) -> None:
        line = self._lines.get(to)
        if line is None:
            self.counters.lost += 1
        else:
            line.send(message)

    def made(self, line: Line[FromBroker]) -> None:
        self._all[line] = None
        self._empty.clear()

    def heard(self, line: Line[FromBroker], message: FromBroker) -> None:
        if isinstance(message, Greeting):
            self._greet(line, message)
            return
        if self._lines.get(line.peer) is not line:
            return
        self.counters.letters_in += 1
        if not reached("peers.receive"):
            self._post(self._node, Received(line.peer, message))

    def lost(self, line: Line[FromBroker], why: str) -> None:
        del self._all[line]
        if not self._all:
            self._empty.set()
        if line.peer and self._lines.get(line.peer) is line:
            del self._lines[line.peer]
            self.gauges.connected -= 1
            self._log.info("a broker has gone", broker=line.peer, reason=why)

    def _answer(self) -> Line[FromBroker]:
        return Line(self, greetings_of_brokers(), self._limits, self.counters, self._log)

    def _greet(self, line: Line[FromBroker], greeting: Greeting) -> None:
        refusal = self._objection(greeting)
        if refusal is not None:
            self.counters.refused += 1
            self._log.warning("refused a broker", broker=greeting.node, reason=refusal.message)
            line.say(encode_greeting(Refused.of(refusal)))
            line.end(refusal.message)
            return
        before = self._lines.pop(greeting.node, None)
        if before is not None:
            self.gauges.connected -= 1
            before.abort("the same broker has another connection")
        line.greeted(greeting.node, letters_of_brokers(self._limits.peer_frame_bytes_max))
        if not line.peer:
            return
        self._lines[greeting.node] = line
        self.gauges.connected += 1
        line.say(encode_greeting(self._greeting))
        self._log.info("a broker is here", broker=greeting.node, release=greeting.release)
        self._post(self._node, Linked(greeting.node))

    def _objection(self, greeting: Greeting) -> AnabranchError | None:
        here = f"metadata member {self._node}"
        if greeting.version != PEER_VERSION:
            return VersionMismatch(greeting.version, PEER_VERSION)
        if greeting.cluster != self._greeting.cluster:
            return WrongCluster(here, self._greeting.cluster, greeting.cluster)
        ours, theirs = self._greeting.incarnation, greeting.incarnation
        if ours != theirs:
            shown = f"{greeting.cluster} ({{}})"
            return WrongCluster(here, shown.format(ours), f"{shown.format(theirs)} of its bucket")
        if not self._admits(greeting.token):
            reason = "it doesn't show the token that members ask of brokers (peer_token)"
            return AccessDenied(here, greeting.node, reason)
        if not greeting.node:
            return AccessDenied(here, "a broker without a name", "give it one with --name")
        return None

    def _admits(self, token: str | None) -> bool:
        """In constant time: how long it takes tells nothing of how much was right."""
        if self._token is None:
            return True
        return hmac.compare_digest((token or "").encode(), self._token.encode())


class PeerLinks:
    """A broker's side: a member is known by the address at which it is dialed."""

    def __init__(
        self,
        node: str,
        cluster: str,
        members: Sequence[str],
        limits: Limits,
        log: Log,
        *,
        release: str = "",
        token: str | None = None,
        incarnation: str = "",
    ) -> None:
        self._node = node
        self.greeting = Greeting(PEER_VERSION, cluster, node, release, token, incarnation)
        self._post: Post
        self._tasks: list[asyncio.Task[None]] = []
        self.limits = limits
        self.log = log
        self.counters = PeerCounters()
        self.gauges = PeerGauges()
        self._links = {member: _Link(self, member) for member in members}
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

    def linked(self, member: str) -> None:
        self._taken = True
        self.gauges.connected += 1
        self._post(self._node, Linked(member))

    def received(self, member: str, message: FromMetadata) -> None:
        self.counters.letters_in += 1
        if not reached("peers.receive"):
            self._post(self._node, Received(member, message))

    def refuse(self, error: AnabranchError) -> None:
        self.counters.refused += 1
        if not self._taken and not self.refused.done():
            self.refused.set_result(error)


class _Link:
    """The connection to one member, made again whenever it breaks."""

    def __init__(self, links: PeerLinks, member: str) -> None:
        self._links = links
        self._member = member
        self._line: Line[FromMember] | None = None
        self._over: asyncio.Future[str]
        self._trouble = ""
        self._refusal: AnabranchError | None = None

    def send(self, message: ToMetadata | FromMetadata) -> None:
        if self._line is None or not self._line.peer:
            self._links.counters.lost += 1
        else:
            self._line.send(message)

    def end(self) -> None:
        if self._line is not None:
            self._line.end("this broker stops")

    async def keep(self, tls: Renewed[ssl.SSLContext] | None) -> None:
        back_off_s = BACK_OFF_MIN_S
        while True:
            self._over = asyncio.get_running_loop().create_future()
            why = await self._dial(tls) or await self._over
            greeted = self._line is not None and bool(self._line.peer)
            self._line = None
            if greeted:
                self._links.gauges.connected -= 1
                back_off_s = BACK_OFF_MIN_S
            self._say(self._refusal.message if self._refusal else why)
            await asyncio.sleep(back_off_s * (0.5 + 0.5 * randbits(_CHANCE_BITS) / (1 << 16)))
            back_off_s = min(2 * back_off_s, BACK_OFF_MAX_S)

    async def _dial(self, tls: Renewed[ssl.SSLContext] | None) -> str | None:
        """Why it can't be reached, if so."""
        self._refusal = None
        host, port = parse_address(self._member)
        loop = asyncio.get_running_loop()
        links = self._links
        reader = messages_of_members(links.limits.peer_frame_bytes_max)
        make = partial(Line[FromMember], self, reader, links.limits, links.counters, links.log)
        try:
            if reached("peers.connect"):
                return "a failpoint keeps it away"
            context = tls.current() if tls else None
            _, self._line = await asyncio.wait_for(
                loop.create_connection(make, host, port, ssl=context), CONNECT_S
            )
        except TimeoutError:
            return f"it takes no connection within {CONNECT_S:.0f} s"
        except OSError as error:
            return str(error)
        return None

    def made(self, line: Line[FromMember]) -> None:
        line.say(encode_greeting(self._links.greeting))

    def heard(self, line: Line[FromMember], message: FromMember) -> None:
        if isinstance(message, Greeting):
            self._greeted(line, message)
        elif isinstance(message, Refused):
            self._refused(line, message.error())
        elif line.peer and isinstance(message, FromMetadata):
            self._links.received(self._member, message)
        else:
            line.end("it wrote letters before it greeted")

    def lost(self, line: Line[FromMember], why: str) -> None:
        if not self._over.done():
            self._over.set_result(why)

    def _greeted(self, line: Line[FromMember], greeting: Greeting) -> None:
        ours = self._links.greeting
        if line.peer:
            line.end("it greeted twice")
        elif greeting.version != ours.version:
            self._refused(line, VersionMismatch(greeting.version, ours.version))
        elif greeting.cluster != ours.cluster:
            where = f"metadata member {self._member}"
            self._refused(line, WrongCluster(where, greeting.cluster, ours.cluster))
        else:
            line.greeted(greeting.node)
            self._trouble = ""
            self._links.log.info("a member is here", member=self._member, name=greeting.node)
            self._links.linked(self._member)

    def _refused(self, line: Line[FromMember], error: AnabranchError) -> None:
        self._refusal = error
        line.end(error.message)
        self._links.refuse(error)

    def _say(self, why: str) -> None:
        """An outage is said once, and its end."""
        if why != self._trouble:
            self._links.log.warning("no member is here", member=self._member, reason=why)
        self._trouble = why


def parse_address(address: str) -> tuple[str, int]:
    """`host:port`, the host in brackets if it is an IPv6 address."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)
