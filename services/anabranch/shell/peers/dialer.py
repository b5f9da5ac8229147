"""A connection to another process at a known address, made again whenever it breaks."""

import asyncio
import ssl
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

import msgspec

from anabranch.core.errors import AnabranchError, VersionMismatch, WrongCluster
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.wire.peers import Greeting, encode_greeting
from anabranch.shell.net.connect import Hint, parse_address, reach
from anabranch.shell.net.reload import Renewed
from anabranch.shell.peers.connection import Line, PeerCounters, PeerGauges
from anabranch.shell.peers.protocol import PeerProtocol
from anabranch.shell.runtime.failpoints import reached
from anabranch.shell.runtime.randomness import randbits
from anabranch.shell.telemetry.log import Log

BACK_OFF_MIN_S, BACK_OFF_MAX_S = 0.1, 2.0
"""Between attempts to reach the other, half of it by chance."""
CONNECT_S = 5.0
_CHANCE_BITS = 16


class Dialer(Protocol):
    """The owner of such connections, which is told what happens on them."""

    protocol: PeerProtocol
    limits: Limits
    log: Log
    counters: PeerCounters
    gauges: PeerGauges

    @property
    def greeting(self) -> Greeting: ...

    def linked(self, address: str) -> None:
        """Both sides have greeted."""
        ...

    def received(self, address: str, message: Any) -> None: ...

    def refuse(self, error: AnabranchError) -> None:
        """One of the two sides doesn't take the other for a process of its cluster."""
        ...


class PeerLink:
    def __init__(self, links: Dialer, address: str, met_at: str = "") -> None:
        """`met_at`: where the other side was met last, if it has dialed us."""
        self._links = links
        self._address = address
        self._hint = Hint(met_at)
        self._down_since: float | None = asyncio.get_running_loop().time()
        self._line: Line[Any] | None = None
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
            pause_s = back_off_s * (0.5 + 0.5 * randbits(_CHANCE_BITS) / (1 << 16))
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._hint.news.wait()
            back_off_s = min(2 * back_off_s, BACK_OFF_MAX_S)

    async def _dial(self, tls: Renewed[ssl.SSLContext] | None) -> str | None:
        """Why it can't be reached, if so."""
        self._refusal = None
        host, port = parse_address(self._address)
        loop = asyncio.get_running_loop()
        links = self._links
        reader = links.protocol.from_dialed(links.limits.peer_frame_bytes_max)
        make = partial(Line[Any], self, reader, links.limits, links.counters, links.log)
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

    def made(self, line: Line[Any]) -> None:
        line.say(encode_greeting(self._links.greeting))

    def heard(self, line: Line[Any], message: Any) -> None:
        if isinstance(message, Greeting):
            self._greeted(line, message)
        elif isinstance(message, Refused):
            self._refused(line, message.error())
        elif line.peer:
            self._links.received(self._address, message)
        else:
            line.end("it wrote letters before it greeted")

    def lost(self, line: Line[Any], why: str) -> None:
        if line.peer:
            self._links.gauges.connected -= 1
            self._down_since = asyncio.get_running_loop().time()
        if not self._over.done():
            self._over.set_result(why)

    def _greeted(self, line: Line[Any], greeting: Greeting) -> None:
        links, ours = self._links, self._links.greeting
        if line.peer:
            line.end("it greeted twice")
        elif greeting.version != ours.version:
            self._refused(line, VersionMismatch(greeting.version, ours.version))
        elif greeting.cluster != ours.cluster:
            where = f"{links.protocol.dialed_noun} {self._address}"
            self._refused(line, WrongCluster(where, greeting.cluster, ours.cluster))
        elif links.protocol.moves and greeting.node != self._address:
            line.end(f"{greeting.node} is there now")
        else:
            line.greeted(greeting.node)
            self._trouble = ""
            self._down_since = None
            links.gauges.connected += 1
            here = f"a {links.protocol.dialed_noun} is here"
            links.log.info(here, address=self._address, name=greeting.node)
            links.linked(self._address)

    def _refused(self, line: Line[Any], error: AnabranchError) -> None:
        self._refusal = error
        line.end(error.message)
        self._links.counters.refused += 1
        self._links.refuse(error)

    def _say(self, why: str) -> None:
        """An outage is said once, and its end."""
        if why != self._trouble:
            away = f"no {self._links.protocol.dialed_noun} is here"
            self._links.log.warning(away, address=self._address, reason=why)
        self._trouble = why
