"""The operator as a process: begins, watches, stands for election, acts while it leads, ends."""

import asyncio
import os
import secrets
import signal
import socket
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
from aiohttp import web

from anabranch.apps import process
from anabranch.apps.pods.probe import Readiness
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.telemetry.log import Log
from anabranch_operator.handlers.actions import Performer
from anabranch_operator.handlers.driver import Driver
from anabranch_operator.handlers.eviction_webhook import Evictions
from anabranch_operator.handlers.http import Probes, Server, certificate
from anabranch_operator.handlers.watch_check import LEASE, Sight
from anabranch_operator.handlers.watches import Watches, quieten
from anabranch_operator.kube.access import Access, find
from anabranch_operator.kube.client import Client
from anabranch_operator.kube.lease import Election, boottime
from anabranch_operator.kube.rate_limit import Pace
from anabranch_operator.kube.refusals import Away, TooMany
from anabranch_operator.kube.selectors import Watched, watched
from anabranch_operator.kube.tokens import provide
from anabranch_operator.metrics import Metrics
from anabranch_operator.plan.engine.actions import Action
from anabranch_operator.plan.engine.events import Deposed, Elected, Event, Gone, Outcome
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.operator import Operator
from anabranch_operator.plan.engine.planners import PLANNERS
from anabranch_operator.plan.engine.polls import targets
from anabranch_operator.service.bolt_client import Asker
from anabranch_operator.service.log_client import Visitor
from anabranch_operator.service.pod_metrics import Scraper
from anabranch_operator.settings import OperatorSettings, Scope

T = TypeVar("T")

RELEASE = version("anabranch")
_AGAIN_S = 2.0
_LEASE_PER_S = 20
_RELEASE_S = 4.0
"""How long letting go of the Lease may take."""


class Found(msgspec.Struct, frozen=True):
    """Where a running operator is found."""

    name: str
    probes: str | None
    webhook: str | None
    pid: int


