"""A pool of brokers in one process: one metadata member, one store, and brokers that each have an
address of their own. What clients see of it is what they see of a cluster.

A broker dies without a word: what it has written may yet be committed, what it would say is lost.
"""

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from tests.integration.living import PATIENCE_S, living

from anabranch.apps import process
from anabranch.core.bolt.broker.broker import Broker
from anabranch.core.bolt.metadata.member import Member
from anabranch.core.limits import Limits
from anabranch.core.machine import Drain, Effects, Elected, Event, Linked, Machine
from anabranch.core.types import NEVER, Nanoseconds
from anabranch.shell.authority.log_names import LogSubjects, OwnLogs
from anabranch.shell.authority.open import by_kubernetes
from anabranch.shell.authority.reviewer import Warden
from anabranch.shell.authority.settings import AuthSettings
from anabranch.shell.authority.shared import SharedToken
from anabranch.shell.journal.memory import MemoryJournal
from anabranch.shell.net.tls import TlsSettings, listening
from anabranch.shell.objects.memory import MemoryStore
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.engines import bolt_service
from anabranch.shell.server.frame_server import FrameServer
from anabranch.shell.telemetry.log import Log, LogFormat

CLUSTER = "pool"
METADATA = "metadata-0"
LIMITS = Limits(alive_ms=50, silence_ms=1_000)

A = TypeVar("A")


class Mortal:
    """A machine that may die at any moment, and be followed by another life."""

    def __init__(self, inner: Machine) -> None:
        self._inner = inner
        self._born = True
        self.dead = False

    def start(self, now: Nanoseconds) -> Effects:
        return self._inner.start(now)

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        if self.dead:
            return ()
        if not self._born:
            self._born = True
            return self._inner.start(now)
        return self._inner.step(now, event)

    def reborn(self, inner: Machine) -> None:
        """Its start is its first step."""
        self._inner, self._born, self.dead = inner, False, False


class Alone:
    """The coordinator of a group of one: it is elected at once, for good."""

    def __init__(self, elected: Callable[[], None]) -> None:
        self._elected = elected

    def follow(self, after: int) -> None: ...

    def campaign(self) -> None:
        self._elected()

    def resign(self) -> None: ...


class PoolBroker:
    """One broker, and the port that it keeps over its lives."""

    def __init__(self, pool: "Pool", node: str, port: int) -> None:
        self.node = node
        self.address = f"127.0.0.1:{port}"
        self._pool = pool
        self._port = port
        self._server: FrameServer | None = None
        self.mortal = Mortal(self._life())

    def _life(self) -> Broker:
        pool = self._pool
        life = secrets.token_bytes(16)
        return Broker(self.node, CLUSTER, pool.limits, (METADATA,), life, self.address)

    @property
    def lapsed(self) -> int:
        """Connections that were left because their token was good no more."""
        return self._server.counters.left_lapsed if self._server else 0

    async def listen(self) -> None:
        pool = self._pool
        server = FrameServer(pool.limits)
        server.serve(
            bolt_service(
                pool.host,
                self.node,
                pool.limits,
                cluster=CLUSTER,
                version="test",
                authority=pool.warden(self.node) or SharedToken(pool.token),
            )
        )
        listener = await process.listener("127.0.0.1", self._port)
        await server.take_over(listener, listening(pool.tls))
        self._server = server

    async def die(self) -> None:
        self.mortal.dead = True
        await self.hang_up()

    async def hang_up(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            # Nobody gets in meanwhile: whom a dead machine leaves unanswered is waited for.
            assert server._listener is not None
            server._listener.close()
            for connection in list(server._connections):
                connection.abort()
            await server.stop()

    async def live(self) -> None:
        """Again, with an empty cache and a new epoch."""
        self.mortal.reborn(self._life())
        self._pool.host.post(self.node, Linked(METADATA))
        await self.listen()

    def drain(self) -> None:
        self._pool.host.post(self.node, Drain())


class Pool:
    """Lives in a thread of its own; its methods may be called from any other."""

    def __init__(
        self, limits: Limits, token: str | None, tls: TlsSettings, auth: AuthSettings | None
    ) -> None:
        self.limits = limits
        self.token = token
        self.auth = auth
        self.wardens: list[Warden] = []
        self.tls = tls
        self.brokers: list[PoolBroker] = []
        self.host: Host
        self.loop: asyncio.AbstractEventLoop

    @property
    def url(self) -> str:
        """Every broker's address."""
        return "anabranch://" + ",".join(broker.address for broker in self.brokers)

    def warden(self, node: str) -> Warden | None:
        """Of a broker that asks Kubernetes who may do what."""
        if self.auth is None:
            return None
        warden = by_kubernetes(self.auth, LogSubjects(OwnLogs(self.host, node)), self.log)
        self.wardens.append(warden)
        return warden

    def run(self, work: Coroutine[Any, Any, A]) -> A:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE_S)

    def do(self, work: Callable[[], object]) -> None:
        self.loop.call_soon_threadsafe(work)

    def kill(self, broker: PoolBroker) -> None:
        self.run(broker.die())

    def revive(self, broker: PoolBroker) -> None:
        self.run(broker.live())

    def at(self, address: str) -> PoolBroker:
        return next(broker for broker in self.brokers if broker.address == address)

    async def begin(self, count: int) -> None:
        self.loop = asyncio.get_running_loop()
        clock = Clock()
        self.log = Log(clock.now, LogFormat.HUMAN)
        journal = MemoryJournal()
        journal.recover()

        def elected() -> None:
            self.host.post(METADATA, Elected(1, NEVER))

        self.host = Host(
            CLUSTER,
            journal,
            MemoryStore(),
            now=clock.now,
            log=self.log,
            coordinator=Alone(elected),
        )
        for number in range(count):
            spot = await process.listener("127.0.0.1", 0)
            self.brokers.append(PoolBroker(self, f"broker-{number}", spot.getsockname()[1]))
            spot.close()
        machines: dict[str, Machine] = {METADATA: Member(CLUSTER, self.limits)}
        self.host.start(machines | {broker.node: broker.mortal for broker in self.brokers})
        for broker in self.brokers:
            await broker.listen()

    async def end(self) -> None:
        for broker in self.brokers:
            await broker.hang_up()
        for warden in self.wardens:
            await warden.close()
        await self.host.stop()


@contextmanager
def pooled(
    count: int = 2,
    limits: Limits = LIMITS,
    *,
    token: str | None = None,
    tls: TlsSettings | None = None,
    auth: AuthSettings | None = None,
) -> Iterator[Pool]:
    pool = Pool(limits, token, tls or TlsSettings(), auth)

    async def live(ready: Callable[[], None], stop: asyncio.Event) -> None:
        await pool.begin(count)
        ready()
        await stop.wait()
        await pool.end()

    with living(live) as ended:
        yield pool
    assert not ended, ended
