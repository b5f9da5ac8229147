"""What all processes of a cluster do alike: begin, serve until told, drain, end."""

import asyncio
import gc
import os
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import uvloop

from anabranch.apps import process
from anabranch.apps.asgi import probe_server
from anabranch.apps.pods.base_settings import ProcessSettings
from anabranch.apps.pods.probe import Probes, Readiness
from anabranch.core.errors import AnabranchError, Retry, Unavailable
from anabranch.shell.runtime import failpoints
from anabranch.shell.runtime.allocator import keep_memory
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.budgets import Budgets
from anabranch.shell.telemetry.log import Log
from anabranch.shell.telemetry.metrics import Bill, KeptPage, render

RELEASE = version("anabranch")
DRAIN_MARGIN_S = 1.0
"""A machine ends its own drain by then: whoever waits longer waits for nothing."""
_AGAIN_S = 0.5
_PERSISTENT_S = 1.0
"""Between attempts of something that may be away for hours."""

P = TypeVar("P", bound=ProcessSettings)
R = TypeVar("R")


class Endpoint(msgspec.Struct, frozen=True):
    """Where a running process is found."""

    kind: str
    name: str
    address: str
    advertised: str
    probes: str | None
    pid: int


@dataclass(slots=True)
class Vitals:
    """What the probes tell; each part of the process adds what it knows."""

    node: str
    role: Callable[[], str] = lambda: "starting"
    obstacles: list[Callable[[], str | None]] = field(
        default_factory=lambda: [lambda: "it is starting"]
    )
    counters: dict[str, Any] = field(default_factory=dict[str, Any])
    gauges: dict[str, Callable[[], Any]] = field(default_factory=dict[str, Callable[[], Any]])
    bill: Bill | None = None
    failed: Callable[[], str | None] = lambda: None

    def readiness(self) -> Readiness:
        why = [reason for each in self.obstacles if (reason := each()) is not None]
        return Readiness(self.node, self.role(), why)

    def metrics(self) -> bytes:
        gauges = {name: read() for name, read in self.gauges.items()}
        return render(self.counters, gauges, self.bill)


class Pod(Generic[P]):
    """One process, from its settings to its end; what is opened is closed in reverse."""

    def __init__(self, settings: P, kind: str, stack: AsyncExitStack, stop: asyncio.Event) -> None:
        self._stop = stop
        self.settings = settings
        self.kind = kind
        self.stack = stack
        self.clock = Clock()
        self.log = Log(self.clock.now, settings.log_format)
        limits = settings.limits
        self.budgets = Budgets(limits, process.connections_max(limits.connections_max))
        self.vitals = Vitals(settings.node)
        self.vitals.gauges["budget"] = self.budgets.gauges
        self.draining = False
        self._probes: str | None = None

    async def serve_probes(self, port: int) -> None:
        """First of all, so that whoever watches sees what a start is waiting for."""
        if port < 0:
            return
        vitals = self.vitals
        probes = Probes(
            failed=lambda: vitals.failed(),  # noqa: PLW0108 - who knows it isn't there yet
            readiness=vitals.readiness,
            metrics=KeptPage(vitals.metrics),
        )
        server = probe_server(probes)
        host = self.settings.host
        found = await process.bound(server.start, host, port)
        self.stack.push_async_callback(server.stop)
        self._probes = process.address(host, found)

    async def patiently(self, what: str, attempt: Callable[[], Awaitable[R]]) -> R:
        """Again while it may still come: who starts everything at once can't say in which order."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self.settings.patience_ms / 1_000
        told = False
        while True:
            try:
                return await attempt()
            except Retry as error:
                if loop.time() >= end:
                    raise
                if not told:
                    self.log.warning("waiting", what=what, reason=error.message)
                    told = True
            with suppress(TimeoutError):
                async with asyncio.timeout(_AGAIN_S):
                    await self._stop.wait()
                raise Unavailable(what, "this process was told to end before it came")

    async def persistently(
        self, what: str, attempt: Callable[[], R], troubles: tuple[type[AnabranchError], ...]
    ) -> R:
        """For as long as it takes, in threads; the probes say why it takes so long. Raises
        Unavailable when this process is told to end.
        """
        trouble = ""
        starting = self.vitals.obstacles[0]
        self.vitals.obstacles[0] = lambda: trouble or starting()
        told = self.spawn(self._stop.wait())
        while True:
            trying = asyncio.get_running_loop().create_task(asyncio.to_thread(attempt))
            await asyncio.wait((trying, told), return_when=asyncio.FIRST_COMPLETED)
            if not trying.done():
                trying.add_done_callback(lambda task: task.cancelled() or task.exception())
                raise Unavailable(what, "this process was told to end before it came")
            try:
                return trying.result()
            except troubles as error:
                if trouble != error.message:
                    self.log.warning("waiting", what=what, code=error.code, reason=error.message)
                trouble = error.message
            with suppress(TimeoutError):
                async with asyncio.timeout(_PERSISTENT_S):
                    await self._stop.wait()

    def run_host(self, host: Host, role: Callable[[], str]) -> None:
        """From here on the probes tell of the machine."""
        vitals = self.vitals
        vitals.counters |= {"host": host.counters, "storing": host.storing.counters}
        vitals.failed = lambda: host.failed.result() if host.failed.done() else None
        vitals.role = role
        vitals.obstacles[0] = lambda: "it is draining" if self.draining else vitals.failed()
        # What was loaded stays: to look through it again for garbage would only cost pauses.
        gc.collect()
        gc.freeze()

    def announce(self, address: str, advertised: str) -> Endpoint:
        name = self.settings.node
        endpoint = Endpoint(self.kind, name, address, advertised, self._probes, os.getpid())
        if self.settings.announce:
            path = Path(self.settings.announce)
            self.stack.callback(process.announce(path, endpoint, self.log))
        self.log.info(
            "serving",
            kind=self.kind,
            name=name,
            cluster=self.settings.cluster,
            release=RELEASE,
            address=address,
            advertised=advertised,
            probes=self._probes,
        )
        return endpoint

    def spawn(self, work: Coroutine[Any, Any, R]) -> asyncio.Task[R]:
        """Runs beside everything else, and no longer."""
        task = asyncio.get_running_loop().create_task(work)
        self.stack.callback(task.cancel)
        return task

    async def until_over(self, host: Host, ends: Sequence[asyncio.Future[AnabranchError]]) -> None:
        """Until told, and then until what is in hand is done, or until the machine rests by itself;
        raises what ended it otherwise.
        """
        told = self.spawn(self._stop.wait())
        over = (told, host.failed, host.rested, *ends)
        await asyncio.wait(over, return_when=asyncio.FIRST_COMPLETED)
        if host.failed.done():
            raise AnabranchError(reason=host.failed.result())
        for end in ends:
            if end.done():
                raise end.result()
        if not host.rested.done():
            await self._drain(host)

    async def _drain(self, host: Host) -> None:
        self.draining = True
        self.log.info("draining")
        patience_s = self.settings.limits.drain_ms / 1_000 + DRAIN_MARGIN_S
        try:
            async with asyncio.timeout(patience_s):
                await host.drain()
        except TimeoutError:
            self.log.warning("not everything in hand was finished", after_s=patience_s)
        self.log.info("stopping")


def run(settings: ProcessSettings, serve: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """What a command starts: the process is this one's alone."""
    keep_memory()
    process.prepare(settings.limits.connections_max)
    failpoints.arm(settings.failpoints)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())
