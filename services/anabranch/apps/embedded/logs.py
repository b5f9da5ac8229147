"""Logs of other engines that a process runs beside its Bolt: what the catalogue names is served,
what it names no longer is deleted.

Folders are compared with the catalogue at the start, so that a process that was killed at any
instant goes on where it was: a log that was created is served, and a deletion is finished. A log of
which a machine fails is stopped as a whole, until the process starts again; no other log is.

Logs of this process's own disks start one after the other, which is as fast as any other way. A log
with black boxes starts beside the others: what it waits for is somebody else's.
"""

import asyncio
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from anabranch.apps.embedded.engine import EmbeddedEngine, Surroundings
from anabranch.apps.embedded.folders import Folders, LogFolder, deleted, embedded, machines
from anabranch.apps.embedded.running_log import RunningLog, Starter
from anabranch.apps.node_machine import NodeMachine
from anabranch.core.bolt.metadata.leader import Metadata
from anabranch.core.bolt.protocol.commands import EngineSettings
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.errors import AnabranchError, Unavailable
from anabranch.shell.server.service import Absence
from anabranch.shell.telemetry.metrics import Labelled

_STARTING = "it is starting: nodes are served one after the other"
_BUGS = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError)
"""What a journal may hold that a machine wasn't made for: one log's trouble isn't the others'."""
RETRY_S = 5.0
"""Between attempts to start a log whose folder can't be read or written."""


@dataclass(frozen=True, slots=True)
class _Trouble:
    """Of a log that isn't served."""

    settings: EngineSettings
    error: AnabranchError
    reason: str


class EmbeddedLogs:
    """All that the catalogue names as embedded in this process."""

    def __init__(
        self, metadata: Metadata, around: Surroundings, engines: Iterable[EmbeddedEngine]
    ) -> None:
        self._metadata = metadata
        self._around = around
        self._engines = {each.name: each for each in engines}
        self._starter = Starter(around, self._machine_failed)
        self._logs: dict[LogFolder, RunningLog] = {}
        self._troubles: dict[LogFolder, _Trouble] = {}
        self._failed: dict[LogFolder, str] = {}
        """Logs of which a machine has failed, and why: they aren't started again."""
        self._beside: dict[LogFolder, asyncio.Task[None]] = {}
        """Starts of logs that wait for other systems."""
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.failed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Done when whoever starts and stops them has failed; says why."""

    def start(self) -> None:
        for engine in self._engines.values():
            for protocol in engine.protocols:
                self._around.server.expect(protocol)
        self._task = asyncio.get_running_loop().create_task(self._follow())
        self._task.add_done_callback(self._followed)

    async def stop(self) -> None:
        """Machines end as they would by a crash, but for those whose acknowledged records are in no
        journal yet: they drain.
        """
        assert self._task is not None, "it was started"
        going_on = (self._task, *self._beside.values())
        for task in going_on:
            task.cancel()
        await asyncio.gather(*going_on, return_exceptions=True)
        await asyncio.gather(*(each.stop() for each in self._logs.values()))
        self._logs.clear()

    def changed(self) -> None:
        """Called whenever the catalogue has changed, before anybody is told that it has: a quota
        holds once it is acknowledged.
        """
        self._limit_appends()
        self._explain_new(self._wanted())
        self._news.set()

    def obstacle(self) -> str | None:
        """Why not every log that the catalogue names can be used. A black box that is away keeps
        nobody from the other logs: its own log's clients are told.
        """
        for folder, settings in self._wanted().items():
            if folder in self._failed:
                return f"log {folder.log}: {self._failed[folder]}"
            each = self._logs.get(folder)
            if each is None and settings.black_box:
                continue
            if each is None:
                trouble = self._troubles.get(folder)
                reason = trouble.reason if trouble else _STARTING
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
                    folder=folders.log_path(folder),
                )

    async def _catch_up(self) -> None:
        wanted = self._wanted()
        await self._stop_failed(wanted)
        known = {**self._logs, **self._failed}
        for folder in known.keys() - wanted.keys() - self._beside.keys():
            await self._delete(folder)
        self._explain_new(wanted)
        for folder, settings in wanted.items():
            if folder in self._logs or folder in self._failed or folder in self._beside:
                continue
            if settings.black_box:
                self._start_beside(folder, settings)
            else:
                await self._start(folder, settings)
        for folder in self._troubles.keys() - wanted.keys() - self._beside.keys():
            self._explain(folder, self._troubles.pop(folder).settings, None)

    def _start_beside(self, folder: LogFolder, settings: EngineSettings) -> None:
        def over(task: asyncio.Task[None]) -> None:
            del self._beside[folder]
            # Of one that was deleted meanwhile, or failed as soon as it ran, nothing else is told.
            if folder in self._failed or folder not in self._wanted():
                self._news.set()
            if not task.cancelled() and task.exception() is not None:
                self._followed(task)

        task = asyncio.get_running_loop().create_task(self._start(folder, settings))
        self._beside[folder] = task
        task.add_done_callback(over)

    async def _start(self, folder: LogFolder, settings: EngineSettings) -> None:
        quota = self._replica.forest.quotas.get(folder.id)
        engine = self._engines[folder.engine]
        try:
            self._logs[folder] = await self._starter.start(engine, folder, settings, quota)
        except AnabranchError as error:
            self._complain(folder, settings, error)
        except _BUGS as error:
            self._give_up(folder, settings, error)
        else:
            self._troubles.pop(folder, None)
            self._around.log.info("serving a log", log=folder.log, nodes=machines(folder, settings))
            self._limit_appends()

    def _limit_appends(self) -> None:
        quotas = self._replica.forest.quotas
        for folder, each in self._logs.items():
            each.append_limits.set(quotas.get(folder.id))

    def _explain_new(self, wanted: dict[LogFolder, EngineSettings]) -> None:
        """Logs start one after the other: until its turn, a log's clients are told to wait."""
        known = {*self._logs, *self._failed, *self._troubles}
        for folder in wanted.keys() - known:
            starting = Unavailable(f"log {folder.log}", _STARTING)
            self._troubles[folder] = _Trouble(wanted[folder], starting, _STARTING)
            self._explain(folder, wanted[folder], starting)

    def _complain(self, folder: LogFolder, settings: EngineSettings, error: AnabranchError) -> None:
        known = self._troubles.get(folder)
        if known is None or known.reason != error.message:
            self._around.log.error(
                "can't serve a log", log=folder.log, code=error.code, reason=error.message
            )
        self._troubles[folder] = _Trouble(settings, error, error.message)
        self._explain(folder, settings, error)

    def _explain(
        self, folder: LogFolder, settings: EngineSettings, error: AnabranchError | None
    ) -> None:
        """To clients that ask for nodes which aren't served; None: these nodes are expected no
        more.
        """
        absence = error and Absence(self._around.authority, error)
        for protocol, node in self._engines[folder.engine].addresses(folder, settings):
            self._around.server.explain(protocol, node, absence)

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
        self._around.log.info(folder.removal, log=folder.log)

    def _machine_failed(self, folder: LogFolder, reason: str) -> None:
        """The whole log stops: what the others go on with might contradict what that one knew."""
        self._failed.setdefault(folder, reason)
        self._news.set()


def _by_kind(
    machines: "Iterator[tuple[str, str, NodeMachine]]", read: Callable[[NodeMachine], object]
) -> dict[str, Labelled]:
    found: dict[str, Labelled] = {}
    for log, node, machine in machines:
        labelled = found.setdefault(machine.kind, Labelled(("log", "node")))
        labelled.rows.append(((log, node), read(machine)))
    return found
