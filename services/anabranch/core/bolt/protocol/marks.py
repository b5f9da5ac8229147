"""Writer marks: appends that a log remembers until their writer is released (decision 76).

A writer, such as a streaming query, writes one version after the other; a version has parts, and a
part is written as a row of batches. Structs are arrays on the wire and in the journal: fields are
only ever added at the end.
"""

from hashlib import blake2b

import msgspec

from anabranch.core.bolt.protocol.receipts import Receipt
from anabranch.core.errors import BadRequest
from anabranch.core.types import LogId, Milliseconds, Position

MARKS_FORMAT = 10
"""From this cluster format on, logs keep writer marks."""

NO_VERSION = -1
_VERSION_END = 1 << 53
"""JSON's numbers are exact below it."""
_PART_END = 1 << 31


class WriterMark(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Which batch of which part of which version of a writer this is."""

    writer: str
    version: int
    part: int
    batch: int = 0
    """Numbers the batches of one part from 0."""

    @property
    def sender(self) -> int:
        """A number for the part, in the place of a producer's id: its batches are kept in order."""
        name = f"{self.part} {self.version} {self.writer}".encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(name, digest_size=8).digest()) >> 1


class AlreadyAppended(msgspec.Struct, frozen=True, array_like=True, tag="already"):
    """A batch with a mark wasn't appended now, because the log has it. At most one of `position`
    and `receipt` is set.
    """

    position: Position | None
    """Of its first record now; None if that isn't known any more, as of a version below the latest
    complete one.
    """
    receipt: Receipt | None
    complete: int
    """The writer's highest complete version, or -1."""


class AppendMarked(msgspec.Struct, frozen=True, array_like=True, tag="append-marked"):
    """One record batch that is appended once, however often and by whomever it is sent. A message
    apart from `Append`: a server that knows no marks refuses it instead of appending it twice.
    """

    log: LogId
    batch: bytes
    mark: WriterMark
    wait_ms: int = -1
    """As of `Append`."""


class CompleteVersion(msgspec.Struct, frozen=True, array_like=True, tag="complete-version"):
    """All parts of a version are in the log. From here on the version takes nothing more."""

    log: LogId
    writer: str
    version: int
    parts: list[tuple[int, int]]
    """Each part that has records, with the number of its batches."""
    request: bytes = b""
    """The id under which it is done once; empty in the journal, whose entries have one."""


class ReleaseWriter(msgspec.Struct, frozen=True, array_like=True, tag="release-writer"):
    """Forget a writer and all its versions: what it sends from here on is new to the log."""

    log: LogId
    writer: str
    request: bytes = b""
    """As of `CompleteVersion`."""


class ReadWriters(msgspec.Struct, frozen=True, array_like=True, tag="read-writers"):
    """The writers that a log itself remembers, in order of name; the one of this name, if given."""

    log: LogId
    writer: str = ""


class OpenVersion(msgspec.Struct, frozen=True, array_like=True):
    version: int
    parts: list[tuple[int, int]]
    """Each part, and how many of its batches the log has."""


class WriterState(msgspec.Struct, frozen=True, array_like=True):
    """What a log remembers of a writer."""

    writer: str
    complete: int
    """The highest complete version, or -1."""
    parts: list[tuple[int, int]]
    """Of that version, as `OpenVersion` has them."""
    open: list[OpenVersion]
    at: Milliseconds
    """When it last appended, completed or came with a promotion."""


class Writers(msgspec.Struct, frozen=True, array_like=True, tag="writers"):
    writers: list[WriterState]


MarkCommand = CompleteVersion | ReleaseWriter


def check_mark(mark: WriterMark, chars_max: int) -> None:
    """Raises BadRequest for what no log keeps."""
    check_version(mark.writer, mark.version, chars_max)
    if not 0 <= mark.part < _PART_END or not 0 <= mark.batch < _PART_END:
        reason = f"parts and their batches are numbered from 0 to {_PART_END - 1}"
        raise BadRequest(f"part {mark.part}, batch {mark.batch} of a writer", reason)


def check_version(writer: str, version: int, chars_max: int) -> None:
    """As `check_mark`."""
    check_writer(writer, chars_max)
    if not 0 <= version < _VERSION_END:
        raise BadRequest(f"version {version}", f"a version is 0 to {_VERSION_END - 1}")


def check_writer(writer: str, chars_max: int) -> None:
    """As `check_mark`."""
    if not 0 < len(writer) <= chars_max or not writer.isprintable():
        reason = f"1 to {chars_max} printable characters were expected (writer_chars_max)"
        raise BadRequest(f"a writer's name of {len(writer)} characters", reason)
