"""`anabranch recover --data`: a new data directory from one whose journal is behind or gone."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import msgspec

from anabranch.apps.check.carry import carry
from anabranch.apps.check.fsck import Listing, listed
from anabranch.apps.check.journal_behind import latest_life
from anabranch.apps.check.sources import Directory
from anabranch.core.bolt.metadata.leader import replayed
from anabranch.core.bolt.protocol.commands import Entry
from anabranch.core.bolt.state.retention import referenced
from anabranch.core.bolt.state.salvage import Read, Salvage, read
from anabranch.core.bolt.state.state import State
from anabranch.core.errors import AnabranchError, BadRequest
from anabranch.core.limits import Limits
from anabranch.core.records.objects import ObjectName, object_id, split_id
from anabranch.core.types import ObjectId
from anabranch.ports import StoredObject
from anabranch.shell.journal.data_dir import DataDir, holds_something
from anabranch.shell.journal.disk import RealDisk, make_directory, storage, sync_directory
from anabranch.shell.journal.file_journal import FileJournal
from anabranch.shell.journal.watermark import Watermark, WatermarkFile
from anabranch.shell.objects.accepted_losses import AcceptancesFile

GROUP_ENTRIES = 1_000
Progress = Callable[[int, int], None]
_encode = msgspec.msgpack.Encoder().encode


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What is in the new directory, and what isn't."""

    data: str
    into: str
    cluster: str
    entries: int
    """Journal entries that were there; what they say is as it was."""
    logs: int
    objects: int
    """Objects that the journal didn't know, and from which records were recovered."""
    records: int
    """Records in them."""
    repeated: int
    """Records left out because they are in another object as well."""
    recovered: list[str]
    """New logs, with the records of logs whose names aren't known."""
    given_up: list[str]
    """New logs, with records that `--accept-loss` gave up, or that were written after it if this is
    the journal that was given up. Whether each of them was acknowledged, nobody knows.
    """
    given_up_records: int
    """Records in them."""
    orphans: int
    """Objects of lives that the journal saw end: never committed, and left behind."""
    missing: int
    """Objects that the journal refers to and that aren't there."""
    damaged: list[str]
    belfast: list[str]
    """Belfast logs, taken along as they are."""
    belfast_missing: list[str]
    """Belfast logs of which no journal is there: they won't be served."""
    belfast_unknown: list[str]
    """Folders of Belfast logs that the journal doesn't know, taken along."""

    @property
    def whole(self) -> bool:
        return not self.missing and not self.damaged and not self.belfast_missing


def recover(data: str, into: str, limits: Limits, progress: Progress) -> Report:
    """Leaves `data` as it is. Raises what stands in the way, JournalCorrupt among it."""
    if holds_something(into):
        raise BadRequest(into, "something is stored there: name a new or empty directory")
    with Directory(data, limits, alone=True) as source:
        return _Recovery(source, into, limits).run(progress)


