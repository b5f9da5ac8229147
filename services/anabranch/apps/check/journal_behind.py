"""Is the journal of a data directory all that was journaled? If not, start refuses.

Two signs prove that entries are missing. Each follows its entry, so a crash can't fake either:
the note beside the objects names an entry that was durable, and an object's name carries a broker
life that was journaled before any object of that life was written. An object of a known life that
no entry refers to proves nothing: after a crash that is an ordinary orphan.
"""

import os
import re
from contextlib import suppress

import msgspec

from anabranch.core.bolt.metadata.leader import Metadata
from anabranch.core.bolt.protocol.commands import Entry, RegisterBroker
from anabranch.core.errors import BadRequest, JournalBehind, StorageFailed
from anabranch.core.limits import Limits
from anabranch.ports import Recovered
from anabranch.shell.journal.data_dir import DataDir
from anabranch.shell.journal.disk import storage
from anabranch.shell.journal.watermark import NotedJournal, Watermark, WatermarkFile
from anabranch.shell.objects.accepted_losses import Acceptance, AcceptancesFile
from anabranch.shell.telemetry.log import Log

LIVES_RAISED_MAX = 1_000_000
"""Each life is journaled: a stray folder with a huge number must not fill the disk."""
_LIFE = re.compile(r"[0-9]{8}")
_encode = msgspec.msgpack.Encoder().encode


class Reach:
    """What lies beside the journal of a directory and says how far it must go."""

    def __init__(self, directory: DataDir) -> None:
        self._directory = directory
        self.file = WatermarkFile(directory.objects)
        self.mark: Watermark | None = None
        self._damage = ""
        try:
            self.mark = self.file.read()
        except StorageFailed as error:
            self._damage = error.message
        self._written = latest_life(directory.objects, directory.cluster)

    @property
    def lives(self) -> int:
        """Lives up to this one may have been given out."""
        return max(self._written, self.mark.lives if self.mark else 0)

    def proof(self, last: int, lives: int) -> str:
        """Why a journal that ends here and knows so many lives isn't all; empty if it may be."""
        if self._damage:
            return f"how far it went before can't be told: {self._damage}"
        if self.mark is not None and self.mark.entry > last:
            return f"the note {self.file.path} says that it reached entry {self.mark.entry}"
        if self._written > lives:
            where = f"{self._directory.objects}/{self._directory.cluster}"
            return (
                f"{where} has objects of broker life {self._written}, of which it knows only "
                f"{lives}"
            )
        return ""


def latest_life(objects: str, cluster: str) -> int:
    """The latest broker life that left a folder, among the objects or in quarantine; 0 if none."""
    found: list[int] = [0]
    for folder in ("data", "quarantine"):
        path = f"{objects}/{cluster}/{folder}"
        with storage(path), suppress(FileNotFoundError, NotADirectoryError):
            found += [int(name) for name in os.listdir(path) if _LIFE.fullmatch(name)]
    return max(found)


def recovered(
    directory: DataDir,
    journal: NotedJournal,
    limits: Limits,
    log: Log,
    found: Recovered,
    *,
    accept_loss: bool,
) -> Metadata:
    """The metadata as the journal left them, unless it is behind.

    Raises JournalBehind; with `accept_loss` it goes on, with a broker life that no object has.
    """
    metadata = metadata_of(directory.cluster, limits, found)
    reach = Reach(directory)
    lives = metadata.state.replica.broker_epochs
    proof = reach.proof(found.last, lives)
    if proof:
        if not accept_loss:
            todo = advice(directory, found.last, lives)
            raise JournalBehind(directory.journal, found.last, proof, todo)
        log.warning("the journal is behind, and its loss was accepted", proof=proof)
        given_up = Acceptance(found.last, lives, max(reach.lives, lives))
        found = _raised(directory, journal, found, given_up, metadata.state.replica.at)
        metadata = metadata_of(directory.cluster, limits, found)
        lives = metadata.state.replica.broker_epochs
    note = reach.mark.note + 1 if reach.mark else 0
    # The life that is about to begin counts: without its entry nobody else knows of it.
    journal.begin(Watermark(found.last, max(lives + 1, reach.lives), note))
    return metadata


def accept(
    directory: DataDir, journal: NotedJournal, limits: Limits, log: Log, found: Recovered
) -> None:
    """Make this journal the one that counts, however far another went before."""
    recovered(directory, journal, limits, log, found, accept_loss=True)


def metadata_of(cluster: str, limits: Limits, found: Recovered) -> Metadata:
    image = found.snapshot.content if found.snapshot else None
    return Metadata.recovered(cluster, limits, image, found.entries, found.last)


def _raised(
    directory: DataDir, journal: NotedJournal, found: Recovered, given_up: Acceptance, at: int
) -> Recovered:
    """Note what is given up, and journal lives that nobody leads: none is given out twice.

    Nobody but a broker that registers counts lives up, and that every version can replay.
    """
    # One more than were given out: by it this journal is told from the one that is given up.
    lives = given_up.lives + 1 - given_up.knew
    if lives > LIVES_RAISED_MAX:
        reason = f"there are names of broker lives {lives} ahead of the journal: they can't be ours"
        raise BadRequest("--accept-loss", reason)
    AcceptancesFile(directory.objects).add(given_up)
    group = _encode([Entry(at, b"", RegisterBroker("broker-0"))] * lives)
    journal.append([group])
    return Recovered(found.snapshot, found.first, [*found.entries, group], found.repairs)


def advice(directory: DataDir, last: int, lives: int) -> str:
    """What to do about a journal that is behind, ends here, and knows so many broker lives."""
    root, accepted = directory.root, AcceptancesFile(directory.objects).read()
    # A shorter one is an older copy once more, and of no use.
    if any(not each.is_known(lives) and last > each.entry for each in accepted):
        return (
            "An earlier start with --accept-loss gave this journal up and went on from an older "
            f"one. First run `anabranch recover --data {root} --into NEW`: it makes a new "
            "directory of what this journal knows, and what was written after that start is there "
            "in logs named recovered-ID. Then serve NEW. "
            f"`anabranch up --data {root} --accept-loss` would give up what was written after that "
            "start"
        )
    return (
        f"Put the newest copy of {root}/journal back. If there is none, `anabranch recover --data "
        f"{root} --into NEW` makes a new directory of all that the objects hold, and `anabranch "
        f"up --data {root} --accept-loss` goes on without what the journal doesn't know: objects "
        "that it doesn't refer to are moved to quarantine and deleted after quarantine_ms"
    )
