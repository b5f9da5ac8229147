"""A connection to another process at a known address, made again whenever it breaks; and whom of
those who make one a process takes for its own.
"""

import asyncio
import ssl
from contextlib import suppress
from functools import partial
from typing import Generic, Protocol, TypeVar

import msgspec

from anabranch.core.errors import (
    AccessDenied,
    AnabranchError,
    VersionMismatch,
    WrongCluster,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.wire.frames import FrameReader
from anabranch.core.wire.peers import Greeting, encode_greeting
from anabranch.shell.authority.tokens import Tokens
from anabranch.shell.net.connect import Hint, reach
from anabranch.shell.net.reload import Renewed
from anabranch.shell.peers.connection import Line, PeerCounters, PeerGauges
from anabranch.shell.runtime.failpoints import reached
from anabranch.shell.runtime.randomness import randbits
from anabranch.shell.telemetry.log import Log

BACK_OFF_MIN_S, BACK_OFF_MAX_S = 0.1, 2.0
"""Between attempts to reach the other, half of it by chance."""
CONNECT_S = 5.0
_CHANCE_BITS = 16

M = TypeVar("M")


class Dialer(Protocol[M]):
    """Who has such connections, and is told of them."""

    noun: str
    here: str
    away: str
    """What it calls those at the other side, and what it says when they come and go."""
    limits: Limits
    log: Log
    counters: PeerCounters
    gauges: PeerGauges

    @property
    def greeting(self) -> Greeting: ...

    def reader(self) -> FrameReader[M]: ...

    def linked(self, address: str) -> None: ...

    def received(self, address: str, message: M) -> None: ...

    def refuse(self, error: AnabranchError) -> None: ...

    def is_meant(self, address: str, node: str) -> bool:
        """Is this who was to be met there? Addresses of what is gone are given to others."""
        ...


class PeerLink(Generic[M]):
    def __init__(self, links: Dialer[M], address: str, met_at: str = "") -> None:
        """`met_at`: where the other side was met last, if it has dialed us."""
        self._links = links
        self._address = address
        self._hint = Hint(met_at)
        self._down_since: float | None = asyncio.get_running_loop().time()
        self._line: Line[M] | None = None
        self._over: asyncio.Future[str]
        self._trouble = ""
        self._refusal: AnabranchError | None = None

    def send(self, message: msgspec.Struct) -> None:
        if self._line is None or not self._line.peer:
            self._links.counters.lost += 1
        else:
            self._line.send(message)

    def met(self, host: str) -> None:
        """The other side has just dialed us from there, so it lives, and is there. Its name may
        still lead to where it was before.
        """
        known = self._hint.host
        self._hint.met(host)
        if self._line is not None and known and known != host:
            self._line.abort("the other side is at another address now")

    @property
    def down_s(self) -> float:
        """For how long nothing could be written to the other side."""
        if self._down_since is None:
            return 0.0
        return asyncio.get_running_loop().time() - self._down_since

    def end(self) -> None:
        if self._line is not None:
            self._line.end("this process needs it no longer")

    async def keep(self, tls: Renewed[ssl.SSLContext] | None) -> None:
        back_off_s = BACK_OFF_MIN_S
        while True:
            self._over = asyncio.get_running_loop().create_future()
            why = await self._dial(tls) or await self._over
            greeted = self._line is not None and bool(self._line.peer)
            self._line = None
            if greeted:
                back_off_s = BACK_OFF_MIN_S
            self._say(self._refusal.message if self._refusal else why)
            with suppress(TimeoutError):
                pause_s = back_off_s * (0.5 + 0.5 * randbits(_CHANCE_BITS) / (1 << 16))
                await asyncio.wait_for(self._hint.news.wait(), pause_s)
            back_off_s = min(2 * back_off_s, BACK_OFF_MAX_S)

    async def _dial(self, tls: Renewed[ssl.SSLContext] | None) -> str | None:
        """Why it can't be reached, if so."""
        self._refusal = None
        host, port = parse_address(self._address)
        loop = asyncio.get_running_loop()
        links = self._links
        make = partial(Line[M], self, links.reader(), links.limits, links.counters, links.log)
        try:
            if reached("peers.connect"):
                return "a failpoint keeps it away"
            context = tls.current() if tls else None
            checked = host if context else None
            async with asyncio.timeout(CONNECT_S):
                sock = await reach(host, port, self._hint)
                _, self._line = await loop.create_connection(
                    make, sock=sock, ssl=context, server_hostname=checked
                )
        except TimeoutError:
            return f"it takes no connection within {CONNECT_S:.0f} s"
        except OSError as error:
            return str(error)
        return None

    def made(self, line: Line[M]) -> None:
        line.say(encode_greeting(self._links.greeting))

    def heard(self, line: Line[M], message: M) -> None:
        if isinstance(message, Greeting):
            self._greeted(line, message)
        elif isinstance(message, Refused):
            self._refused(line, message.error())
        elif line.peer:
            self._links.received(self._address, message)
        else:
            line.end("it wrote letters before it greeted")

    def lost(self, line: Line[M], why: str) -> None:
        if line.peer:
            self._links.gauges.connected -= 1
            self._down_since = asyncio.get_running_loop().time()
        if not self._over.done():
            self._over.set_result(why)

    def _greeted(self, line: Line[M], greeting: Greeting) -> None:
        links, ours = self._links, self._links.greeting
        if line.peer:
            line.end("it greeted twice")
        elif greeting.version != ours.version:
            self._refused(line, VersionMismatch(greeting.version, ours.version))
        elif greeting.cluster != ours.cluster:
            where = f"{links.noun} {self._address}"
            self._refused(line, WrongCluster(where, greeting.cluster, ours.cluster))
        elif not links.is_meant(self._address, greeting.node):
            line.end(f"{greeting.node} is there now")
        else:
            line.greeted(greeting.node)
            self._trouble = ""
            self._down_since = None
            links.gauges.connected += 1
            links.log.info(links.here, address=self._address, name=greeting.node)
            links.linked(self._address)

    def _refused(self, line: Line[M], error: AnabranchError) -> None:
        self._refusal = error
        line.end(error.message)
        self._links.counters.refused += 1
        self._links.refuse(error)

    def _say(self, why: str) -> None:
        """An outage is said once, and its end."""
        if why != self._trouble:
            self._links.log.warning(self._links.away, address=self._address, reason=why)
        self._trouble = why


def objection(here: str, ours: Greeting, tokens: Tokens, theirs: Greeting) -> AnabranchError | None:
    """Why whoever greets so isn't of us; with a token, only those who show it are."""
    if theirs.version != ours.version:
        return VersionMismatch(theirs.version, ours.version)
    if theirs.cluster != ours.cluster:
        return WrongCluster(here, ours.cluster, theirs.cluster)
    if ours.incarnation != theirs.incarnation:
        shown = f"{theirs.cluster} ({{}})"
        known, told = ours.incarnation, theirs.incarnation
        return WrongCluster(here, shown.format(known), f"{shown.format(told)} of its bucket")
    if not tokens.accepts(theirs.token):
        reason = "it doesn't show the token that peers ask of each other (peer_token)"
        return AccessDenied(here, theirs.node, reason)
    return None


def is_address(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return bool(host) and port.isdecimal() and 0 < int(port) < 1 << 16


def parse_address(address: str) -> tuple[str, int]:
    """`host:port`, the host in brackets if it is an IPv6 address."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)
