"""The seams: what surrounds a machine, be it a simulation, one process or pods."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from anabranch.core.machine import Buffer, PutTarget
from anabranch.core.rights.claims import Claim
from anabranch.core.types import Milliseconds, Nanoseconds


class File(Protocol):
    """A file open for writing; nothing written is sure to survive before `sync` has returned."""

    def write(self, content: Buffer, offset: int) -> None:
        """Write all of it, or raise StorageFull or StorageFailed with any part of it written."""
        ...

    def sync(self) -> None:
        """Make content and size durable. After a failure nothing is known about unsynced bytes."""
        ...

    def truncate(self, size: int) -> None: ...

    def close(self) -> None: ...


class Disk(Protocol):
    """One flat directory. What is created, renamed or removed is durable after `sync`."""

    @property
    def where(self) -> str:
        """What errors call this directory."""
        ...

    def names(self) -> list[str]:
        """Every file, in order of name."""
        ...

    def read(self, name: str, bytes_max: int = -1, offset: int = 0) -> bytes:
        """From there on: all of it, or no more than so much."""
        ...

    def create(self, name: str) -> File:
        """A new, empty file; a file of that name must not exist."""
        ...

    def open(self, name: str) -> File:
        """A file that exists, as it is."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Atomic; replaces `new`."""
        ...

    def remove(self, name: str) -> None: ...

    def sync(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state that contains the effect of every entry up to and including `index`."""

    index: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a journal holds: entry `first + i` is `entries[i]`, and `first` follows the snapshot."""

    snapshot: Snapshot | None
    first: int
    entries: list[bytes]
    repairs: tuple[str, ...] = ()
    """What was put right on the way, for the operator's log: a torn tail, a bad snapshot."""

    @property
    def last(self) -> int:
        """The index of the last entry, 0 if there never was one."""
        return self.first + len(self.entries) - 1


@dataclass(frozen=True, slots=True)
class Replayed:
    """The index of a journal's last entry, 0 if there never was one, and what was put right."""

    last: int
    repairs: tuple[str, ...] = ()


class Journal(Protocol):
    """The log of commands: entries are numbered from 1, one `append` is all there or not at all.

    `recover` comes first and once. `append` is called by one thread at a time; `save_snapshot` may
    run at the same time in another.
    """

    def recover(self) -> Recovered: ...

    def append(self, entries: Sequence[bytes]) -> int:
        """Make the entries durable together and say the index of the last.

        After StorageFull or StorageFailed none of them will be applied by this journal, and the
        next `append` starts afresh in their place. Only if the process ends before an `append`
        succeeds may a later `recover` find them: until then their outcome is unknown.
        """
        ...

    def save_snapshot(self, index: int, content: bytes) -> None:
        """Keep the state after entry `index`, a durable one; forget what that makes needless."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class PromptJournal(Journal, Protocol):
    """A journal that knows whether its appends wait for a disk."""

    @property
    def prompt(self) -> bool:
        """The next one doesn't: an event loop may do it by itself."""
        ...


@runtime_checkable
class RecordJournal(Journal, Protocol):
    """A journal whose entries are records, too many to keep in memory: they are read back."""

    def recover_into(
        self, restore: Callable[[bytes | None], None], take: Callable[[int, bytes], None]
    ) -> Replayed:
        """What `recover` does, without keeping an entry: the state of the snapshot is given first,
        None if there is none, then each entry with its index.
        """
        ...

    def read(self, first: int, upto: int) -> list[bytes]:
        """Durable entries behind the last snapshot, from `first` up to and without `upto`.

        For any thread, while appends and snapshots go on in theirs. Raises JournalCorrupt if they
        don't check, StorageFailed if they can't be read.
        """
        ...


class BlackBox(Protocol):
    """A log of another system, which a shard's journal is kept in (decision 63): a Kafka topic, a
    Bolt log. For any thread. What fails raises BlackBoxFailed, and may be done all the same.
    """

    @property
    def where(self) -> str:
        """What errors call it."""
        ...

    def bounds(self) -> tuple[int, int]:
        """The position of the first record that is kept, and the one behind the last. Every record
        whose append was acknowledged lies before the latter.
        """
        ...

    @property
    def begin(self) -> int:
        """The first of these positions as the last answer to an append has told it; 0 if none
        tells.
        """
        ...

    def look(self) -> tuple[int, int]:
        """What `bounds` says, in less time: positions before the end may have no record. Raises
        BlackBoxUnfit if it can't keep records any more, BlackBoxChanged if it was deleted.
        """
        ...

    def append(self, records: Sequence[bytes]) -> list[int]:
        """Make them durable in this order, and say the position of each. Some may be there twice,
        or some and not others after a failure.
        """
        ...

    def read(self, start: int) -> list[tuple[int, bytes]]:
        """Some records from this position on, one at least, each with its position. Only for a
        position with a record at or behind it.
        """
        ...

    def trim(self, below: int) -> None:
        """Delete the records before this position."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One line of an object store's listing."""

    name: str
    size: int
    modified_ms: Milliseconds


class ObjectStore(Protocol):
    """Immutable blobs by name; a name is words of `[A-Za-z0-9._-]` joined by `/`."""

    async def put(self, name: str, parts: Sequence[Buffer]) -> None:
        """Create the object from the parts in order: durable and whole on return (spec, B11).

        Raises ObjectExists if the name is taken, whatever the content. After any other error the
        object is absent, or there and whole: the outcome is unknown.
        """
        ...

    async def get(self, name: str, start: int, length: int) -> bytes:
        """Exactly these bytes; CorruptObject if it ends before, ObjectMissing if there is none."""
        ...

    async def size(self, name: str) -> int:
        """Bytes of the whole object; ObjectMissing if there is none."""
        ...

    async def delete(self, names: Sequence[str]) -> None:
        """Remove those that are there; one that isn't is as good as removed."""
        ...

    async def list(self, prefix: str = "") -> list[StoredObject]:
        """Every object whose name starts so, in order of name.

        What others put into the store is among them if its name could be an object's.
        """
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class NewObject:
    """An object that somebody else is to write, and exactly what it will hold."""

    name: str
    size: int
    sha256: bytes


@runtime_checkable
class SigningStore(ObjectStore, Protocol):
    """A store that others can use without keys of it: read range by range, create objects."""

    async def sign(
        self, ranges: Sequence[tuple[str, int, int]], valid_ms: Milliseconds
    ) -> Sequence[str]:
        """A URL for each range of an object: name, offset, length. It fetches these bytes and no
        others, for so long. Whether they are there isn't looked at. Raises NotFetchable if nobody
        else gets to the store.
        """
        ...

    async def sign_put(
        self, contents: Sequence[NewObject], valid_ms: Milliseconds
    ) -> Sequence[PutTarget]:
        """Where and how each of these objects can be created, for so long: with this content and no
        other, and only while there is none of its name. A folder answers the path of the file,
        and can check nothing. Raises NotFetchable if nobody else gets to the store.
        """
        ...


class Network(Protocol):
    """Messages to nodes of other processes; what comes from them is posted to the machines."""

    def send(self, sender: str, to: str, message: Any) -> None:
        """Lost if there is no connection: when there is one, the machine is told `Linked`."""
        ...


class Coordinator(Protocol):
    """Who leads a metadata group, and what its journal holds (duty 7 in core/machine.py)."""

    def follow(self, after: int) -> None: ...

    def campaign(self) -> None: ...

    def resign(self) -> None: ...


class Authority(Protocol):
    """Who is let in, by the token that they show, and what they may do then.

    Each is answered at once where it is known. Refusals are raised.
    """

    selective: bool
    """False: whoever is let in may do everything, and nothing needs to be asked of it."""
    open: bool
    """Is everybody let in?"""

    def now(self) -> Nanoseconds:
        """By the clock that rights end by; it never goes back."""
        ...

    def known(self, token: str | None) -> bool:
        """True: let in. False: `admit` has to find out."""
        ...

    async def admit(self, token: str | None, address: str = "") -> None:
        """`address`: where the caller is, so that strangers there don't take everybody's turns."""
        ...

    def principal(self, token: str | None) -> str:
        """The name of somebody who was let in, for shares of what a process has; empty where
        clients aren't told apart.
        """
        ...

    def standing(self, token: str | None, claims: Sequence[Claim]) -> Nanoseconds:
        """Until when a request that needs these rights is allowed; 0: `permit` has to find out."""
        ...

    async def permit(self, token: str | None, claims: Sequence[Claim]) -> Nanoseconds: ...
