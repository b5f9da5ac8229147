"""Records rebuilt from objects that a journal doesn't know of: as commands, to be journaled.

An object says of each log's bytes whose they are and how many records they hold, and its name says
in which order it was written. It doesn't say what logs were called, how they were forked, nor what
was promoted, squashed or trimmed. So the records of a log that the journal doesn't know, or that is
closed to appends, go to a new root log named after its id.
"""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from anabranch.core.bolt.logs.forest import Log
from anabranch.core.bolt.protocol.commands import (
    Batch,
    Command,
    CommitObject,
    CreateLog,
    Description,
    Entry,
    RegisterBroker,
    Row,
)
from anabranch.core.bolt.state.state import State
from anabranch.core.errors import AnabranchError
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Buffer
from anabranch.core.records.batch import Header, split, verify
from anabranch.core.records.objects import TRAILER_BYTES, footer_bytes, read_footer, split_id
from anabranch.core.records.set_sum import batch_value, combined, pack_values
from anabranch.core.types import LogId, Milliseconds, ObjectId

NAMES_MAX = 1_000
"""Names tried for one log: each earlier recovery may have taken one."""
BROKER = "broker-0"
BY = "anabranch recover"


class Found(msgspec.Struct, frozen=True):
    """One log's batches in an object; those next to each other are in one run."""

    log: LogId
    runs: list[list[tuple[int, Header]]]
    """Each batch with where it starts."""


class Read(msgspec.Struct, frozen=True):
    """What can be used of an object."""

    logs: list[Found]
    damaged: list[str]


class Salvage:
    """Takes objects in the order of their names, those that the journal knows first."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._ids_end = state.replica.next_id
        """The journal knows no log from this id on. Logs that are made here get such ids, which
        other logs had when the objects were written.
        """
        self._seen: set[tuple[int, ...]] = set()
        self._logs: dict[tuple[LogId, bool], LogId] = {}
        self.names: list[str] = []
        """Logs that were made because nobody knows any more what they were."""
        self.apart: list[str] = []
        """Logs with records of another history than the journal's."""
        self.records = 0
        self.repeated = 0
        """Records left out because they are there already: sent twice, or copied by compaction."""

    def know(self, found: Sequence[Found]) -> None:
        """The journal has placed these."""
        for each in found:
            for run in each.runs:
                self._seen.update(_identity(each.log, header) for _, header in run)

    def add(
        self, object: ObjectId, found: Sequence[Found], at: Milliseconds, *, apart: bool = False
    ) -> list[Entry]:
        """The commands that give an object's records their places, already applied.

        With `apart` they were written for another journal than this one: a log of the same id may
        be another there, and so they go to logs of their own.
        """
        rows: list[tuple[LogId, Row]] = []
        values: list[int] = []
        for each in found:
            for run in each.runs:
                for row, of_row in self._rows(each.log, run):
                    rows.append((each.log, replace(row, sum=combined(of_row))))
                    values += of_row
        if not rows:
            return []
        done = list[Entry]()
        life = split_id(object)[0]
        while self._state.replica.broker_epochs < life:
            done += self._apply(RegisterBroker(BROKER), at)
        for log, _ in rows:
            done += self._open(log, at, apart)
        assert all((log, apart) in self._logs for log, _ in rows), "each row has its log"
        placed = [replace(row, log=self._logs[log, apart]) for log, row in rows]
        commit = CommitObject(BROKER, object, placed, values=pack_values(values))
        done += self._apply(commit, at)
        self.records += sum(batch.count for row in placed for batch in row.batches)
        return done

    def _rows(
        self, log: LogId, run: Sequence[tuple[int, Header]]
    ) -> Iterator[tuple[Row, list[int]]]:
        """Without what is there already. A producer's batches are told apart by its numbers; of
        others only a row of several that are all known is taken for a copy. With each row come the
        values of its batches in a set sum.
        """
        assert run, "a run has a batch at least"
        keys = [_identity(log, header) for _, header in run]
        known = [key in self._seen for key in keys]
        copied = len(run) > 1 and all(known)
        self._seen.update(keys)
        row: Row | None = None
        values: list[int] = []
        for (start, header), repeated in zip(run, known, strict=True):
            if repeated and (copied or header.producer_id >= 0):
                self.repeated += header.count
                if row is not None:
                    yield row, values
                row = None
                continue
            if row is None:
                row, values = Row(log, start, []), []
            row.batches.append(Batch(header.size, header.count))
            values.append(batch_value(header.crc))
        if row is not None:
            yield row, values

    def _open(self, log: LogId, at: Milliseconds, apart: bool) -> list[Entry]:
        """Have a log that takes this one's records."""
        forest = self._state.replica.forest
        if (log, apart) in self._logs:
            return []
        known: Log | None = None if apart or log >= self._ids_end else forest.logs.get(log)
        # A front's batches are known by numbers that objects don't say.
        direct = known is not None and known.front is None
        if known is not None and direct and forest.blocked_by(known) is None:
            self._logs[log, apart] = log
            return []
        what = "as another journal had it" if apart else "whose name is lost"
        for turn in range(1, NAMES_MAX):
            name = f"recovered-{log}" if turn == 1 else f"recovered-{log}-{turn}"
            entry = Entry(at, b"", CreateLog(name, BY, f"records of log {log}, {what}"))
            made = self._state.apply(entry)
            if isinstance(made, Description):
                self._logs[log, apart] = made.id
                (self.apart if apart else self.names).append(made.name)
                return [entry]
        raise AssertionError(f"no name is free for log {log}")

    def _apply(self, command: Command, at: Milliseconds) -> list[Entry]:
        entry = Entry(at, b"", command)
        outcome = self._state.apply(entry)
        assert not isinstance(outcome, Refused), f"this isn't recovered: {outcome.message}"
        return [entry]


def read(content: Buffer, name: str) -> Read:
    """Every batch whose checksum is right; CorruptObject if nobody can say whose they are."""
    size = len(content)
    view = memoryview(content)
    length = footer_bytes(view[-min(size, TRAILER_BYTES) :], size, name)
    footer = read_footer(view[size - length :], size, name)
    found: list[Found] = []
    damaged: list[str] = []
    for placed in footer.rows:
        region = view[placed.offset : placed.offset + placed.length]
        runs: list[list[tuple[int, Header]]] = [[]]
        try:
            for start, bytes_, header in split(region):
                where = f"{name} byte {placed.offset + start}"
                try:
                    verify(region[start : start + bytes_], where)
                except AnabranchError as error:
                    damaged.append(error.message)
                    runs.append([])
                    continue
                runs[-1].append((placed.offset + start, header))
        except AnabranchError as error:
            damaged.append(error.message)
        found.append(Found(placed.log, [run for run in runs if run]))
    return Read(found, damaged)


def _identity(log: LogId, header: Header) -> tuple[int, ...]:
    return (
        log,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.count,
        header.crc,
    )
