"""The Belfast logs of `anabranch up --processes`: each sequencer and each replica a process.

A log that is created in the cluster gets its processes, and then its addresses in the catalogue;
one that is deleted loses both. What a log has is below the cluster's folder, as in `anabranch up`.
"""

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from anabranch.apps.belfast.engine import BELFAST_JOURNALS
from anabranch.apps.embedded.folders import Folders, LogFolder
from anabranch.apps.embedded.losses import judge
from anabranch.apps.processes.belfast import FILE, BelfastShape, LocalBelfast, Node, settle
from anabranch.apps.processes.catalogue import Catalogue
from anabranch.apps.processes.supervisor import Listener
from anabranch.core.bolt.protocol.commands import EngineSettings
from anabranch.core.errors import AnabranchError
from anabranch.core.quota import Quota
from anabranch.core.storage.journal import SEGMENT
from anabranch.shell.journal.disk import storage, sync_directory
from anabranch.shell.telemetry.log import Log

SERVED = "served"
"""In the folder of a log whose every node has been ready once: each of them has a journal."""


class BelfastLogs:
    """Used by one thread: processes end with the thread that started them."""

    def __init__(self, folder: Path, url: str, log: Log) -> None:
        self._folders = Folders(str(folder))
        self._catalogue = Catalogue(url, log)
        self._log = log
        self._unserved: set[LogFolder] = set()
        """Logs whose journals are gone: started, they would begin again as empty ones."""
        self._logs = {
            each: self._local(each, BelfastShape())
            for each in self._folders.found()
            if each.engine == "belfast"
            and (self._path(each) / FILE).exists()
            and self._is_whole(each)
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
        self._catalogue.ask_about(frozenset(self._logs))
        for folder in self._catalogue.deleted & self._logs.keys():
            self._end(folder)
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
            self._folders.make(folder)
            local = self._logs[folder] = self._local(folder, shape)
        except AnabranchError as error:
            self._log.error("can't serve a log", log=folder.log, reason=error.message)
            return
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

    def _is_whole(self, folder: LogFolder) -> bool:
        """Are enough journals there for their nodes to go on from, or to fill the others?"""
        path = self._path(folder)
        if not (path / SERVED).exists():
            return True
        nodes = [node.name for node in self._local(folder, BelfastShape()).processes]
        gone = [name for name in nodes if not any((path / name).glob(f"data/journal/*{SEGMENT}"))]
        within = f"{folder.log}-"
        names = (name.removeprefix(within) for name in nodes)
        lost = judge(names, {name.removeprefix(within) for name in gone}, BELFAST_JOURNALS).lost
        if lost:
            where = ", ".join(str(path / f"{within}{name}" / "data") for name in sorted(lost))
            reason = f"journals are gone: {where}. Put {path} back from a back-up, and start again"
            self._log.error("can't serve a log", log=folder.log, reason=reason)
            self._unserved.add(folder)
        return not lost

    def _path(self, folder: LogFolder) -> Path:
        return Path(self._folders.log_path(folder))

    def _local(self, folder: LogFolder, shape: BelfastShape) -> LocalBelfast:
        path = self._path(folder)
        return LocalBelfast(path, settle(path, shape), prefix=f"{folder.log}-")


def _launch(local: LocalBelfast) -> None:
    for node in local.processes:
        node.launch()
