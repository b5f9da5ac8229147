"""Compactors: jobs that copy small extents of logs into objects of their own (decision 83).

A compactor has an epoch of the brokers' without a seat among them. It is told what to copy, writes
objects by URLs that are signed for it, and has a broker check each and refer to it.

Structs are arrays on the wire and in the journal: fields are only ever added at the end.
"""

from typing import NewType

import msgspec

from anabranch.core.bolt.protocol.compaction import Copied
from anabranch.core.bolt.protocol.scans import PlanId
from anabranch.core.types import LogId, Milliseconds, ObjectId, Position

COMPACTORS_FORMAT = 11
"""From this format of the cluster's commands on there are compactors."""

CompactorId = NewType("CompactorId", int)
"""Its epoch: it is in the names of all objects that the compactor writes."""

TAKEN_COPIES_MAX = 64
"""Copies in one answer."""
TAKEN_EXTENTS_MAX = 4_096
"""Extents of them, about: bounds how long the leader looks for them."""
SIGNED_COPIES_MAX = 64
"""Copies that one request can have signed: their URLs fit into a frame."""
SHA256_BYTES = 32
RUNNING = -1
"""In the place of the time when a compactor ended."""


class RegisterCompactor(msgspec.Struct, frozen=True, array_like=True, tag="register-compactor"):
    """Begin a compactor, which ends `lease_ms` after it was registered or renewed."""

    name: str
    """Whose job it is, for whoever lists the compactors."""
    lease_ms: Milliseconds
    request: bytes = b""
    """The id under which it is done once; empty in the journal, where the entry has it."""


class RenewCompactor(msgspec.Struct, frozen=True, array_like=True, tag="renew-compactor"):
    """Let the compactor live for this long from now on."""

    compactor: CompactorId
    lease_ms: Milliseconds


class EndCompactor(msgspec.Struct, frozen=True, array_like=True, tag="end-compactor"):
    """The job is over. A compactor that has ended already is left alone."""

    compactor: CompactorId


class LapseCompactors(msgspec.Struct, frozen=True, array_like=True, tag="lapse-compactors"):
    """The leader noticed that the leases of some compactors are over at the entry's time, and that
    no URL can be used any more that was signed for others, which ended before.
    """

    ended: list[CompactorId]
    forgotten: list[CompactorId]


CompactorCommand = RegisterCompactor | RenewCompactor | EndCompactor | LapseCompactors


class Compactor(msgspec.Struct, frozen=True, array_like=True, tag="compactor"):
    """A job that copies extents."""

    id: CompactorId
    name: str
    began: Milliseconds
    expires: Milliseconds
    """URLs that are signed for it are valid until then at the latest."""
    ended: Milliseconds = RUNNING
    """When it ended. It is remembered until no URL can be used any more."""

    @property
    def key(self) -> str:
        """Its name among the records of brokers, which no broker can have."""
        return compactor_key(self.id)


COMPACTOR_PREFIX = "compactor/"


def compactor_key(id: CompactorId) -> str:
    return f"{COMPACTOR_PREFIX}{id}"


class TakeCopies(msgspec.Struct, frozen=True, array_like=True, tag="take-copies"):
    """Which extents of a log from this position on are worth copying? The plan keeps their objects
    for the job.

    The log counts as given away to the compactor for some time: brokers leave its extents alone.
    """

    compactor: CompactorId
    log: LogId
    plan: PlanId
    since: Position
    copies_max: int = TAKEN_COPIES_MAX


class CopyToMake(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Extents that follow each other in a log's own index, to be one object. So many in turn are to
    be one extent there.
    """

    extents: list[Copied]
    joined: list[int]


class TakenCopies(msgspec.Struct, frozen=True, array_like=True, tag="taken-copies"):
    """Copies to make, in order of position."""

    copies: list[CopyToMake]
    next: Position
    """Where the next answer begins."""
    more: bool
    """False: nothing from `next` on is worth copying now."""
    seals: bytes = b""
    """Eight for each extent, as of the plan's pages; the broker adds them for the client."""
    secret: bytes = b""
    """From the metadata to the broker alone: what it seals with."""


class NewCopy(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An object that a compactor is about to write."""

    sequence: int
    """Counts the compactor's objects from 1."""
    size: int
    sha256: bytes


class SignCopies(msgspec.Struct, frozen=True, array_like=True, tag="sign-copies"):
    """Say how these objects can be created, without keys of the object store."""

    compactor: CompactorId
    copies: list[NewCopy]


class SignedCopy(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How one object is created: once, and with what was said of it."""

    object: ObjectId
    url: str
    """For a PUT; of a folder, file:// and the path of a file that mustn't be there."""
    headers: dict[str, str]
    """All of them have to be sent along."""


class SignedCopies(msgspec.Struct, frozen=True, array_like=True, tag="signed-copies"):
    """Of the copies that were asked about, in their order."""

    copies: list[SignedCopy]
    valid_ms: Milliseconds
    """For so long the URLs can be used to begin a PUT."""


class AdoptCopy(msgspec.Struct, frozen=True, array_like=True, tag="adopt-copy"):
    """The object is written: read it back, and if it holds these extents refer to it instead.

    A compactor has its objects adopted in order of their sequence: an earlier one that comes later
    is refused. Asked for again it is answered as before.
    """

    compactor: CompactorId
    log: LogId
    sequence: int
    size: int
    """Bytes of the whole object."""
    extents: list[Copied]
    joined: list[int]


class Adopted(msgspec.Struct, frozen=True, array_like=True, tag="adopted"):
    """How many extents there are fewer now; or why none, and that the object will be deleted."""

    fewer: int
    why: str = ""


class FindCompactor(msgspec.Struct, frozen=True, array_like=True, tag="find-compactor"):
    """Broker to metadata: a compactor that is alive."""

    compactor: CompactorId


class ListCompactors(msgspec.Struct, frozen=True, array_like=True, tag="list-compactors"):
    """Every compactor that is remembered, the oldest first."""


class Compactors(msgspec.Struct, frozen=True, array_like=True, tag="compactors"):
    compactors: list[Compactor]


CompactorQuery = FindCompactor | ListCompactors | TakeCopies
"""`TakeCopies` is the leader's to answer: it notes what it gives away."""

CompactorRequest = (
    RegisterCompactor
    | RenewCompactor
    | EndCompactor
    | ListCompactors
    | TakeCopies
    | SignCopies
    | AdoptCopy
)
"""What clients ask."""

CompactorAnswer = Compactor | Compactors | TakenCopies | SignedCopies | Adopted
"""What clients are answered."""
