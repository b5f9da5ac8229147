"""Where a damaged journal can be cut, what that would cost, and the cutting."""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import msgspec

from anabranch.core.bolt.protocol.commands import CommitObject, decode_group
from anabranch.core.errors import AnabranchError, JournalCorrupt
from anabranch.core.storage import journal
from anabranch.core.storage.journal import HEADER_BYTES, SEGMENT
from anabranch.ports import Disk
from anabranch.shell.journal.disk import RealDisk, make_directory, storage, sync_directory
from anabranch.shell.journal.replay import Replay, replay

OR_CUT = "put the file back from a back-up, or give up what follows (--cut-journal), as said below"
"""What to do about a journal that may be cut."""


class Cut(msgspec.Struct, frozen=True):
    """What is lost if the journal ends where it can no longer be read."""

    file: str
    offset: int
    kept: int
    """The last entry that is kept."""
    lost: int
    """Entries behind it that are known to have been written."""
    commands: dict[str, int]
    """What those of them held that can still be read, by kind."""
    records: int
    """Records whose places in their logs were in these, or that they held themselves."""


class Trimmed(RealDisk):
    """A journal's directory as it would look after a cut."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.gone: list[str] = []
        self.ends: dict[str, int] = {}

    def names(self) -> list[str]:
        return [name for name in super().names() if name not in self.gone]

    def read(self, name: str, bytes_max: int = -1, offset: int = 0) -> bytes:
        content = super().read(name, bytes_max, offset)
        return content[: max(0, self.ends[name] - offset)] if name in self.ends else content

    def cut(self, name: str, offset: int) -> None:
        """A segment that fails at the same place again is of no use at all."""
        whole = offset < HEADER_BYTES or self.ends.get(name) == offset
        segments = [each for each in self.names() if each.endswith(SEGMENT)]
        self.gone += [each for each in segments if each > name or (whole and each == name)]
        self.ends = {each: end for each, end in self.ends.items() if each not in self.gone}
        if not whole:
            self.ends[name] = offset


def place_of(damage: JournalCorrupt) -> str:
    """Without the advice to run fsck."""
    facts = damage.facts
    return f"journal file {facts['path']} is damaged at byte {facts['offset']}: {facts['reason']}"


@dataclass(frozen=True, slots=True)
class Plan:
    """A cut that was tried on paper."""

    cut: Cut
    trimmed: Trimmed

    def perform(self, root: str, objects: str, unreferenced: list[str]) -> str:
        """Objects first: until the journal is cut, all this can be done again."""
        aside = _fresh(f"{root}/cut-{self.cut.kept + 1}")
        with storage(aside):
            for name in unreferenced:
                _move(f"{objects}/{name}", f"{aside}/objects/{name}")
            source = self.trimmed.where
            make_directory(f"{aside}/journal")
            for name in self.trimmed.ends:
                _copy(f"{source}/{name}", f"{aside}/journal/{name}")
            sync_directory(f"{aside}/journal")
            for name in reversed(self.trimmed.gone):
                _move(f"{source}/{name}", f"{aside}/journal/{name}")
        for name, end in self.trimmed.ends.items():
            file = self.trimmed.open(name)
            try:
                file.truncate(end)
                file.sync()
            finally:
                file.close()
        self.trimmed.sync()
        return aside


Contents = Callable[[bytes], Iterable[tuple[str, int]]]
"""What is in an entry: of each part its kind, and how many records."""


def commands_of(entry: bytes) -> Iterator[tuple[str, int]]:
    """Of the catalogue's journal."""
    for each in decode_group(entry):
        command, records = each.command, 0
        if isinstance(command, CommitObject):
            records = sum(batch.count for row in command.rows for batch in row.batches)
        yield type(command).__name__, records


def plan_cut(
    disk: Disk,
    cluster: str,
    damage: JournalCorrupt,
    contents: Contents = commands_of,
    reached: int = 0,
) -> tuple[Plan, Replay]:
    """The longest beginning that can be replayed; raises the damage again if nothing can be.

    `reached`: the last entry that is known to have been written, from outside.
    """
    trimmed = Trimmed(disk.where)
    trimmed.gone += _unreadable_snapshots(disk, cluster)
    while True:
        try:
            kept = replay(trimmed, cluster)
            break
        except JournalCorrupt as found:
            name = os.path.basename(str(found.facts["path"]))
            offset = found.facts["offset"]
            if not name.endswith(SEGMENT) or name in trimmed.gone:
                raise damage from found
            assert isinstance(offset, int)
            trimmed.cut(name, offset)
    lost = [
        entry
        for name in (*trimmed.ends, *(name for name in trimmed.gone if name.endswith(SEGMENT)))
        for entry in _readable(disk, cluster, name, trimmed.ends.get(name, 0))
    ]
    return Plan(_cost(damage, trimmed, kept, lost, contents, reached), trimmed), kept


def _unreadable_snapshots(disk: Disk, cluster: str) -> list[str]:
    """The name of a snapshot proves entries that a cut gives up, if it can't be read itself."""
    unreadable: list[str] = []
    for name in disk.names():
        if journal.snapshot_index(name) is not None:
            try:
                journal.read_snapshot(disk.read(name), name, cluster)
            except JournalCorrupt:
                unreadable.append(name)
    return unreadable


def _cost(
    damage: JournalCorrupt,
    trimmed: Trimmed,
    kept: Replay,
    lost: list[tuple[int, bytes]],
    contents: Contents,
    reached: int,
) -> Cut:
    last = kept.first + len(kept.entries) - 1
    known = [reached, *(journal.snapshot_index(name) or 0 for name in trimmed.gone)]
    commands: dict[str, int] = {}
    records = 0
    for index, entry in lost:
        if index <= last:
            continue
        known.append(index)
        for kind, count in contents(entry):
            commands[kind] = commands.get(kind, 0) + 1
            records += count
    path, offset = str(damage.facts["path"]), damage.facts["offset"]
    assert isinstance(offset, int)
    return Cut(path, offset, last, max([last + 1, *known]) - last, commands, records)


def _readable(disk: Disk, cluster: str, name: str, offset: int) -> list[tuple[int, bytes]]:
    """Entries behind the damage, each with its index."""
    content = disk.read(name)
    try:
        header = journal.read_header(content, name, cluster)
    except AnabranchError:
        header = None
    if header is None:
        return []
    return [
        (group.first + at, entry)
        for group in journal.salvage(content, offset, header)
        for at, entry in enumerate(group.entries)
    ]


def _fresh(path: str) -> str:
    if not os.path.exists(path):
        return path
    turn = 2
    while os.path.exists(f"{path}-{turn}"):
        turn += 1
    return f"{path}-{turn}"


def _move(source: str, target: str) -> None:
    make_directory(os.path.dirname(target))
    os.rename(source, target)
    sync_directory(os.path.dirname(target))
    sync_directory(os.path.dirname(source))


def _copy(source: str, target: str) -> None:
    with open(source, "rb") as whole, open(target, "wb") as copy:
        shutil.copyfileobj(whole, copy)
        copy.flush()
        os.fsync(copy.fileno())
