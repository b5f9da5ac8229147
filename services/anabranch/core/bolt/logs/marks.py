"""What one log remembers of its writers, and how a snapshot keeps it (decision 76)."""

from array import array

import msgspec

from anabranch.core.bolt.protocol.marks import NO_VERSION
from anabranch.core.types import Milliseconds, Position

FORGOTTEN: Position = -1
"""In the place of a position that more promotions have moved than are remembered."""


class PartRecord:
    """The batches of one part of an open version, by number: where each went, and its digest."""

    __slots__ = ("digests", "generations", "positions")

    def __init__(self) -> None:
        self.positions = array("q")
        self.generations = array("q")
        """Of the log, when the batch was committed."""
        self.digests = array("Q")

    @property
    def batches(self) -> int:
        """So many there are: the number of the next."""
        return len(self.positions)

    def note(self, position: Position, generation: int, digest: int) -> None:
        assert position >= 0, "a batch is noted when it was committed"
        self.positions.append(position)
        self.generations.append(generation)
        self.digests.append(digest)


class DonePart(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A part of the last complete version: its first batch, and how many there are."""

    position: Position
    generation: int
    digest: int
    batches: int


class WriterRecord:
    """The versions of one writer."""

    __slots__ = ("at", "complete", "done", "open")

    def __init__(self, at: Milliseconds) -> None:
        self.at = at
        """When it last appended, completed or came with a promotion."""
        self.complete = NO_VERSION
        """The highest complete version; all below count as complete too."""
        self.done: dict[int, DonePart] = {}
        """The parts of that version which this log itself holds."""
        self.open: dict[int, dict[int, PartRecord]] = {}
        """Parts of the versions that aren't complete; all are above the complete one."""

    def batches_of(self, version: int) -> dict[int, int]:
        """Each part of this version that this log itself holds, with the number of its batches."""
        assert self.complete not in self.open, "a version is complete or open"
        if version == self.complete:
            return {part: done.batches for part, done in self.done.items()}
        return {part: record.batches for part, record in self.open.get(version, {}).items()}


class Marks:
    """All writers of a log, by name."""

    __slots__ = ("batches", "parts", "writers")

    def __init__(self) -> None:
        self.writers: dict[str, WriterRecord] = {}
        self.parts = 0
        """Remembered: those of open versions, and of each writer's last complete one."""
        self.batches = 0
        """Of the parts of open versions."""

    def drop(self, name: str) -> None:
        """Forget a writer, if it is known."""
        writer = self.writers.pop(name, None)
        if writer is None:
            return
        self.parts -= len(writer.done)
        for parts in writer.open.values():
            self.parts -= len(parts)
            self.batches -= sum(record.batches for record in parts.values())
        assert self.parts >= 0 <= self.batches, "more went than came"

    def close(self, writer: WriterRecord, version: int) -> None:
        """The version is complete: of each of its parts only the first batch is remembered."""
        assert version > writer.complete, "a version is completed once"
        assert all(each >= version for each in writer.open), "a lower version is still open"
        parts = writer.open.pop(version, {})
        self.parts -= len(writer.done)
        self.batches -= sum(record.batches for record in parts.values())
        writer.complete = version
        writer.done = {
            part: DonePart(
                record.positions[0], record.generations[0], record.digests[0], record.batches
            )
            for part, record in parts.items()
        }


class SavedWriter(msgspec.Struct, frozen=True, array_like=True):
    """A writer in a snapshot. Fields are only ever added at the end, with a default."""

    name: str
    at: Milliseconds
    complete: int
    done: dict[int, DonePart]
    open: dict[int, dict[int, tuple[bytes, bytes, bytes]]]
    """By version and part: positions, generations, digests."""


def save(marks: Marks | None) -> list[SavedWriter]:
    """Writers in the order in which they came."""
    if marks is None:
        return []
    return [
        SavedWriter(
            name,
            writer.at,
            writer.complete,
            writer.done,
            {
                version: {part: _saved(record) for part, record in parts.items()}
                for version, parts in writer.open.items()
            },
        )
        for name, writer in marks.writers.items()
    ]


def load(saved: list[SavedWriter]) -> Marks | None:
    if not saved:
        return None
    marks = Marks()
    for each in saved:
        assert each.name not in marks.writers, "a writer is saved once"
        writer = marks.writers[each.name] = WriterRecord(each.at)
        writer.complete, writer.done = each.complete, each.done
        marks.parts += len(writer.done)
        for version, parts in each.open.items():
            writer.open[version] = {part: _loaded(columns) for part, columns in parts.items()}
            marks.parts += len(parts)
            marks.batches += sum(part.batches for part in writer.open[version].values())
    return marks


def _saved(record: PartRecord) -> tuple[bytes, bytes, bytes]:
    return record.positions.tobytes(), record.generations.tobytes(), record.digests.tobytes()


def _loaded(columns: tuple[bytes, bytes, bytes]) -> PartRecord:
    record = PartRecord()
    for column, content in zip(
        (record.positions, record.generations, record.digests), columns, strict=True
    ):
        column.frombytes(content)
    assert len(record.positions) == len(record.digests) == len(record.generations)
    return record
