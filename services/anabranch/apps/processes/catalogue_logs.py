"""The logs of other engines that `anabranch up --processes` runs: each node is a process.

A log that is created in the cluster gets its processes, and then its addresses in the catalogue;
one that is deleted loses both. What a log has is below the cluster's folder, as in `anabranch up`,
and so are the notes of how far its journals went: a process refuses one that is shorter, and a log
that misses too many of them isn't started.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from anabranch.apps.belfast.engine import BELFAST_JOURNALS
from anabranch.apps.embedded.folders import Folders, LogFolder, holds_journal
from anabranch.apps.embedded.losses import JournalRules, group_of, judge, way_out
from anabranch.apps.erwin.engine import ERWIN_JOURNALS
from anabranch.apps.lazy.engine import LAZY_JOURNALS
from anabranch.apps.processes.catalogue import Catalogue
from anabranch.apps.processes.local_log import (
    FILES,
    SEQUENCER,
    LocalLog,
    LogShape,
    Node,
    Promise,
    settle,
)
from anabranch.apps.processes.supervisor import Listener
from anabranch.core.bolt.protocol.commands import FRONT, EngineSettings
from anabranch.core.errors import AnabranchError, BadRequest, StorageFailed
from anabranch.core.quota import Quota
from anabranch.shell.journal.disk import storage, sync_directory
from anabranch.shell.telemetry.log import Log

JOURNALS: dict[str, JournalRules] = {
    "belfast": BELFAST_JOURNALS,
    "erwin": ERWIN_JOURNALS,
    FRONT: LAZY_JOURNALS,
}
SERVED = "served"
"""In the folder of a log whose every node has been ready once: each of them has a journal."""


class CatalogueLogs:
    """Used by one thread: processes end with the thread that started them."""

    def __init__(
        self,
        folder: Path,
        url: str,
        log: Log,
        *,
        etcd: Sequence[str] = (),
        accept_loss: bool = False,
        kafka_file: str = "",
    ) -> None:
        """`etcd`: where controllers are elected. `accept_loss`: begin logs anew whose journals are
        gone, instead of not starting them. `kafka_file`: says how Kafka is reached.
        """
        self._etcd = etcd
        self._kafka_file = kafka_file
        self._url = url
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
            each: self._local(each, LogShape())
            for each in sorted({*self._folders.found(), *self._folders.noted()})
            if each.engine in JOURNALS and self._may_start(each)
        }
        self._waiting: set[LogFolder] = set(self._logs)
        """Those of which not every process was found ready yet."""
        self._quotas: dict[LogFolder, Quota | None] = {}
        """As the processes were told."""
        self._obstacles: dict[str, str] = {}
        """By process: what was said last of why its log isn't served."""

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
        for folder in wanted.keys() & self._logs.keys():
            if folder.engine != FRONT and wanted[folder].shards > len(self._logs[folder].shards):
                self._grow(folder, wanted[folder].shards)
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
                layout = local.layout
                where = layout.url if layout.engine == "belfast" else layout.members
                self._log.info("serving a log", log=folder.log, url=where)
            elif _promised(local).black_box:
                self._say_what_is_away(folder, local)

    def _begin(self, folder: LogFolder, settings: EngineSettings) -> None:
        shape = LogShape(settings.sequencers, settings.shards, settings.replicas)
        if folder.engine == FRONT:
            shape = LogShape(settings.sequencers, 0)
        try:
            if folder in self._anew:
                aside = self._folders.give_up(folder)
                self._log.warning("a log begins anew", log=folder.log, put_aside=aside)
            self._folders.make(folder)
            promise = _promise(folder, settings)
            local = self._logs[folder] = self._local(folder, shape, promise)
        except AnabranchError as error:
            self._log.error("can't serve a log", log=folder.log, reason=error.message)
            return
        self._anew.discard(folder)
        self._waiting.add(folder)
        _launch(local)

    def _grow(self, folder: LogFolder, shards: int) -> None:
        """More shards, which join by themselves. Until their processes are ready not every node of
        the log has a journal.
        """
        local = self._logs[folder]
        try:
            self._unmark_served(folder)
            layout = settle(self._path(folder), LogShape(shards=shards), engine=folder.engine)
        except AnabranchError as error:
            self._log.error("can't add shards", log=folder.log, reason=error.message)
            return
        added = local.grow(layout)
        self._quotas.pop(folder, None)
        self._waiting.add(folder)
        for node in added:
            node.launch()
        self._log.info("added shards", log=folder.log, shards=shards)

    def _end(self, folder: LogFolder) -> None:
        local = self._logs.pop(folder)
        local.stop()
        self._quotas.pop(folder, None)
        self._waiting.discard(folder)
        try:
            self._folders.delete(folder)
            if self._etcd and folder.engine == "erwin":
                forget_configurations(self._etcd, local.layout.cluster)
        except AnabranchError as error:
            self._log.warning("can't delete a log", log=folder.log, reason=error.message)
        self._log.info(folder.removal, log=folder.log)

    def _limit_appends(self, quotas: Mapping[LogFolder, Quota | None]) -> None:
        """Tell processes of quotas that have changed, and of each log's once after a restart."""
        for folder in self._logs.keys() & quotas.keys():
            if folder not in self._quotas or self._quotas[folder] != quotas[folder]:
                self._quotas[folder] = quotas[folder]
                self._logs[folder].limit_appends(folder.log, quotas[folder])

    def _say_what_is_away(self, folder: LogFolder, local: LocalLog) -> None:
        """Once for each reason: a shard waits for its black box as long as it takes."""
        for node in local.replicas:
            reason = "" if node.ready else node.obstacle
            if reason and reason != self._obstacles.get(node.name):
                self._obstacles[node.name] = reason
                self._log.warning("a log waits", log=folder.log, process=node.name, reason=reason)

    def _mark_served(self, folder: LogFolder) -> None:
        """Durably, and before clients find the log: from here on journals may hold something."""
        path = self._path(folder)
        with storage(str(path)):
            (path / SERVED).touch()
            sync_directory(str(path))

    def _unmark_served(self, folder: LogFolder) -> None:
        path = self._path(folder)
        with storage(str(path)):
            (path / SERVED).unlink(missing_ok=True)
            sync_directory(str(path))

    def _may_start(self, folder: LogFolder) -> bool:
        """Are enough journals there for a log's nodes to go on from, or to fill the others? False
        also for a log that was never made, or is given up.
        """
        file, notes = (
            self._path(folder) / FILES[folder.engine],
            Path(self._folders.notes_path(folder)),
        )
        if not file.exists():
            noted = [each for each in self._folders.nodes(folder) if self._reached(folder, each)]
            if noted:
                self._miss(folder, _gone([str(file)]))
            return False
        try:
            prefix, local = f"{folder.log}-", self._local(folder, LogShape())
        except BadRequest as error:
            self._miss(folder, error.message)
            return False
        nodes = [each.name.removeprefix(prefix) for each in local.processes]
        promise = _promised(local)
        if promise.durability == "memory":
            # They keep no journals: a controller goes by their lives.
            nodes = [each for each in nodes if group_of(each) != SEQUENCER]
        if promise.black_box:
            # What shards miss in their black boxes they see themselves.
            nodes = [each for each in nodes if group_of(each) == SEQUENCER]
        gone = [each for each in nodes if self._is_gone(folder, each)]
        found = judge(nodes, gone, JOURNALS[folder.engine])
        if found.lost:
            self._miss(folder, _gone(str(self._journal(folder, node)) for node in found.lost))
            return False
        for node in found.refilled:
            if (notes / node).exists():
                self._folders.forget(folder, node)
        return True

    def _miss(self, folder: LogFolder, why: str) -> None:
        """Say it, or begin anew if that is what was asked for."""
        todo = way_out(self._folders, folder, "anabranch up --processes")
        reason = f"{why}. {todo}"
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

    def _local(
        self, folder: LogFolder, shape: LogShape, promise: Promise | None = None
    ) -> LocalLog:
        path, notes = self._path(folder), Path(self._folders.notes_path(folder))
        layout = settle(path, shape, engine=folder.engine, promise=promise)
        told: dict[str, str] = {}
        if folder.engine == FRONT:
            told = {"ANABRANCH_SERVICE": self._url, "ANABRANCH_LOG_ID": str(folder.id)}
        return LocalLog(
            path,
            layout,
            settings=told,
            prefix=f"{folder.log}-",
            notes=notes,
            etcd=self._etcd,
            kafka_file=self._kafka_file,
        )


def _gone(what: Iterable[str]) -> str:
    return f"these are gone: {', '.join(what)}"


def _promised(local: LocalLog) -> Promise:
    return local.layout.promise or Promise()


def _promise(folder: LogFolder, settings: EngineSettings) -> Promise | None:
    if not settings.mode and folder.engine != FRONT:
        return None
    return Promise(settings.mode, settings.durability, settings.black_box)


def forget_configurations(etcd: Sequence[str], cluster: str) -> None:
    """Nothing of a log that was deleted stays in etcd: no other has its cluster's name."""
    from anabranch.shell.etcd.api.client import EtcdClient, prefix_end
    from anabranch.shell.etcd.api.settings import EtcdSettings
    from anabranch.shell.etcd.group.layout import Keys, controllers_of

    client = EtcdClient(EtcdSettings(endpoints=tuple(etcd)))
    try:
        prefix = Keys(controllers_of(cluster)).base
        client.delete(prefix, prefix_end(prefix))
    finally:
        client.close()


def _launch(local: LocalLog) -> None:
    for node in local.processes:
        node.launch()
