"""Belfast's logs that a process runs beside its Bolt: what the catalogue names is served, what it
names no longer is deleted.

Each sequencer and each replica is a machine with a journal of its own and a host of its own; their
letters go in memory. Clients reach them through the server of the process, by their names
`/LOG/sequencer-N` and `/LOG/shard-S-R`. Folders are compared with the catalogue at the start, so
that a process that was killed at any instant goes on where it was: a log that was created is
served, and a deletion is finished. A log of which a machine fails is stopped as a whole, until the
process starts again; no other log is.
"""

import asyncio
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain

from anabranch.apps.belfast.folders import Folders, LogFolder, deleted, embedded
from anabranch.apps.belfast.losses import losses, refusal
from anabranch.apps.belfast.machines import recover_sequencer, recover_shard
from anabranch.apps.node_machine import NodeMachine, node_journal
from anabranch.core.belfast.ledger.rules import Rules
from anabranch.core.belfast.protocol.clients import BELFAST
from anabranch.core.belfast.sequencer.sequencer import Sequencer
from anabranch.core.belfast.shard.config import ShardConfig
from anabranch.core.belfast.shard.shard import Shard
from anabranch.core.bolt.metadata.leader import Metadata
from anabranch.core.bolt.protocol.commands import EngineSettings
from anabranch.core.bolt.state.answers import embedded_sequencers
from anabranch.core.bolt.state.catalogue import nodes
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.errors import AnabranchError, Unavailable
from anabranch.core.limits import MIB, Limits
from anabranch.core.machine import Effects, Event
from anabranch.core.quota import Quota
from anabranch.core.rights.claims import LOGS, Subject
from anabranch.core.types import LogId, Nanoseconds
from anabranch.ports import Authority, RecordJournal
from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.memory import MemoryJournal
from anabranch.shell.journal.watermark import NotedRecordJournal
from anabranch.shell.peers.exchange import Exchange
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.append_limits import AppendLimits
from anabranch.shell.server.engines import belfast_service
from anabranch.shell.server.frame_server import FrameServer
from anabranch.shell.server.service import Absence
from anabranch.shell.telemetry.log import Log
from anabranch.shell.telemetry.metrics import Labelled

CACHE_BYTES = 16 * MIB
"""Of one replica's newest records."""
_STARTING = "it is starting: nodes are served one after the other"
_BUGS = (AssertionError, LookupError, TypeError, ValueError)
"""What a journal may hold that a machine wasn't made for: one log's trouble isn't the others'."""
RETRY_S = 5.0
"""Between attempts to start a log whose folder can't be read or written."""


class WatchedMetadata:
    """A machine: the metadata, and a word to whoever runs other engines' logs when these change."""

    def __init__(self, metadata: Metadata, changed: Callable[[], None]) -> None:
        self._metadata = metadata
        self._changed = changed
        self._logs = frozenset[LogId]()
        self._quotas: dict[LogId, Quota] = {}

    def start(self, now: Nanoseconds) -> Effects:
        return self._metadata.start(now)

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        effects = self._metadata.step(now, event)
        forest = self._metadata.state.replica.forest
        logs, quotas = forest.foreign.keys(), forest.quotas
        if logs or self._logs:
            # Few of the logs have a quota: this is looked at after every commit.
            found = {id: quotas[id] for id in logs & quotas.keys()}
            if logs != self._logs or found != self._quotas:
                self._logs, self._quotas = frozenset(logs), found
                self._changed()
        return effects


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the embedded logs of a process share with it."""

    cluster: str
    release: str
    limits: Limits
    rules: Rules
    now: Callable[[], Nanoseconds]
    log: Log
    server: FrameServer
    authority: Authority
    folders: Folders | None
    """None: journals are kept in memory."""
    accept_loss: bool = False
    """Begin logs anew whose journals are gone, instead of not serving them."""


@dataclass(slots=True)
class EmbeddedLog:
    """One log that is served."""

    folder: LogFolder
    stack: AsyncExitStack
    """Ends all of it."""
    nodes: dict[str, NodeMachine]
    append_limits: AppendLimits


@dataclass(frozen=True, slots=True)
class _Trouble:
    """Of a log that isn't served."""

    settings: EngineSettings
    error: AnabranchError


