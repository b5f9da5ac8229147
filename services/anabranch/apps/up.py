"""`anabranch up`: logs of every engine in one process, on one loop, in one directory."""

import asyncio
import gc
import os
import secrets
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from anabranch.apps import process
from anabranch.apps.asgi import http_server
from anabranch.apps.check import journal_behind
from anabranch.apps.embedded.engine import Surroundings
from anabranch.apps.embedded.folders import Folders
from anabranch.apps.embedded.logs import EmbeddedLogs
from anabranch.apps.embedded.watched_metadata import WatchedMetadata
from anabranch.apps.engines import embedded_engines
from anabranch.apps.settings import Settings, load
from anabranch.core.bolt.broker.broker import Broker
from anabranch.core.bolt.broker.control import OtherEngines
from anabranch.core.bolt.metadata.compactor_gauges import CompactorGauges
from anabranch.core.bolt.metadata.leader import Metadata
from anabranch.core.bolt.metadata.plan_gauges import PlanGauges
from anabranch.core.bolt.metadata.writer_gauges import WriterGauges
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.bolt.state.retention import referenced
from anabranch.core.errors import AnabranchError
from anabranch.core.limits import Limits
from anabranch.core.records.objects import ObjectName
from anabranch.core.types import Nanoseconds
from anabranch.ports import Journal, ObjectStore, Recovered
from anabranch.shell.authority.shared import SharedToken
from anabranch.shell.authority.tokens import Tokens
from anabranch.shell.journal.data_dir import DataDir
from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.file_journal import FileJournal
from anabranch.shell.journal.memory import MemoryJournal
from anabranch.shell.journal.watermark import NotedJournal, WatermarkFile
from anabranch.shell.objects import quarantine
from anabranch.shell.objects.folder import FolderStore
from anabranch.shell.objects.memory import MemoryStore
from anabranch.shell.runtime.allocator import keep_memory
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.budgets import Budgets
from anabranch.shell.server.engines import bolt_service
from anabranch.shell.server.frame_server import FrameServer
from anabranch.shell.telemetry.log import Log
from anabranch.shell.telemetry.metrics import render

METADATA, BROKER = "metadata", "broker-0"
ENDPOINT = "endpoint"
"""The file in a data directory that says where its server listens; gone when it doesn't."""


class Endpoint(msgspec.Struct, frozen=True):
    """Where a running server is found."""

    frames: str
    http: str | None
    pid: int


@dataclass(frozen=True, slots=True)
class Embedded:
    """A running log, as a front that is plugged into it sees it."""

    host: Host
    broker: str
    """The node to take a seat at: `Local(host, broker)`."""
    cluster: str
    version: str
    limits: Limits
    token: Tokens
    log: Log
    metrics: Callable[[], bytes]
    obstacle: Callable[[], str | None]
    """Why not every log can be used yet."""
    ends: tuple[asyncio.Future[str], ...]
    """One is done when machines have stopped by themselves; says why."""
    budgets: Budgets
    """What its connections share with those of a front."""
    frames: str = ""
    """Where its clients reach it, also those within the process; empty until it listens."""
    behind: AsyncExitStack = field(default_factory=AsyncExitStack)
    """What a front leaves here is closed when the front has stopped."""


AppBuilder = Callable[[Embedded], Any]
"""Makes the ASGI application of a running log."""


async def serve(
    settings: Settings,
    ready: Callable[[Endpoint], None] | None = None,
    *,
    app: AppBuilder | None = None,
    stop: asyncio.Event | None = None,
    accept_loss: bool = False,
    clock: Clock | None = None,
) -> None:
    """Run until `stop` is set or, if none is given, until a signal says so.

    `ready` is told where clients find it; `clock` says what time it is. Raises what stood in the
    way, or what ended it: JournalBehind if entries are missing from the journal, unless their loss
    is accepted.
    """
    clock = clock or Clock()
    log = Log(clock.now, settings.log_format)
    stop = stop or process.signalled()
    failure = None
    async with AsyncExitStack() as stack:
        embedded, server = await _begin(settings, clock, log, stack, accept_loss)
        endpoint = await _listen(settings, embedded, server, app, stack)
        if not settings.memory:
            stack.callback(process.announce(Path(settings.data) / ENDPOINT, endpoint, log))
        log.info("serving", cluster=embedded.cluster, frames=endpoint.frames, http=endpoint.http)
        if ready is not None:
            ready(endpoint)
        failure = await process.until_told(stop, embedded.ends)
        log.info("stopping")
    if failure is not None:
        raise AnabranchError(reason=failure)


@dataclass(frozen=True, slots=True)
class _Shelf:
    cluster: str
    journal: Journal
    store: ObjectStore
    recover: Callable[[Recovered], Metadata]
    """Makes the metadata of what the journal held; raises what is wrong with that."""


def _open(settings: Settings, log: Log, stack: AsyncExitStack, accept_loss: bool) -> _Shelf:
    """Where things are kept; closed in reverse, when nothing is written any more."""
    cluster = settings.cluster or f"local-{secrets.token_hex(4)}"
    if settings.memory:
        fresh = partial(journal_behind.metadata_of, cluster, settings.limits)
        return _Shelf(cluster, MemoryJournal(), MemoryStore(), fresh)
    directory = DataDir(settings.data, cluster)
    stack.callback(directory.close)
    directory.raise_format()
    # Left by a server that was killed, it would send clients to nobody while this one starts.
    process.withdraw(Path(settings.data) / ENDPOINT)
    store = FolderStore(directory.objects)
    stack.push_async_callback(store.close)
    files = FileJournal(RealDisk(directory.journal), directory.cluster)
    journal = NotedJournal(files, WatermarkFile(directory.objects), time.monotonic)
    recover = partial(
        journal_behind.recovered, directory, journal, settings.limits, log, accept_loss=accept_loss
    )
    return _Shelf(directory.cluster, journal, store, recover)


