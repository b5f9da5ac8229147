"""One embedded log that runs: its machines, each with a journal and a host of its own.

Letters between a log's machines go in memory. Clients reach the machines through the server of the
process, by their names `/LOG/ROLE`.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from anabranch.apps.embedded.engine import EmbeddedEngine, LogContext, Node, Surroundings
from anabranch.apps.embedded.folders import Folders, LogFolder
from anabranch.apps.embedded.log_door import LogDoor
from anabranch.apps.embedded.losses import JournalRules, losses, refusal
from anabranch.apps.node_machine import NodeMachine, node_journal
from anabranch.core.bolt.front.questions import LOG
from anabranch.core.bolt.protocol.commands import EngineSettings
from anabranch.core.quota import Quota
from anabranch.ports import RecordJournal
from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.memory import MemoryJournal
from anabranch.shell.journal.watermark import NotedRecordJournal
from anabranch.shell.peers.exchange import Exchange
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.append_limits import AppendLimits


@dataclass(frozen=True, slots=True)
class RunningLog:
    folder: LogFolder
    stack: AsyncExitStack
    """Ends all of it."""
    nodes: dict[str, NodeMachine]
    append_limits: AppendLimits
    draining: tuple[Host, ...]
    """Of nodes that hold acknowledged records in memory only."""

    async def stop(self) -> None:
        """In order: what only memories hold is ordered first, as far as its shards take it."""
        await asyncio.gather(*(host.drain() for host in self.draining))
        await self.stack.aclose()


class Starter:
    """Starts logs of any engine."""

    def __init__(self, around: Surroundings, on_failed: Callable[[LogFolder, str], None]) -> None:
        """`on_failed` is called when a machine of a log has failed, with the reason."""
        self._around = around
        self._on_failed = on_failed
        self._far = ThreadPoolExecutor(around.limits.embedded_nodes_max, "far-journal")
        """For journals in other systems. One that hangs must not take a thread that the start of
        another log waits for.
        """

    async def start(
        self,
        engine: EmbeddedEngine,
        folder: LogFolder,
        settings: EngineSettings,
        quota: Quota | None,
    ) -> RunningLog:
        """Raises AnabranchError if a journal is gone, can't be read or can't be written."""
        around, loop = self._around, asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            if around.folders is not None:
                await asyncio.to_thread(
                    self._see_to_losses, around.folders, folder, engine.journals
                )
                await asyncio.to_thread(around.folders.make, folder)
            limits = AppendLimits(folder.log, around.limits, around.now, copies=engine.copies)
            limits.set(quota)
            exchange, machines, draining = Exchange(), dict[str, NodeMachine](), list[Host]()
            if engine.asks_its_log:
                door = LogDoor(*around.bolt, exchange)
                stack.callback(door.close)
                exchange.open_door(LOG, door.receive)
            for node in engine.nodes(LogContext(folder, settings, around, limits)):
                opened = node.journal or partial(self._journal, folder, node.name)
                threads = None if node.journal is None else self._far
                journal = await loop.run_in_executor(threads, opened)
                # A journal far away must not be left open by a start that fails.
                if node.journal is not None:
                    stack.push_async_callback(loop.run_in_executor, threads, journal.close)
                recovering = loop.run_in_executor(threads, node.recover, journal)
                machine = machines[node.name] = await recovering
                if node.journal is None:
                    stack.callback(journal.close)
                host = self._run(folder, node.name, machine, journal, exchange, stack)
                self._serve(node, host, stack)
                if node.drains:
                    draining.append(host)
            return RunningLog(folder, stack.pop_all(), machines, limits, tuple(draining))

    def _see_to_losses(self, folders: Folders, folder: LogFolder, rules: JournalRules) -> None:
        """A journal that is gone isn't taken for a new one's, unless others of its log fill it.
        Raises JournalBehind.
        """
        log, found = self._around.log, losses(folders, folder, rules)
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

    def _serve(self, node: Node, host: Host, stack: AsyncExitStack) -> None:
        """To clients that ask for this node by its name."""
        if node.service is None:
            return
        service = node.service(host)
        assert service.name == node.name, "clients ask for it by the node's name"
        self._around.server.serve(service)
        stack.push_async_callback(self._around.server.withdraw, service)

    def _journal(self, folder: LogFolder, node: str) -> RecordJournal:
        around = self._around
        folders, name = around.folders, node.rpartition("/")[2]
        if folders is None:
            return MemoryJournal()
        reached = folders.reached(folder, name)
        journal = node_journal(RealDisk(folders.path(folder, name)), around.cluster, reached)
        return NotedRecordJournal(journal, folders.note(folder, name), time.monotonic)

    def _machine_failed(self, folder: LogFolder, failed: "asyncio.Future[str]") -> None:
        self._on_failed(folder, failed.result())