class EmbeddedLogs:
    """All that the catalogue names as embedded in this process."""

    def __init__(self, metadata: Metadata, around: Surroundings) -> None:
        self._metadata = metadata
        self._around = around
        self._logs: dict[LogFolder, EmbeddedLog] = {}
        self._troubles: dict[LogFolder, _Trouble] = {}
        self._failed: dict[LogFolder, str] = {}
        """Logs of which a machine has failed, and why: they aren't started again."""
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.failed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Done when whoever starts and stops them has failed; says why."""

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._follow())
        self._task.add_done_callback(self._followed)

    async def stop(self) -> None:
        """Machines end as they would by a crash: what was acknowledged is in their journals."""
        assert self._task is not None, "it was started"
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        for each in list(self._logs.values()):
            await each.stack.aclose()
        self._logs.clear()

    def changed(self) -> None:
        """Called whenever the catalogue has changed, before anybody is told that it has: a quota
        holds once it is acknowledged.
        """
        self._limit_appends()
        self._news.set()

    def obstacle(self) -> str | None:
        """Why not every log that the catalogue names can be used."""
        for folder in self._wanted():
            if folder in self._failed:
                return f"log {folder.log}: {self._failed[folder]}"
            each = self._logs.get(folder)
            if each is None:
                trouble = self._troubles.get(folder)
                reason = trouble.error.message if trouble else _STARTING
                return f"log {folder.log}: {reason}"
            for node, machine in each.nodes.items():
                reason = machine.obstacle()
                if reason is not None:
                    return f"log {folder.log}, {node}: {reason}"
        return None

    def counters(self) -> dict[str, Labelled]:
        return _by_kind(self._machines(), lambda machine: machine.counters)

    def gauges(self) -> dict[str, Labelled]:
        return _by_kind(self._machines(), lambda machine: machine.gauges())

    @property
    def _replica(self) -> Replica:
        return self._metadata.state.replica

    def _machines(self) -> "Iterator[tuple[str, str, NodeMachine]]":
        for folder, each in self._logs.items():
            for node, machine in each.nodes.items():
                yield folder.log, node.rpartition("/")[2], machine

    def _wanted(self) -> dict[LogFolder, EngineSettings]:
        return embedded(self._replica)

    async def _follow(self) -> None:
        if self._around.folders is not None:
            await asyncio.to_thread(self._tidy, self._around.folders)
        while True:
            self._news.clear()
            await self._catch_up()
            try:
                async with asyncio.timeout(RETRY_S if self._troubles else None):
                    await self._news.wait()
            except TimeoutError:
                continue

    def _followed(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and not self.failed.done():
            self.failed.set_result(f"embedded logs: {task.exception()!r}")

    def _tidy(self, folders: Folders) -> None:
        """Folders that the catalogue doesn't name: of logs that were deleted, or of a catalogue
        that is older than they are. Only the former may go.
        """
        folders.sweep()
        wanted = self._wanted()
        for folder in sorted({*folders.found(), *folders.noted()} - wanted.keys()):
            if deleted(self._replica, folder):
                folders.delete(folder)
            else:
                self._around.log.warning(
                    "a log's folder is in no catalogue, and is left alone",
                    folder=f"{folders.root}/{folder.name}",
                )

    async def _catch_up(self) -> None:
        wanted = self._wanted()
        await self._stop_failed(wanted)
        for folder in [each for each in {**self._logs, **self._failed} if each not in wanted]:
            await self._delete(folder)
        for folder, settings in wanted.items():
            if folder in self._logs or folder in self._failed:
                continue
            if folder not in self._troubles:
                self._explain(folder, settings, Unavailable(f"log {folder.log}", _STARTING))
            try:
                self._logs[folder] = await self._started(folder, settings)
            except AnabranchError as error:
                self._complain(folder, settings, error)
            except _BUGS as error:
                self._give_up(folder, settings, error)
            else:
                self._troubles.pop(folder, None)
                self._around.log.info("serving a log", log=folder.log, nodes=nodes(settings))
        self._limit_appends()
        for folder in self._troubles.keys() - wanted.keys():
            for node in _nodes(folder, self._troubles.pop(folder).settings):
                self._around.server.explain(BELFAST, node, None)

    def _limit_appends(self) -> None:
        quotas = self._replica.forest.quotas
        for folder, each in self._logs.items():
            each.append_limits.set(quotas.get(folder.id))

    def _complain(self, folder: LogFolder, settings: EngineSettings, error: AnabranchError) -> None:
        known = self._troubles.get(folder)
        if known is None or known.error.message != error.message:
            self._around.log.error(
                "can't serve a log", log=folder.log, code=error.code, reason=error.message
            )
        self._troubles[folder] = _Trouble(settings, error)
        self._explain(folder, settings, error)

    def _explain(self, folder: LogFolder, settings: EngineSettings, error: AnabranchError) -> None:
        """To clients that ask for nodes which aren't served."""
        for node in _nodes(folder, settings):
            self._around.server.explain(BELFAST, node, Absence(self._around.authority, error))

    def _give_up(self, folder: LogFolder, settings: EngineSettings, error: Exception) -> None:
        self._failed[folder] = why = f"it can't be started: {error!r}"
        trace = "".join(traceback.format_exception(error))
        self._around.log.error("a log meets a bug", log=folder.log, trace=trace)
        self._complain(folder, settings, Unavailable(f"log {folder.log}", why))

    async def _stop_failed(self, wanted: dict[LogFolder, EngineSettings]) -> None:
        for folder in self._failed.keys() & self._logs.keys():
            await self._logs.pop(folder).stack.aclose()
            if folder in wanted:
                error = Unavailable(f"log {folder.log}", self._failed[folder])
                self._complain(folder, wanted[folder], error)

    async def _delete(self, folder: LogFolder) -> None:
        if folder in self._logs:
            await self._logs.pop(folder).stack.aclose()
        self._failed.pop(folder, None)
        folders = self._around.folders
        if folders is not None:
            try:
                await asyncio.to_thread(folders.delete, folder)
            except AnabranchError as error:
                # The next start finishes it.
                self._around.log.warning(
                    "can't delete a log's folder", log=folder.log, reason=error.message
                )
        self._around.log.info("deleted a log", log=folder.log)

    async def _started(self, folder: LogFolder, settings: EngineSettings) -> EmbeddedLog:
        async with AsyncExitStack() as stack:
            if self._around.folders is not None:
                await asyncio.to_thread(self._see_to_losses, self._around.folders, folder)
                await asyncio.to_thread(self._around.folders.make, folder)
            exchange, nodes = Exchange(), dict[str, NodeMachine]()
            limits = AppendLimits(folder.log, self._around.limits, self._around.now)
            limits.set(self._replica.forest.quotas.get(folder.id))
            for node, recover in self._parts(folder, settings):
                journal = await asyncio.to_thread(self._journal, folder, node)
                nodes[node] = await asyncio.to_thread(recover, journal)
                stack.callback(journal.close)
                host = self._run(folder, node, nodes[node], journal, exchange, stack)
                self._serve(folder, node, host, limits, stack)
            return EmbeddedLog(folder, stack.pop_all(), nodes, limits)

    def _see_to_losses(self, folders: Folders, folder: LogFolder) -> None:
        """A journal that is gone isn't taken for a new one's, unless others of its log fill it.
        Raises JournalBehind.
        """
        log, found = self._around.log, losses(folders, folder)
        if found.lost:
            error = refusal(folders, folder, found.lost)
            if not self._around.accept_loss:
                raise error
            aside = folders.give_up(folder)
            reason = error.message
            log.warning("a log begins anew", log=folder.log, put_aside=aside, reason=reason)
            return
        for node in found.refilled:
            where = folders.path(folder, node)
            log.warning("a journal is gone, and is filled from others", log=folder.log, path=where)
            folders.forget(folder, node)

    def _parts(
        self, folder: LogFolder, settings: EngineSettings
    ) -> "Iterator[tuple[str, Callable[[RecordJournal], NodeMachine]]]":
        """Every node of a log, and how its machine comes from its journal."""
        around, fsync = self._around, self._around.folders is not None
        members = embedded_sequencers(folder.id, settings)
        for node in members:
            member = Sequencer(node, members, around.rules, around.limits, fsync=fsync)
            yield node, partial(recover_sequencer, member, log=around.log)
        for number in range(settings.shards):
            replicas = _replicas(folder, settings, number)
            for node in replicas:
                config = ShardConfig(
                    shard=_shard(number),
                    node=node,
                    replicas=replicas,
                    sequencers=members,
                    cache_bytes=CACHE_BYTES,
                    fsync=fsync,
                )
                yield node, partial(recover_shard, Shard(config, around.limits), log=around.log)

    def _run(
        self,
        folder: LogFolder,
        node: str,
        machine: NodeMachine,
        journal: RecordJournal,
        exchange: Exchange,
        stack: AsyncExitStack,
    ) -> Host:
        around = self._around
        host = Host(around.cluster, journal, None, now=around.now, log=around.log, network=exchange)
        stack.push_async_callback(host.stop)
        host.start({node: machine.machine})
        exchange.join(node, host)
        stack.callback(exchange.leave, node)
        failed = partial(self._machine_failed, folder)
        host.failed.add_done_callback(failed)
        stack.callback(host.failed.remove_done_callback, failed)
        return host

    def _serve(
        self,
        folder: LogFolder,
        node: str,
        host: Host,
        limits: AppendLimits,
        stack: AsyncExitStack,
    ) -> None:
        """To clients that ask for this node by its name."""
        around = self._around
        service = belfast_service(
            host,
            node,
            around.limits,
            cluster=around.cluster,
            version=around.release,
            authority=around.authority,
            log=Subject(LOGS, folder.log),
            name=node,
            append_limits=limits,
        )
        around.server.serve(service)
        stack.push_async_callback(around.server.withdraw, service)

    def _journal(self, folder: LogFolder, node: str) -> RecordJournal:
        around = self._around
        folders, name = around.folders, node.rpartition("/")[2]
        if folders is None:
            return MemoryJournal()
        reached = folders.reached(folder, name)
        journal = node_journal(RealDisk(folders.path(folder, name)), around.cluster, reached)
        return NotedRecordJournal(journal, folders.note(folder, name), time.monotonic)

    def _machine_failed(self, folder: LogFolder, failed: "asyncio.Future[str]") -> None:
        """The whole log stops: what the others go on with might contradict what that one knew."""
        self._failed.setdefault(folder, failed.result())
        self._news.set()


def _nodes(folder: LogFolder, settings: EngineSettings) -> list[str]:
    """By the names under which clients ask for them."""
    shards = (_replicas(folder, settings, number) for number in range(settings.shards))
    return [*embedded_sequencers(folder.id, settings), *chain.from_iterable(shards)]


def _replicas(folder: LogFolder, settings: EngineSettings, shard: int) -> tuple[str, ...]:
    return tuple(f"/{folder.id}/{_shard(shard)}-{r}" for r in range(settings.replicas))


def _shard(number: int) -> str:
    return f"shard-{number}"


def _by_kind(
    machines: "Iterator[tuple[str, str, NodeMachine]]", read: Callable[[NodeMachine], object]
) -> dict[str, Labelled]:
    found: dict[str, Labelled] = {}
    for log, node, machine in machines:
        labelled = found.setdefault(machine.kind, Labelled(("log", "node")))
        labelled.rows.append(((log, node), read(machine)))
    return found
