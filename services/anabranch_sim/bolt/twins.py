"""The state machine beside the naive one: every command goes to both, and they are compared."""

from collections.abc import Hashable, Iterator

from msgspec.structs import replace

from anabranch.core.bolt.protocol.commands import (
    BOLT,
    FORMAT,
    Batch,
    Command,
    CommitObject,
    Committed,
    CreateLog,
    Description,
    EngineSettings,
    Entry,
    Epoch,
    ForkLog,
    RaiseFormat,
    Receipt,
    RegisterBroker,
    Row,
)
from anabranch.core.bolt.protocol.compaction import Copied, Joined, SwapExtents, Swapped
from anabranch.core.bolt.protocol.fronts import FindReceipt, FrontMark
from anabranch.core.bolt.protocol.queries import (
    At,
    Compare,
    Cursors,
    Describe,
    PositionAt,
    ReadCursors,
    Resolve,
    Resolved,
    ResolveReceipt,
    Settled,
    Slice,
)
from anabranch.core.bolt.state import snapshot
from anabranch.core.bolt.state.invariants import Witness, broken, held, wrong_sums
from anabranch.core.bolt.state.requests import Requests
from anabranch.core.bolt.state.retention import referenced
from anabranch.core.bolt.state.state import State
from anabranch.core.bolt.state.swap import copied
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.records.objects import object_id
from anabranch.core.records.set_sum import combined, pack_values
from anabranch.core.types import NEVER, Kind, LogId, ObjectId, OnParentDelete
from anabranch_sim.bolt.batch_results import by_batch, value_at, without_sums
from anabranch_sim.bolt.naive_model import BatchFate, List, Naive, Promise, Record, Refusal
from anabranch_sim.bolt.scans.compared_plans import compare_plans

BROKER = "broker-0"


def portrait(state: State) -> bytes:
    """Everything that a refused command must leave as it was: all but the time, the replies, and
    whose turn it is.
    """
    replica = state.replica
    kept = replica.at, replica.applied, replica.requests, replica.guards
    replica.at, replica.applied, replica.requests, replica.guards = 0, 0, Requests(), {}
    image = snapshot.save(replica)
    replica.at, replica.applied, replica.requests, replica.guards = kept
    return image


