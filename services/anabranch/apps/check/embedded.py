"""The journals of a data directory's embedded logs, read through as their next start will do."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from anabranch.apps.check.cut import OR_CUT, Cut, Plan, place_of, plan_cut
from anabranch.apps.embedded.folders import Folders, LogFolder
from anabranch.apps.embedded.losses import group_of, judge, refusal, way_out
from anabranch.apps.engines import JOURNAL_RULES
from anabranch.core.bolt.state.audit import Fault
from anabranch.core.errors import AnabranchError, JournalCorrupt, StorageFailed
from anabranch.core.replication.entries import Item, decode_entry
from anabranch.shell.journal.disk import RealDisk
from anabranch.shell.journal.replay import groups, look
from anabranch.shell.journal.watermark import Watermark

MISSING, DAMAGED = "node-journal-missing", "node-journal-corrupt"


@dataclass(frozen=True, slots=True)
class NodeCut:
    """A cut of one node's journal that was tried on paper."""

    folder: LogFolder
    node: str
    plan: Plan


class EmbeddedJournals:
    """Below one data directory."""

    def __init__(self, data: str, cluster: str) -> None:
        self._folders = Folders(data)
        self._cluster = cluster
        self._cuts: list[NodeCut] = []

    @property
    def cuts(self) -> list[Cut]:
        """What cutting those would cost that nobody can fill again."""
        return [each.plan.cut for each in self._cuts]

    def faults(self, looks: int) -> list[Fault]:
        """Everything that keeps a sequencer or a replica from recovering. `looks`: how often a
        journal is read that a running server may be changing meanwhile.
        """
        assert looks > 0
        self._cuts.clear()
        folders = sorted({*self._folders.found(), *self._folders.noted()})
        return [fault for folder in folders for fault in self._faults(folder, looks)]

    def cut(self) -> list[str]:
        """Go back to what could be replayed. Returns where the rest of each is put aside."""
        done: list[str] = []
        for each in self._cuts:
            done.append(each.plan.perform(self._folders.data, "", []))
            note = self._folders.note(each.folder, each.node)
            note.create(Watermark(each.plan.cut.kept, lives=0))
        return done

    def _faults(self, folder: LogFolder, looks: int) -> Iterator[Fault]:
        nodes = self._folders.nodes(folder)
        errors = {node: self._error(folder, node, looks) for node in nodes}
        found = {node: error for node, error in errors.items() if error is not None}
        refilled = judge(nodes, found, JOURNAL_RULES[folder.engine]).refilled
        peers = Counter(map(group_of, nodes))
        for node, error in found.items():
            others_fill_it, count = node in refilled, peers[group_of(node)]
            yield self._fault(folder, node, error, others_fill_it=others_fill_it, peers=count)

    def _fault(
        self,
        folder: LogFolder,
        node: str,
        error: AnabranchError,
        *,
        others_fill_it: bool,
        peers: int,
    ) -> Fault:
        where, path = f"{folder.log}/{node}", self._folders.path(folder, node)
        if self._folders.is_gone(folder, node):
            if others_fill_it:
                reason = f"{path} is gone: the next start fills it again from the others"
                return Fault(MISSING, where, reason)
            return Fault(MISSING, where, refusal(self._folders, folder, (node,)).message)
        if not isinstance(error, JournalCorrupt):
            return Fault(error.code, where, error.message)
        if others_fill_it:
            todo = f"stop the server and remove {path}: the next start fills it from the others"
        elif peers == 1 and self._plan(folder, node, error):
            todo = OR_CUT
        else:
            todo = f"{way_out(self._folders, folder)}; remove {path} first"
        return Fault(DAMAGED, where, f"{place_of(error)}. What to do: {todo}")

    def _plan(self, folder: LogFolder, node: str, damage: JournalCorrupt) -> bool:
        """Of a cut, if the node has promised nothing to others that the cut would break."""
        if not JOURNAL_RULES[folder.engine].may_cut(group_of(node)):
            return False
        disk = RealDisk(self._folders.path(folder, node))
        try:
            reached = self._folders.reached(folder, node)
            plan, _ = plan_cut(disk, self._cluster, damage, _items_of, reached)
        except (JournalCorrupt, StorageFailed):
            return False
        if not plan.cut.kept:
            return False
        self._cuts.append(NodeCut(folder, node, plan))
        return True

    def _error(self, folder: LogFolder, node: str, looks: int) -> AnabranchError | None:
        for left in reversed(range(looks)):
            try:
                reached = self._folders.reached(folder, node)
                if self._folders.is_gone(folder, node):
                    raise refusal(self._folders, folder, (node,))
                self._read(folder, node, reached)
            except AnabranchError as error:
                if not left:
                    return error
            else:
                return None
        raise AssertionError("every look but the last is repeated")

    def _read(self, folder: LogFolder, node: str, reached: int) -> None:
        path = self._folders.path(folder, node)
        if self._folders.has_journal(folder, node):
            disk = RealDisk(path)
            for _ in groups(disk, look(disk, self._cluster, reached)):
                pass


def _items_of(entry: bytes) -> Iterable[tuple[str, int]]:
    """Of a replica's journal."""
    try:
        found = decode_entry(entry)
    except msgspec.DecodeError:
        return []
    records = found.count if isinstance(found, Item) and found.batch else 0
    return [(type(found).__name__, records)]
