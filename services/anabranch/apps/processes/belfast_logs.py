"""The Belfast logs of `anabranch up --processes`: each sequencer and each replica a process.

A log that is created in the cluster gets its processes, and then its addresses in the catalogue;
one that is deleted loses both. What a log has is below the cluster's folder, as in `anabranch up`,
and so are the notes of how far its journals went: a process refuses one that is shorter, and a log
that misses too many of them isn't started.
"""

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from anabranch.apps.belfast.engine import BELFAST_JOURNALS
from anabranch.apps.embedded.folders import Folders, LogFolder, holds_journal
from anabranch.apps.embedded.losses import judge, way_out
from anabranch.apps.processes.belfast import FILE, BelfastShape, LocalBelfast, Node, settle
from anabranch.apps.processes.catalogue import Catalogue
from anabranch.apps.processes.supervisor import Listener
from anabranch.core.bolt.protocol.commands import EngineSettings
from anabranch.core.errors import AnabranchError, StorageFailed
from anabranch.core.quota import Quota
from anabranch.shell.journal.disk import storage, sync_directory
from anabranch.shell.telemetry.log import Log

SERVED = "served"
"""In the folder of a log whose every node has been ready once: each of them has a journal."""


class BelfastLogs:
    """Used by one thread: processes end with the thread that started them."""

    def __init__(self, folder: Path, url: str, log: Log, *, accept_loss: bool = False) -> None:
        """`accept_loss`: begin logs anew whose journals are gone, instead of not starting them."""
        self._folders = Folders(str(folder))
        self._catalogue = Catalogue(url, log)
        self._log = log
        self._unserved: set[LogFolder] = set()
        """Logs whose journals are gone: started, they would begin again as empty ones."""
        self._anew: set[LogFolder] = set()
        """Logs to give up and to begin as empty ones, once the catalogue says which nodes they
        have: until then what is left stays where it is.
        """
        self._accept_loss = accept_loss
        self._logs = {
            each: self._local(each, BelfastShape())
            for each in sorted({*self._folders.found(), *self._folders.noted()})
            if each.engine == "belfast" and self._may_start(each)
        }
        self._waiting: set[LogFolder] = set(self._logs)
        """Those of which not every process was found ready yet."""
        self._quotas: dict[LogFolder, Quota | None] = {}
        """As the shards were told."""

    def start(self) -> None:
        """Those that were here before run again; the catalogue tells of new ones."""
        self._folders.sweep()
        for local in self._logs.values():
            _launch(local)
        self._catalogue.start()

    def stop(self) -> None:
        self._catalogue.stop()
        for local in self._logs.values():
            local.stop()

    def kill(self) -> None:
        self._catalogue.stop()
        for local in self._logs.values():
            local.kill()

    @property
    def processes(self) -> list[Node]:
        return [node for local in self._logs.values() for node in local.processes]

    @property
    def listeners(self) -> list[Listener]:
        return [each for local in self._logs.values() for each in local.listeners]

    def tend(self) -> None:
        """Start and end what the catalogue says by now."""
        wanted = self._catalogue.wanted
        if wanted is None:
            return
        for folder in wanted.keys() - self._logs.keys() - self._unserved:
            self._begin(folder, wanted[folder])
        self._catalogue.ask_about(frozenset(self._logs) | self._anew)
        for folder in self._catalogue.deleted & self._logs.keys():
            self._end(folder)
        self._anew -= self._catalogue.deleted
        self._limit_appends(self._catalogue.quotas)
        for folder in [each for each in self._waiting if each in wanted]:
            local = self._logs[folder]
            if all(node.ready for node in local.processes):
                addresses = tuple(pair.address for pair in local.layout.sequencers)
                place = replace(wanted[folder], addresses=addresses, cluster=local.layout.cluster)
                self._mark_served(folder)
                self._catalogue.place(folder, place)
                self._waiting.discard(folder)
                self._log.info("serving a log", log=folder.log, url=local.layout.url)

    def _begin(self, folder: LogFolder, settings: EngineSettings) -> None:
        shape = BelfastShape(settings.sequencers, settings.shards, settings.replicas)
        try:
            if folder in self._anew:
                aside = self._folders.give_up(folder)
                self._log.warning("a log begins anew", log=folder.log, put_aside=aside)
            self._folders.make(folder)
            local = self._logs[folder] = self._local(folder, shape)
        except AnabranchError as error:
            self._log.error("can't serve a log", log=folder.log, reason=error.message)
            return
        self._anew.discard(folder)
        self._waiting.add(folder)
        _launch(local)

    def _end(self, folder: LogFolder) -> None:
        self._logs.pop(folder).stop()
        self._quotas.pop(folder, None)
        self._waiting.discard(folder)
        try:
            self._folders.delete(folder)
        except AnabranchError as error:
            self._log.warning("can't delete a log", log=folder.log, reason=error.message)
        self._log.info("deleted a log", log=folder.log)

    def _limit_appends(self, quotas: Mapping[LogFolder, Quota | None]) -> None:
        """Tell shards of quotas that have changed, and of each log's once after a restart."""
        for folder in self._logs.keys() & quotas.keys():
            if folder not in self._quotas or self._quotas[folder] != quotas[folder]:
                self._logs[folder].limit_appends(folder.log, quotas[folder])
                self._quotas[folder] = quotas[folder]

    def _mark_served(self, folder: LogFolder) -> None:
        """Durably, and before clients find the log: from here on journals may hold something."""
        path = self._path(folder)
        with storage(str(path)):
            (path / SERVED).touch()
            sync_directory(str(path))

    def _may_start(self, folder: LogFolder) -> bool:
        """Are enough journals there for a log's nodes to go on from, or to fill the others? False
        also for a log that was never made, or is given up.
        """
        file, notes = self._path(folder) / FILE, Path(self._folders.notes_path(folder))
        if not file.exists():
            noted = [each for each in self._folders.nodes(folder) if self._reached(folder, each)]
            if noted:
                self._miss(folder, [str(file)])
            return False
        prefix = f"{folder.log}-"
        processes = self._local(folder, BelfastShape()).processes
        nodes = [each.name.removeprefix(prefix) for each in processes]
        gone = [each for each in nodes if self._is_gone(folder, each)]
        found = judge(nodes, gone, BELFAST_JOURNALS)
        if found.lost:
            self._miss(folder, [str(self._journal(folder, node)) for node in found.lost])
            return False
        for node in found.refilled:
            if (notes / node).exists():
                self._folders.forget(folder, node)
        return True

    def _miss(self, folder: LogFolder, what: list[str]) -> None:
        """Say it, or begin anew if that is what was asked for."""
        todo = way_out(self._folders, folder, "anabranch up --processes")
        reason = f"these are gone: {', '.join(what)}. {todo}"
        if not self._accept_loss:
            self._log.error("can't serve a log", log=folder.log, reason=reason)
            self._unserved.add(folder)
            return
        self._log.warning("a log will begin anew", log=folder.log, reason=reason)
        self._anew.add(folder)

    def _is_gone(self, folder: LogFolder, node: str) -> bool:
        held = (self._path(folder) / SERVED).exists() or self._reached(folder, node)
        return held and not holds_journal(str(self._journal(folder, node)))

    def _reached(self, folder: LogFolder, node: str) -> bool:
        """Is it noted that its journal held something, or may it have?"""
        try:
            return self._folders.reached(folder, node) > 0
        except StorageFailed:
            return True

    def _journal(self, folder: LogFolder, node: str) -> Path:
        return self._path(folder) / f"{folder.log}-{node}" / "data" / "journal"

    def _path(self, folder: LogFolder) -> Path:
        return Path(self._folders.log_path(folder))

    def _local(self, folder: LogFolder, shape: BelfastShape) -> LocalBelfast:
        path, notes = self._path(folder), Path(self._folders.notes_path(folder))
        return LocalBelfast(path, settle(path, shape), prefix=f"{folder.log}-", notes=notes)


def _launch(local: LocalBelfast) -> None:
    for node in local.processes:
        node.launch()