class Twins:
    """A state machine and a naive one that are told the same."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.state = State("c", limits)
        self.naive = Naive()
        self.now = 1_000
        self.applied: list[Entry] = []
        self.objects: dict[ObjectId, dict[int, Batch]] = {}
        self.receipts: list[tuple[Receipt, Promise]] = []
        self.copies: dict[tuple[int, int], tuple[int, int]] = {}
        """Where a batch that was copied was written first: object and offset."""
        self.witness = Witness(self.batches)
        self.spans: int = 0
        """The longest time between two extents that became one."""
        self.generations: dict[LogId, tuple[int, list[Record]]] = {}
        self.sequence = 0
        self.apply(RaiseFormat(FORMAT))
        epoch = self.apply(RegisterBroker(BROKER))
        assert isinstance(epoch, Epoch)
        self.epoch = epoch.epoch

    def apply(self, command: Command) -> object:
        """Tell both, and see that both do it or both refuse; a refusal changes nothing."""
        self.now += 2
        before = portrait(self.state)
        # A swap is once-only by its object.
        request = b"" if isinstance(command, SwapExtents) else b"%d" % len(self.applied)
        entry = Entry(self.now, request, command)
        self.applied.append(entry)
        outcome = self.state.apply(entry)
        fates, codes = self._naively(command)
        assert self.state.replica.guards == self.naive.guards
        if codes:
            assert isinstance(outcome, Refused), (command, codes, outcome)
            assert outcome.code in codes, (command, outcome)
            assert portrait(self.state) == before, command
            return outcome
        assert not isinstance(outcome, Refused), (command, outcome)
        if isinstance(command, CommitObject):
            assert isinstance(outcome, Committed)
            assert fates is not None
            self._judge(command, outcome, fates)
        assert self.state.apply(entry) == outcome, "asked again it answers as the first time"
        return outcome

    def root(self, name: str) -> LogId:
        return self._made(CreateLog(name))

    def append(self, log: LogId, *counts: int) -> object:
        """One object with one batch for each count, without a producer."""
        return self.commit([(log, [Batch(10 * count, count) for count in counts])])

    def cfork(self, parent: LogId, name: str | None = None, *, promotable: bool = False) -> LogId:
        return self._made(ForkLog(parent, Kind.CONTINUOUS, name, promotable=promotable))

    def sfork(
        self,
        parent: LogId,
        name: str | None = None,
        *,
        past: int | None = None,
        policy: OnParentDelete = OnParentDelete.ORPHAN,
    ) -> LogId:
        return self._made(ForkLog(parent, Kind.SEVERED, name, past=past, on_parent_delete=policy))

    def _made(self, command: CreateLog | ForkLog) -> LogId:
        outcome = self.apply(command)
        assert isinstance(outcome, Description), outcome
        return outcome.id

    def _naively(self, command: Command) -> tuple[list[list[BatchFate]] | None, tuple[str, ...]]:
        try:
            return self.naive.apply(self.now, command), ()
        except Refusal as refusal:
            return None, refusal.codes

    def commit(self, rows: list[tuple[LogId, list[Batch]]]) -> object:
        return self.apply(self.laid_out(rows))

    def order(self, log: LogId, batches: list[Batch], mark: FrontMark) -> object:
        """One object with one batch of the log's lazy front."""
        command = self.laid_out([(log, batches)])
        return self.apply(replace(command, rows=[replace(command.rows[0], front=mark)]))

    def laid_out(self, rows: list[tuple[LogId, list[Batch]]]) -> CommitObject:
        """A new object with these logs' batches one behind the other."""
        self.sequence += 1
        object = object_id(self.epoch, self.sequence)
        places = self.objects[object] = {}
        offset, laid, values = 0, list[Row](), list[int]()
        for log, batches in rows:
            row, since = Row(log, offset, batches), len(values)
            for batch in batches:
                places[offset] = batch
                values.append(value_at(object, offset))
                offset += batch.length
            laid.append(replace(row, sum=combined(values[since:])))
        commit = CommitObject(BROKER, object, laid, values=pack_values(values))
        # Some brokers are of a version that says no sums.
        return commit if self.sequence % 9 else without_sums(commit)

    def copied(self, log: LogId, since: int, joined: list[int]) -> SwapExtents:
        """A new object with the log's own extents from this one on, so many as one each."""
        index = self.state.replica.forest.logs[log].index
        extents = [copied(index, since + turn) for turn in range(sum(joined))]
        self.sequence += 1
        object = object_id(self.epoch, self.sequence)
        places = self.objects[object] = {}
        offset, laid, turn, read = 0, list[Joined](), 0, list[Copied]()
        for together in joined:
            begin = offset
            for extent in extents[turn : turn + together]:
                values: list[int] = []
                for at, batch in self._within(extent.object, extent.offset, extent.length):
                    written = self.copies[object, offset] = self.written(extent.object, at)
                    values.append(value_at(*written))
                    places[offset] = batch
                    offset += batch.length
                read.append(replace(extent, sum=combined(values)))
            laid.append(Joined(together, begin, offset - begin))
            turn += together
        return SwapExtents(BROKER, object, log, read, laid)

    def swap(self, command: SwapExtents) -> Swapped:
        """Swapped if nothing has come between, and not at all if anything has."""
        log, shared = self.state.replica.forest.logs.get(command.log), self.state.replica.references
        obstacle = True
        if log is not None:
            index, first, last = log.index, command.extents[0], command.extents[-1]
            since = index.at_or_before(first.first)
            now = [copied(index, at) for at in range(max(0, since), len(index))]
            obstacle = (
                [replace(each, sum=0) for each in now[: len(command.extents)]]
                != [replace(each, sum=0) for each in command.extents]
                or last.first + last.count > self.naive.logs[command.log].settled()
                or any(each.object in shared.shared for each in command.extents)
            )
            for joined in command.joined if not obstacle else ():
                latest = self.naive.logs[command.log].records[
                    index.end(since + joined.extents - 1) - 1
                ]
                self.spans = max(self.spans, latest.at - index.at[since])
                since += joined.extents
        outcome = self.apply(command)
        assert isinstance(outcome, Swapped)
        assert bool(outcome.why) == obstacle, (command, outcome)
        return outcome

    def written(self, object: int, offset: int) -> tuple[int, int]:
        return self.copies.get((object, offset), (object, offset))

    def batches(self, object: ObjectId, offset: int, length: int) -> list[tuple[int, Hashable]]:
        """What a witness knows a batch by."""
        return [
            (batch.count, self.written(object, at))
            for at, batch in self._within(object, offset, length)
        ]

    def _sum(self, object: ObjectId, offset: int, length: int) -> int:
        places = self._within(object, offset, length)
        return combined(value_at(*self.written(object, at)) for at, _ in places)

    def _within(self, object: ObjectId, offset: int, length: int) -> Iterator[tuple[int, Batch]]:
        end = offset + length
        while offset < end:
            batch = self.objects[object][offset]
            yield offset, batch
            offset += batch.length
        assert offset == end, "an extent is whole batches"

    def _judge(
        self, command: CommitObject, outcome: Committed, fates: list[list[BatchFate]]
    ) -> None:
        """Every batch has the fate it should have; what was withheld is noted, to be asked for."""
        assert held(self.state.replica, [row.log for row in command.rows], outcome) == []
        for row, result, expected in zip(command.rows, outcome.rows, fates, strict=True):
            for got, fate in zip(by_batch(row, result), expected, strict=True):
                match got, fate:
                    case Refused(), str():
                        assert got.code == fate, (row, got)
                    case Receipt(), Promise():
                        self.receipts.append((got, fate))
                    case _:
                        assert got == fate, (row, result, expected)

    def compare(self) -> None:
        """Everything that can be asked has the answer it should have, and every invariant holds."""
        replica = self.state.replica
        assert broken(replica) == []
        assert self.witness.look(replica) == []
        assert wrong_sums(replica, self._sum) == []
        assert list(replica.forest.logs) == list(self.naive.logs)
        for log in self.naive.logs.values():
            self._compare_description(log)
            if log.engine:
                self._compare_foreign(log)
                continue
            self._compare_records(log)
            self.compare_times(log.id, self.now - len(log.records))
            self._compare_cursors(log)
            self._compare_front(log)
        for receipt, promise in self.receipts:
            self._compare_receipt(receipt, promise)
        for id, grave in self.naive.gone.items():
            answer = self.state.answer(Describe(id))
            assert isinstance(answer, Refused)
            assert answer.code == grave.code
        self._compare_objects()
        compare_plans(self.state, self.naive, self.identify)

    def identify(self, slices: list[Slice]) -> list[tuple[int, int, int]]:
        """The records that slices stand for: object, offset of the batch, place in the batch."""
        found: list[tuple[int, int, int]] = []
        for piece in slices:
            records = list[tuple[int, int, int]]()
            for at, batch in self._within(piece.object, piece.offset, piece.length):
                place = self.written(piece.object, at)
                records += ((*place, nth) for nth in range(batch.count))
            part = records[piece.skip : piece.skip + piece.count]
            assert len(part) == piece.count
            found += part
        return found

    def _compare_records(self, log: List) -> None:
        settled = log.settled()
        answer = self.state.answer(Resolve(log.id, log.start, NEVER, NEVER, speculative=True))
        assert isinstance(answer, Resolved), answer
        assert (answer.start, answer.tail) == (log.start, len(log.records)), log.name
        assert answer.settled == settled, log.name
        generation, records = self.generations.get(log.id, (0, []))
        assert answer.generation >= generation
        if log.records[: len(records)] != records:
            assert answer.generation > generation, "who saw positions that moved can tell"
        self.generations[log.id] = answer.generation, [*log.records]
        position = log.start
        for piece in answer.slices:
            assert piece.first == position
            for turn, record in enumerate(log.records[position : position + piece.count]):
                told = piece.origin, piece.origin_first + turn
                assert told == (record.log, record.position), "an origin never changes"
            position += piece.count
        found = self.identify(answer.slices)
        assert found == [_identity(record) for record in log.records[log.start :]], log.name
        plain = self.state.answer(Resolve(log.id, log.start, NEVER, NEVER))
        assert isinstance(plain, Resolved)
        readable = [_identity(record) for record in log.records[log.start : settled]]
        assert self.identify(plain.slices) == readable, "a plain read stops at what is settled"

    def _compare_foreign(self, log: List) -> None:
        """Bolt answers no question about what a log of another engine holds."""
        id = log.id
        asked = Resolve(id, 0, 1, 1), ReadCursors(id), PositionAt(id, 0), Compare(id, id)
        for question in asked:
            answer = self.state.answer(question)
            assert isinstance(answer, Refused), question
            assert answer.code == "wrong-engine"

    def compare_part(self, id: LogId, start: int, count: int) -> None:
        answer = self.state.answer(Resolve(id, start, count, NEVER, speculative=True))
        assert isinstance(answer, Resolved), answer
        records = self.naive.logs[id].records[start:][:count]
        assert self.identify(answer.slices) == [_identity(record) for record in records]

    def _compare_cursors(self, log: List) -> None:
        """Whatever happened, a cursor is behind the very records that its consumer has read."""
        positions = {name: len(read) for name, read in log.cursors.items()}
        choices = {name: log.on_promote(name) for name in log.cursors}
        assert self.state.answer(ReadCursors(log.id)) == Cursors(positions, choices)
        for read in log.cursors.values():
            assert log.records[: len(read)] == read

    def _compare_front(self, log: List) -> None:
        """What came through a front is found by its offset, and its last ids are known."""
        known, front = self.state.replica.forest.logs[log.id].front, log.front
        assert (known is None) == (front is None)
        if known is None or front is None:
            return
        assert (known.epoch, known.number) == (front.epoch, front.number)
        assert known.records == len(front.records)
        assert known.ids() == front.listed()
        for offset, record in enumerate(front.records):
            receipt = self.state.answer(FindReceipt(log.id, offset))
            assert isinstance(receipt, Receipt)
            self._compare_receipt(receipt, Promise(log.id, record))
        beyond = self.state.answer(FindReceipt(log.id, len(front.records)))
        assert isinstance(beyond, Refused)

    def _compare_description(self, log: List) -> None:
        answer = self.state.answer(Describe(log.name))
        assert isinstance(answer, Description), answer
        promotable = {fork.name for fork in self.naive.logs.values() if fork.promotable}
        held = log.held_from() is not None
        assert (answer.append_blocked_by in promotable) == held
        assert (answer.undecided in promotable) == (held or bool(log.undecided()))
        assert (
            answer.id,
            answer.kind,
            answer.parent,
            answer.fork_point,
            answer.start,
            answer.tail,
            answer.settled,
            answer.own_records,
            answer.promotable,
            answer.depth,
            answer.forks,
            answer.expires_at,
            answer.quota,
            answer.owner,
            answer.engine,
            answer.settings,
        ) == (
            log.id,
            log.kind,
            log.parent.name if log.parent else None,
            log.fork_point,
            log.start,
            len(log.records),
            log.settled(),
            log.own_records,
            log.promotable,
            log.depth,
            len(log.children),
            log.expires_at,
            log.quota,
            log.owner,
            log.engine or BOLT,
            found_at(log),
        ), log.name

    def _compare_receipt(self, receipt: Receipt, promise: Promise) -> None:
        answer = self.state.answer(ResolveReceipt(receipt))
        try:
            log, position = self.naive.whereabouts(promise)
        except Refusal as refusal:
            code = refusal.codes[0]
        else:
            if position < log.settled():
                assert answer == Settled(log.name, position)
                return
            code = "receipt-pending"
        assert isinstance(answer, Refused)
        assert answer.code == code

    def _compare_objects(self) -> None:
        """What can be read is kept; what no log needs for itself or its forks is garbage (D6)."""
        garbage = self.state.replica.references.garbage.keys()
        logs = self.naive.logs.values()
        told = {
            entry.command.object
            for entry in self.applied
            if isinstance(entry.command, CommitObject | SwapExtents)
        }
        assert told - referenced(self.state.replica) == garbage
        needed = {
            (record.object, record.offset)
            for log in logs
            for record in log.records[log.needed_from() :]
        }
        for object in told:
            places = self.objects[object]
            if not any(self.written(object, offset) in needed for offset in places):
                assert object in garbage

    def compare_times(self, id: LogId, at: int) -> None:
        """All that was committed before a time lies before its position; where extents were joined,
        perhaps a little more.
        """
        log = self.naive.logs[id]
        records = log.records[: log.settled()]
        since = (place for place in range(log.start, len(records)) if records[place].at >= at)
        exact = next(since, len(records))
        answer = self.state.answer(PositionAt(id, at))
        assert isinstance(answer, At)
        assert answer.position >= exact
        assert all(record.at < at + self.spans for record in records[exact : answer.position])

    def restart(self) -> None:
        """Go on from a snapshot: nobody can tell."""
        image = snapshot.save(self.state.replica)
        reborn = State("c", self.limits)
        reborn.replica = snapshot.load(image, self.limits)
        assert snapshot.save(reborn.replica) == image
        self.state = reborn

    def replay(self) -> None:
        """The same entries give the same state, byte for byte (B12)."""
        other = State("c", self.limits)
        for entry in self.applied:
            if not isinstance(other.apply(entry), Refused):
                other.apply(entry)
        assert snapshot.save(other.replica) == snapshot.save(self.state.replica)


def found_at(log: List) -> EngineSettings | None:
    """A log's settings, with the addresses and the cluster that a description fills in."""
    if log.settings is None:
        return None
    count = log.settings.sequencers if log.settings.embedded else 0
    addresses = tuple(f"/{log.id}/sequencer-{n}" for n in range(count)) or log.settings.addresses
    return replace(log.settings, addresses=addresses, cluster=log.settings.cluster or "c")


def _identity(record: Record) -> tuple[int, int, int]:
    return record.object, record.offset, record.nth