def _gauges(replica: Replica, now: Nanoseconds) -> dict[str, object]:
    """Of the metadata."""
    return {
        "compactors": CompactorGauges(replica),
        "plans": PlanGauges(replica, now),
        "writers": WriterGauges(replica),
    }


async def _begin(
    settings: Settings, clock: Clock, log: Log, stack: AsyncExitStack, accept_loss: bool
) -> tuple[Embedded, FrameServer]:
    """The machines as the journal left them, and the loop that runs them."""
    shelf = _open(settings, log, stack, accept_loss)
    limits = settings.limits
    metadata = await _recover(shelf, log, stack)
    broker = Broker(
        BROKER,
        shelf.cluster,
        limits,
        (METADATA,),
        secrets.token_bytes(16),
        others=OtherEngines.THIS_PROCESS,
    )
    host = Host(shelf.cluster, shelf.journal, shelf.store, now=clock.now, log=log)
    # What was recovered stays: to look through it again for garbage would only cost pauses.
    gc.collect()
    gc.freeze()
    release = version("anabranch")
    budgets = Budgets(limits, process.connections_max(limits.connections_max))
    tokens = Tokens(settings.token, settings.tokens_file, log)
    server = FrameServer(limits, budgets=budgets, log=log)
    authority = SharedToken(tokens)
    around = Surroundings(
        cluster=shelf.cluster,
        release=release,
        limits=limits,
        now=clock.now,
        log=log,
        server=server,
        authority=authority,
        folders=None if settings.memory else Folders(settings.data),
        bolt=(host, BROKER),
        kafka_file=settings.kafka_file,
        accept_loss=accept_loss,
    )
    others = EmbeddedLogs(metadata, around, embedded_engines(settings.rules))
    host.start({METADATA: WatchedMetadata(metadata, others.changed), BROKER: broker})
    stack.push_async_callback(host.stop)
    others.start()
    stack.push_async_callback(others.stop)
    server.serve(
        bolt_service(
            host, BROKER, limits, cluster=shelf.cluster, version=release, authority=authority
        )
    )

    def metrics() -> bytes:
        counters = {"broker": broker.counters, "server": server.counters}
        counters |= {"host": host.counters, "storing": host.storing.counters}
        gauges = {"broker": broker.gauges(), "server": server.gauges, "budget": budgets.gauges()}
        gauges |= _gauges(metadata.state.replica, clock.now())
        return render(counters | others.counters(), gauges | others.gauges())

    embedded = Embedded(
        host=host,
        broker=BROKER,
        cluster=shelf.cluster,
        version=release,
        limits=limits,
        token=tokens,
        log=log,
        metrics=metrics,
        obstacle=others.obstacle,
        ends=(host.failed, others.failed),
        budgets=budgets,
    )
    return embedded, server


async def _recover(shelf: _Shelf, log: Log, stack: AsyncExitStack) -> Metadata:
    recovered = shelf.journal.recover()
    stack.callback(shelf.journal.close)
    for repair in recovered.repairs:
        log.warning("repaired the journal", repair=repair)
    metadata = shelf.recover(recovered)
    log.info("recovered", groups=len(recovered.entries), last=metadata.index)
    await _bring_back(shelf, metadata, log)
    return metadata


async def _bring_back(shelf: _Shelf, metadata: Metadata, log: Log) -> None:
    """What a log refers to leaves quarantine before anything is read.

    If the store refuses, the leader tries on: what can be read is served meanwhile.
    """
    try:
        found = quarantine.dated(await quarantine.listed(shelf.store, shelf.cluster))
        kept = referenced(metadata.state.replica) if found else set[int]()
        names = [str(ObjectName.of(shelf.cluster, object)) for object, _ in found if object in kept]
        await quarantine.bring_back(shelf.store, names, log)
    except AnabranchError as error:
        log.warning("can't bring objects back from quarantine yet", reason=error.message)


async def _listen(
    settings: Settings,
    embedded: Embedded,
    server: FrameServer,
    app: AppBuilder | None,
    stack: AsyncExitStack,
) -> Endpoint:
    port = await process.bound(server.start, settings.host, settings.port)
    stack.push_async_callback(server.stop)
    http = None
    if app is not None and settings.http_port >= 0:
        embedded = replace(embedded, frames=process.reached_at(settings.host, port))
        await stack.enter_async_context(embedded.behind)
        front = http_server(app(embedded), None, embedded.budgets)
        http_port = await process.bound(front.start, settings.host, settings.http_port)
        stack.push_async_callback(front.stop)
        http = process.address(settings.host, http_port)
    return Endpoint(process.address(settings.host, port), http, os.getpid())


def main(
    settings: Settings,
    app: AppBuilder | None = None,
    *,
    accept_loss: bool = False,
    ready: Callable[[Endpoint], None] | None = None,
) -> None:
    """What a command starts: the process is the server's alone."""
    keep_memory()
    process.prepare(settings.limits.connections_max)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(settings, ready, app=app, accept_loss=accept_loss))


if __name__ == "__main__":
    main(load({}, os.environ))
