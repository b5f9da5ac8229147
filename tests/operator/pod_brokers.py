"""A log service whose brokers live in pods that nobody runs: one comes when its pod is ready, and
ends when its pod is gone.

Metadata, brokers and their sockets are the real ones; a pod's address leads nowhere.
"""

import asyncio
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.integration.living import living
from tests.integration.pool import CLUSTER, METADATA, Alone
from tests.kubernetes.api_server import ApiServer

from anabranch.core.bolt.broker.broker import Broker
from anabranch.core.bolt.metadata.member import Member
from anabranch.core.limits import Limits
from anabranch.core.machine import Elected, Received
from anabranch.core.types import NEVER
from anabranch.shell.authority.shared import SharedToken
from anabranch.shell.journal.memory import MemoryJournal
from anabranch.shell.objects.memory import MemoryStore
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.engines import bolt_service
from anabranch.shell.server.frame_server import FrameServer
from anabranch.shell.telemetry.log import Log, LogFormat

LIVES = 16
"""So many brokers may come, one after the other."""
_LIMITS = Limits(alive_ms=500, silence_ms=10_000)
_LOOK_S = 0.2
_BROKERS = "pods?labelSelector=anabranch.dev/role%3Dbroker"


class LocalNetwork:
    """Letters between hosts of one process; those to nobody are lost."""

    def __init__(self) -> None:
        self.hosts: dict[str, Host] = {}

    def send(self, sender: str, to: str, message: Any) -> None:
        host = self.hosts.get(to)
        if host is not None:
            host.post(to, Received(sender, message))


class PodBrokers:
    """Of one namespace."""

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self._pods = f"/api/v1/namespaces/{namespace}/{_BROKERS}"
        self._server = server
        self._network = LocalNetwork()
        self._store = MemoryStore()
        self._clock = Clock()
        self._log = Log(self._clock.now, LogFormat.HUMAN)
        self._brokers: dict[str, tuple[Host, FrameServer]] = {}
        # Bound and silent: who knocks is turned away, and nobody else takes the place.
        self._free = [_bound() for _ in range(LIVES)]
        self.url = "anabranch://" + ",".join(_address(each) for each in self._free)

    async def run(self, ready: Callable[[], None], stop: asyncio.Event) -> None:
        member = self._metadata()
        ready()
        try:
            while not stop.is_set():
                await self._look()
                await _either(stop, _LOOK_S)
        finally:
            for name in [*self._brokers]:
                await self._sink(name)
            await member.stop()
            for each in self._free:
                each.close()

    def _metadata(self) -> Host:
        journal = MemoryJournal()
        journal.recover()

        def elected() -> None:
            host.post(METADATA, Elected(1, NEVER))

        host = self._host(journal, Alone(elected))
        self._network.hosts[METADATA] = host
        host.start({METADATA: Member(CLUSTER, _LIMITS)})
        return host

    def _host(self, journal: MemoryJournal | None, coordinator: Alone | None) -> Host:
        return Host(
            CLUSTER,
            journal,
            self._store,
            now=self._clock.now,
            log=self._log,
            network=self._network,
            coordinator=coordinator,
        )

    async def _look(self) -> None:
        pods = (await asyncio.to_thread(self._server.ask, "GET", self._pods))["items"]
        here = {f"{each['metadata']['name']}.{each['metadata']['uid']}": each for each in pods}
        for name in [*self._brokers]:
            if name not in here:
                await self._sink(name)
        for name, pod in here.items():
            if name not in self._brokers and _is_ready(pod):
                await self._moor(name)

    async def _moor(self, name: str) -> None:
        spot = self._free.pop(0)
        life = secrets.token_bytes(16)
        broker = Broker(name, CLUSTER, _LIMITS, (METADATA,), life, _address(spot))
        host = self._host(None, None)
        self._network.hosts[name] = host
        host.start({name: broker})
        server = FrameServer(_LIMITS)
        authority = SharedToken(None)
        server.serve(
            bolt_service(host, name, _LIMITS, cluster=CLUSTER, version="test", authority=authority)
        )
        await server.take_over(spot)
        self._brokers[name] = host, server

    async def _sink(self, name: str) -> None:
        host, server = self._brokers.pop(name)
        del self._network.hosts[name]
        await host.stop()
        await server.stop()


@contextmanager
def pod_brokers(server: ApiServer, namespace: str) -> Iterator[str]:
    """The log service's address, at which somebody answers once a pod is ready."""
    found = PodBrokers(server, namespace)
    with living(found.run) as ended:
        yield found.url
    assert not ended, ended


def _bound() -> socket.socket:
    made = socket.socket()
    made.bind(("127.0.0.1", 0))
    return made


def _address(place: socket.socket) -> str:
    host, port = place.getsockname()
    return f"{host}:{port}"


async def _either(stop: asyncio.Event, wait_s: float) -> None:
    """Whichever comes first."""
    try:
        async with asyncio.timeout(wait_s):
            await stop.wait()
    except TimeoutError:
        return


def _is_ready(pod: dict[str, Any]) -> bool:
    said = pod.get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in said)