class _Recovery:
    def __init__(self, source: Directory, into: str, limits: Limits) -> None:
        self._source = source
        self._into = into
        self._listing: Listing = listed(source)
        self._found = source.replay_whole()
        image = self._found.image
        self._state: State = replayed(source.cluster, limits, image, self._found.entries)
        self._damaged: list[str] = []
        self._known = self._state.replica.broker_epochs
        self._accepted = AcceptancesFile(source.directory.objects).read()
        self._spare = 0

    def run(self, progress: Progress) -> Report:
        replica, source = self._state.replica, self._source
        held, garbage = referenced(replica), set(replica.references.garbage)
        everything = {**self._listing.quarantined, **self._listing.stored}
        salvage = Salvage(self._state)
        for object in sorted(held & everything.keys()):
            content = self._read(everything[ObjectId(object)])
            salvage.know(content.logs if content else [])
        new = [each for each in sorted(everything) if each not in held and each not in garbage]
        # A life that the journal saw end can't have committed anything behind its last entry.
        unknown = [each for each in new if split_id(each)[0] >= self._known]
        over = [each for each in new if split_id(each)[0] < self._known]
        given_up = [each for each in over if self._was_given_up(each)]
        entries: list[Entry] = []
        kept = {object: everything[object] for object in everything.keys() & (held | garbage)}
        objects, apart_records = 0, 0
        for turn, object in enumerate((*unknown, *given_up)):
            stored, records = everything[object], salvage.records
            content = self._read(stored)
            apart = turn >= len(unknown) or self._is_of_another_history(object)
            name = object if turn < len(unknown) else self._renamed(turn - len(unknown))
            at = max(replica.at, stored.modified_ms)
            done = salvage.add(name, content.logs, at, apart=apart) if content else []
            if done:
                entries += done
                kept[name] = stored
                objects += 1
            apart_records += (salvage.records - records) * apart
            progress(turn + 1, len(unknown) + len(given_up))
        self._write(entries, {object: kept[object] for object in sorted(kept)})
        carried = carry(source.where, self._into, replica)
        return Report(
            data=source.where,
            into=self._into,
            cluster=source.cluster,
            entries=self._found.last,
            logs=len(replica.forest.logs),
            objects=objects,
            records=salvage.records,
            repeated=salvage.repeated,
            recovered=salvage.names,
            given_up=salvage.apart,
            given_up_records=apart_records,
            orphans=len(over) - len(given_up),
            missing=len(held - everything.keys()),
            damaged=self._damaged,
            belfast=carried.whole,
            belfast_missing=carried.left_out,
            belfast_unknown=carried.unknown,
        )

    def _was_given_up(self, object: ObjectId) -> bool:
        """Did this journal go on without knowing what that life committed?"""
        life = split_id(object)[0]
        return any(each.is_known(self._known) and each.gave_up(life) for each in self._accepted)

    def _is_of_another_history(self, object: ObjectId) -> bool:
        """Was it written after this journal had been given up?"""
        life = split_id(object)[0]
        return any(not each.is_known(self._known) and life > each.lives for each in self._accepted)

    def _renamed(self, turn: int) -> ObjectId:
        """Brokers of lives that are over can't commit: such objects get a life that nobody had."""
        if self._spare == 0:
            latest = latest_life(self._source.directory.objects, self._source.cluster)
            self._spare = max(self._state.replica.broker_epochs, latest) + 1
        return object_id(self._spare, turn)

    def _read(self, stored: StoredObject) -> Read | None:
        try:
            found = read(self._source.get(stored.name), stored.name)
        except AnabranchError as error:
            self._damaged.append(error.message)
            return None
        self._damaged += found.damaged
        return found

    def _write(self, entries: list[Entry], objects: dict[ObjectId, StoredObject]) -> None:
        source = self._source
        with ExitStack() as stack:
            directory = DataDir(self._into, source.cluster)
            stack.callback(directory.close)
            directory.raise_format()
            for object, stored in objects.items():
                name = str(ObjectName.of(source.cluster, object))
                _link(f"{source.directory.objects}/{stored.name}", f"{directory.objects}/{name}")
            with storage(directory.journal):
                shutil.copytree(source.journal, directory.journal, dirs_exist_ok=True)
            journal = FileJournal(RealDisk(directory.journal), source.cluster)
            last = journal.recover().last
            stack.callback(journal.close)
            for group in _groups(entries):
                last = journal.append([group])
            lives = max(
                self._state.replica.broker_epochs,
                latest_life(source.directory.objects, source.cluster),
            )
            WatermarkFile(directory.objects).create(Watermark(last, lives))


def _groups(entries: list[Entry]) -> Iterator[bytes]:
    for start in range(0, len(entries), GROUP_ENTRIES):
        yield _encode(entries[start : start + GROUP_ENTRIES])


def _link(source: str, target: str) -> None:
    """Objects never change, so both directories can have the same file."""
    above = os.path.dirname(target)
    with storage(target):
        make_directory(above)
        try:
            os.link(source, target)
        except OSError:
            shutil.copy2(source, target)
        sync_directory(above)