class Process:
    """What is opened is closed in reverse; what fails ends it."""

    def __init__(self, settings: OperatorSettings, access: Access, stack: AsyncExitStack) -> None:
        self._settings = settings
        self._stack = stack
        self._stop = asyncio.Event()
        self._why: str | None = "it is starting"
        self._elects: asyncio.Task[None] | None = None
        self._provides: asyncio.Task[None] | None = None
        self._name = f"{settings.node}.{secrets.token_hex(4)}"
        """Of this life: a process that comes back is another."""
        clock = Clock()
        self._now = clock.now
        self.log = Log(clock.now, settings.log_format)
        surroundings = settings.surroundings(access.namespace)
        self._home = surroundings.namespace
        self._watched = watched(
            self._home,
            settings.lease,
            surroundings.metadata,
            everywhere=settings.watch is Scope.CLUSTER,
            nodes=settings.watch_nodes,
        )
        kinds = [each.kind for each in self._watched if each.kind != LEASE]
        self.machine = Operator(surroundings, PLANNERS, kinds)
        self.metrics = Metrics(self.machine, clock.now, self._canary_age)
        pace = Pace(clock, settings.requests_per_s, settings.requests_burst)
        self._client = Client(access, pace, self._standing, self._asked)
        self._asker = Asker(settings.service, self._name, self._told)
        self._visitor = Visitor(
            self._name, settings.belfast_token_file, settings.belfast_ca, self._told
        )
        self._performer = Performer(
            self._client,
            self._asker,
            self._visitor,
            surroundings,
            self._name,
            clock.now,
            self.metrics,
        )
        self.driver = Driver(
            self.machine,
            clock.now,
            self.log,
            self.metrics,
            perform=self._perform,
            look=self._asker.look,
            visit=self._visitor.visit,
            evict=self._evict,
        )
        known = bool(settings.webhook_client_ca)
        self._evictions = Evictions(self.machine, self.driver.give, clock.now, authenticated=known)
        self.sight = Sight(
            self._client,
            self._watched,
            self._give,
            self.log,
            self.metrics,
            canary_s=settings.canary_s,
            learn_s=settings.retry_s,
            sweep_s=settings.sweep_s,
        )
        self._lease_client = Client(
            access, Pace(clock, _LEASE_PER_S, _LEASE_PER_S), lambda: True, self._asked
        )
        self.election = self._candidate()
        self._watches = Watches(
            access, self._watched, self.sight.told, self._heed_signals, settings.inactivity_s
        )

    def _candidate(self) -> Election:
        settings = self._settings
        return Election(
            self._lease_client,
            Ref(LEASE, self._home, settings.lease),
            self._name,
            settings.terms,
            elected=self._elected,
            deposed=self._deposed,
            learned=self.sight.learned,
            failed=self._unanswered,
        )

    async def run(self) -> None:
        """Until it is told to end, or can't go on: that is raised."""
        stack = self._stack
        quieten(self.log)
        self._heed_signals()
        stack.push_async_callback(self._client.close)
        stack.push_async_callback(self._lease_client.close)
        stack.callback(self._asker.close)
        stack.callback(self._visitor.close)
        stack.callback(self.driver.stop)
        stack.callback(self.sight.close)
        await self._serve()
        begun = self._spawn(self._begin())
        told = self._spawn(self._stop.wait())
        ends: list[asyncio.Future[Any]] = [begun, self.driver.failed, self.sight.failed]
        await asyncio.wait((told, *ends), return_when=asyncio.FIRST_COMPLETED)
        await self._leave(begun)
        for end in ends:
            _raise(end)

    async def _begin(self) -> None:
        """What is missing at the start is waited for; then everything runs, and for ever."""
        for each in self._watched:
            await self._served(each)
        self._why = None
        self.log.info("watching", kinds=len(self._watched), namespace=self._home)
        self._elects = self._spawn(self.election.run())
        scraper = Scraper()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._watches.run())
                group.create_task(self.sight.compare())
                group.create_task(self._measure(scraper))
        finally:
            await scraper.close()

    async def _leave(self, begun: asyncio.Task[None]) -> None:
        """What is on its way is finished while the Lease is still ours; then it is let go."""
        self._why = "it is ending"
        self.log.info("ending")
        self.driver.give(Deposed())
        if not await self.driver.drain(self._settings.drain_s):
            self.log.warning("actions were still in flight at the end")
        if self._elects is not None:
            self.election.resign()
            await asyncio.wait((self._elects,), timeout=_RELEASE_S)
        if not begun.done():
            begun.cancel()
            await asyncio.wait((begun,))

    async def _served(self, each: Watched) -> None:
        waits = False
        while True:
            try:
                if await self._client.serves(each.kind):
                    return
                reason = f"the API server doesn't know {each.kind}: install its definition"
            except (Away, TooMany) as error:
                reason = error.message
            if not waits:
                self.log.warning("waiting", reason=reason)
            waits, self._why = True, reason
            await asyncio.sleep(_AGAIN_S)

    async def _measure(self, scraper: Scraper) -> None:
        """Figures of pods, while a plan needs them."""
        told = False
        while True:
            await asyncio.sleep(self._settings.vitals_s)
            wanted = targets(self.machine.world) if self.machine.leads else ()
            if wanted or told:
                self.driver.give(await scraper.measure(wanted))
            told = bool(wanted)

    async def _serve(self) -> None:
        settings = self._settings
        probes = webhook = None
        if settings.probe_port >= 0:
            served = Probes(self._failure, self._readiness, self.metrics.page)
            server = Server(served.routes())
            self._stack.push_async_callback(server.stop)
            port = await process.bound(server.start, settings.host, settings.probe_port)
            probes = process.address(settings.host, port)
        if settings.webhook_port >= 0:
            listener = await process.listener(settings.host, settings.webhook_port)
            webhook = process.address(settings.host, listener.getsockname()[1])
            self._spawn(self._serve_evictions(listener))
        found = Found(self._name, probes, webhook, os.getpid())
        if settings.announce:
            self._stack.callback(process.announce(Path(settings.announce), found, self.log))
        self.log.info("serving", name=self._name, release=RELEASE, probes=probes, webhook=webhook)

    async def _serve_evictions(self, listener: socket.socket) -> None:
        """From when there is a certificate on; until then nobody is answered."""
        with listener:
            settings = self._settings
            folder = Path(settings.webhook_dir)
            tls = await certificate(folder, settings.webhook_client_ca, self.log)
            server = Server([web.post("/evictions", self._evictions.serve)])
            try:
                await server.answer(listener, tls)
                await asyncio.Event().wait()
            finally:
                await server.stop()

    def _give(self, event: Event) -> None:
        if isinstance(event, Gone) and event.ref.kind == "Pod":
            self._evictions.forget(event.uid)
        self.driver.give(event)

    async def _perform(self, action: Action) -> Outcome:
        outcome = await self._performer.perform(action)
        if isinstance(outcome, Observed):
            self.sight.overheard(outcome)
        return outcome

    def _elected(self, scope: str, epoch: int) -> None:
        self.log.info("elected", epoch=epoch)
        self.metrics.leader.set(1)
        self._asker.guard(f"k8s/{self._home}/{self._settings.lease}/{scope}", epoch)
        self.driver.give(Elected(epoch))
        self._provides = self._spawn(
            provide(self._client, self._home, self._settings.tokens, self.log)
        )

    def _deposed(self, why: str) -> None:
        self.log.warning("leadership lost", reason=why)
        self.metrics.leader.set(0)
        self.driver.give(Deposed())

    def _unanswered(self, why: str) -> None:
        self.log.warning("the Lease couldn't be read or renewed", reason=why)

    def _evict(self, uid: str) -> None:
        self._evictions.allow(uid)

    def _standing(self) -> bool:
        return self.election.standing

    def _asked(self, verb: str, kind: str, code: str) -> None:
        self.metrics.requests.labels(verb, kind, code).inc()

    def _told(self, request: str, code: str) -> None:
        self.metrics.asked.labels(request, code).inc()

    def _canary_age(self) -> float:
        return self.sight.canary.behind_s(boottime())

    def _failure(self) -> str | None:
        for each in (self.driver.failed, self.sight.failed):
            if each.done():
                return repr(each.result())
        return None

    def _readiness(self) -> Readiness:
        role = "leader" if self.machine.leads else "standby"
        why = [self._why] if self._why else []
        if not self.machine.synced:
            why.append("not everything has been listed yet")
        return Readiness(self._name, role, why)

    def _heed_signals(self) -> None:
        """The second one ends at once, as a crash would."""

        def told(number: signal.Signals) -> None:
            if self._stop.is_set():
                os._exit(128 + number)
            self._stop.set()

        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, told, number)

    def _spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._stack.callback(task.cancel)
        return task


def _raise(end: asyncio.Future[Any]) -> None:
    """What ended the process by itself."""
    if not end.done() or end.cancelled():
        return
    error = end.exception() or end.result()
    if isinstance(error, BaseException):
        raise error


async def serve(settings: OperatorSettings) -> int:
    """The process's exit code."""
    access = find(os.environ, settings.kubeconfig)
    async with AsyncExitStack() as stack:
        operator = Process(settings, access, stack)
        (outcome,) = await asyncio.gather(operator.run(), return_exceptions=True)
        if outcome is None:
            return 0
        for error in _each(outcome):
            operator.log.error("ended", reason=repr(error))
        return 1


def _each(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[Any]", error).exceptions:
            yield from _each(inner)
    else:
        yield error
