"""Ways to get a forkable log wrong: each breaks one rule, where one function holds it."""

# Breaking what others keep to themselves is the purpose here.
# pyright: reportPrivateUsage=false

from contextlib import suppress
from typing import Any, cast

from anabranch.core.bolt.broker.copies import Compacting
from anabranch.core.bolt.broker.inquiries import Correspondence
from anabranch.core.bolt.broker.read_path.subscriptions import Subscriptions
from anabranch.core.bolt.broker.write_path.commits import Writing, WrittenObject
from anabranch.core.bolt.logs import lineage
from anabranch.core.bolt.logs.forest import Forest, Log
from anabranch.core.bolt.logs.index import Index
from anabranch.core.bolt.logs.tails import LazyTailTree, Tail
from anabranch.core.bolt.metadata import compaction
from anabranch.core.bolt.metadata.leader import Metadata
from anabranch.core.bolt.protocol.commands import (
    Batch,
    ForkLog,
    Promote,
    Receipt,
    Row,
    Sequenced,
)
from anabranch.core.bolt.protocol.compaction import SwapExtents
from anabranch.core.bolt.protocol.letters import Applied
from anabranch.core.bolt.state import forks, positions, replica, retention, snapshot, state
from anabranch.core.bolt.state import swap as swapping
from anabranch.core.bolt.state.references import References
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.bolt.state.state import State
from anabranch.core.errors import NotPromotable, StorageFailed
from anabranch.core.machine import Effects, Send
from anabranch.core.producers import Producer
from anabranch.core.types import NEVER, Kind, LogId, ObjectId, Position
from anabranch.shell.journal import file_journal
from anabranch_sim.world.mutants import Function, Mutant, returning


def _unsynced(_: Function) -> Function:
    def append(self: Any, first: int, entries: Any) -> None:
        group, mark = file_journal.journal.group(self._header, self.mark, first, entries)
        self._fill(self.end + len(group) + file_journal.SEAL_BYTES)
        self._file.write(group, self.end)
        self.end += len(group)
        self.mark = mark

    return append


def _believing(_: Function) -> Function:
    def append(self: Any, first: int, entries: Any) -> None:
        group, mark = file_journal.journal.group(self._header, self.mark, first, entries)
        self._fill(self.end + len(group) + file_journal.SEAL_BYTES)
        self._file.write(group, self.end)
        with suppress(StorageFailed):
            self._file.sync()
        self.end += len(group)
        self.mark = mark

    return append


def _answering_early(original: Function) -> Function:
    def journal_group(self: Metadata) -> Effects:
        effects: Effects = original(self)
        if not effects:
            return effects
        scratch = State(self.state.replica.cluster, self.limits)
        scratch.replica = snapshot.load(snapshot.save(self.state.replica), self.limits)
        answers = tuple(
            Send(proposal.sender, Applied(proposal.token, scratch.apply(proposal.entry)))
            for proposal in self.group
            if proposal.sender
        )
        return (*answers, *effects)

    return journal_group


def _committing_early(original: Function) -> Function:
    def put(self: Writing, written: WrittenObject) -> None:
        original(self, written)
        written.durable = True
        self._commit_next()

    return put


def _in_any_order(_: Function) -> Function:
    def commit_next(self: Writing) -> None:
        for written in list(self._line):
            if written.durable:
                self._line.remove(written)
                self._commit(written)

    return commit_next


def _as_they_come(original: Function) -> Function:
    """Batches that were not seen before are taken whatever their sequence is."""

    def known(replica: Replica, log: Log, batch: Batch, position: Position, at: int) -> Any:
        producer = log.producers.get(batch.producer)
        if producer is None:
            producer = log.producers[batch.producer] = Producer(batch.epoch, at)
        if producer.place(batch.sequence) is None:
            producer.next = batch.sequence
        return original(replica, log, batch, position, at)

    return known


def _never_known(original: Function) -> Function:
    def known(replica: Replica, log: Log, batch: Batch, position: Position, at: int) -> Any:
        producer = log.producers.get(batch.producer)
        if producer is not None and batch.sequence < producer.next:
            return None
        return original(replica, log, batch, position, at)

    return known


def _past_its_point(original: Function) -> Function:
    def severed_point(replica: Replica, parent: Log, command: ForkLog) -> Position:
        point: Position = original(replica, parent, command)
        return min(point + 1, replica.forest.tail(parent))

    return severed_point


def _without_the_last(original: Function) -> Function:
    def interleave(parent: Index, child: Index, id: LogId | None) -> Index:
        merged: Index = original(parent, child, id)
        merged.replace_from(len(merged) - 1, Index())
        return merged

    return interleave


def _parents_order_first(original: Function) -> Function:
    """The parent's records, then the fork's: the whole, but not in the order that readers saw."""

    def interleave(parent: Index, child: Index, id: LogId | None) -> Index:
        merged: Index = original(parent, child, id)
        mine = list(zip(parent.object, parent.offset, parent.length, parent.counts(), strict=True))
        theirs = list(zip(child.object, child.offset, child.length, child.counts(), strict=True))
        shuffled = Index()
        position = merged.first[0] if len(merged) else 0
        if len(merged) != len(mine) + len(theirs) or not _contiguous(merged):
            return merged
        for object, offset, length, count in mine + theirs:
            shuffled.append(position, count, ObjectId(object), offset, length, merged.at[0])
            position += count
        return shuffled

    return interleave


def _without_origins(original: Function) -> Function:
    def interleave(parent: Index, child: Index, id: LogId | None) -> Index:
        return cast("Index", original(parent, child, None))

    return interleave


def _contiguous(index: Index) -> bool:
    return index.end(len(index) - 1) - index.first[0] == sum(index.counts())


def _siblings_left_behind(original: Function) -> Function:
    def absorb(self: LazyTailTree, parent: Tail, child: Tail) -> None:
        records = self.tail(child) - self.tail(parent)
        self.add(parent, -records)
        if parent.up is None:
            parent.lazy += records
            if parent.right is not None:
                parent.right.lazy -= records
        else:
            parent.value += records
        self.add(child, records)
        original(self, parent, child)

    return absorb


def _only_itself(original: Function) -> Function:
    def append(self: LazyTailTree, log: Tail, count: int) -> int:
        if log.up is None:
            return original(self, log, count)
        first = self.tail(log)
        log.value += count
        return first

    return append


def _in_the_parents_tour(original: Function) -> Function:
    def add(self: Forest, log: Log) -> None:
        if log.kind is Kind.SEVERED and log.parent is not None:
            log.place = self.tails.fork(log.parent.place, self.tails.tail(log.place))
        original(self, log)

    return add


def _whoever_asks(original: Function) -> Function:
    def refusal(forest: Forest, row: Row, log: Log | None) -> Any:
        return original(forest, row, log) if log is None else None

    return refusal


def _up_to_the_tail(original: Function) -> Function:
    def settled(self: Forest, log: Log) -> tuple[Position, Log | None]:
        if log.promotable_forks:
            return self.tail(log), None
        return original(self, log)

    return settled


def _of_ancestors_only(original: Function) -> Function:
    """A fork beside an undecided one may be read to its tail."""

    def inherited_limit(self: Forest, log: Log) -> tuple[Position, Log | None]:
        return (NEVER, None) if not log.promotable_forks else original(self, log)

    return inherited_limit


def _told_at_once(original: Function) -> Function:
    def plain(result: Any) -> Any:
        return result.provisional if isinstance(result, Receipt) else result

    def sequence(*args: Any) -> tuple[int, Any]:
        extents, result = original(*args)
        if isinstance(result, Sequenced):
            return extents, Sequenced([plain(each) for each in result.batches])
        return extents, plain(result)

    return sequence


def _sparing_a_child(original: Function) -> Function:
    def squash(replica: Replica, top: Log, reason: str) -> None:
        for heir in list(top.continuous_forks()):
            del top.children[heir.id]
            heir.parent = top.parent
            if top.parent is not None:
                top.parent.children[heir.id] = heir
            break
        original(replica, top, reason)

    return squash


def _sparing_rivals(original: Function) -> Function:
    def squash(replica: Replica, top: Log, reason: str) -> None:
        if not reason.endswith("was promoted"):
            original(replica, top, reason)

    return squash


def _promoting_anything(original: Function) -> Function:
    def promote(replica: Replica, command: Promote) -> Any:
        try:
            return original(replica, command)
        except NotPromotable:
            log = replica.forest.find(command.log)
            if log.kind is not Kind.CONTINUOUS:
                raise
            log.promotable = True
            replica.forest.undecided += 1
            return original(replica, command)

    return promote


def _at_the_first_drop(original: Function) -> Function:
    def dropped(self: References, objects: Any, at: int, lengths: Any) -> None:
        named = list(objects)
        original(self, named, at, lengths)
        for object in named:
            self.garbage.setdefault(ObjectId(object), at)

    return dropped


def _at_once(original: Function) -> Function:
    def deletable(self: References, before: int, count_max: int) -> Any:
        return original(self, NEVER, count_max)

    return deletable


def _for_itself(_: Function) -> Function:
    def needed_from(log: Log) -> Position:
        return log.start

    return needed_from


def _half_as_long(original: Function) -> Function:
    def expire_at(self: Replica, log: Log, at: int) -> None:
        original(self, log, at - (at - self.at) // 2)

    return expire_at


def _where_it_was(_: Function) -> Function:
    def replay(shifts: Any, since: int, until: int, name: str, position: Position) -> Position:
        return position

    return replay


def _without_memory(original: Function) -> Function:
    def apply(self: State, entry: Any) -> Any:
        self.replica.requests.clear()
        return original(self, entry)

    return apply


def _without_producers(_: Function) -> Function:
    def load_producers(saved: Any) -> dict[int, Any]:
        return {}

    return load_producers


def _with_what_was_cached(original: Function) -> Function:
    def lineage_of(forest: Forest, log: Log, upto: Position) -> Any:
        cached = log.lineage
        if isinstance(cached, lineage.Lineage) and cached.upto >= upto:
            return cached
        return original(forest, log, upto)

    return lineage_of


def _of_any_generation(_: Function) -> Function:
    def same_generation(self: Subscriptions, subscription: Any, answer: Any) -> bool:
        subscription.generation = answer.generation
        self._advance(subscription, answer.tail, answer.settled)
        return True

    return same_generation


def _to_the_tail(original: Function) -> Function:
    def pieces(index: Index, extent: int, settled: Position, before: int) -> Any:
        return original(index, extent, NEVER, before)

    return pieces


def _the_last_first(original: Function) -> Function:
    def put(self: Compacting, copy: Any) -> None:
        copy.batches.reverse()
        original(self, copy)

    return put


def _swapping_early(original: Function) -> Function:
    """The copy is proposed when its object is on its way; what becomes of that is not looked at."""

    def put(self: Compacting, copy: Any) -> None:
        original(self, copy)
        self.landed()

    return put


def _to_nobody(original: Function) -> Function:
    def landed(self: Writing, object: ObjectId) -> None:
        if object in self._flying:
            original(self, object)

    return landed


def _failing_for_nobody(original: Function) -> Function:
    def crashed(self: Writing, object: ObjectId, error: Any) -> None:
        if object in self._flying:
            original(self, object, error)

    return crashed


def _swapped_anew(original: Function) -> Function:
    def swap(replica: Replica, command: SwapExtents) -> Any:
        for broker in replica.brokers.values():
            broker.swapped = None
        return original(replica, command)

    return swap


def _of_the_first(_: Function) -> Function:
    def of_the_first(index: Index, first: int, extents: Any) -> int:
        return index.sum[first]

    return of_the_first


MUTANTS = [
    Mutant("journal acknowledges before its sync", file_journal._Segment, "append", _unsynced),
    Mutant("journal believes a failed sync", file_journal._Segment, "append", _believing),
    Mutant("answered before it is durable", Metadata, "_journal_group", _answering_early),
    Mutant("commit before the object is written", Writing, "_put", _committing_early),
    Mutant(
        "commits in any order",
        Writing,
        "_commit_next",
        _in_any_order,
        Mutant("batches as they come", positions, "_known", _as_they_come),
    ),
    Mutant("a batch sent again is appended again", positions, "_known", _never_known),
    Mutant("requests forgotten", State, "apply", _without_memory),
    Mutant("snapshot loses producers", snapshot, "_load_producers", _without_producers),
    Mutant("severed fork begins past its point", forks, "_severed_point", _past_its_point),
    Mutant("severed fork goes on inheriting", Forest, "add", _in_the_parents_tour),
    Mutant("promote drops a record", forks, "interleave", _without_the_last),
    Mutant("promote orders records anew", forks, "interleave", _parents_order_first),
    Mutant("promote forgets where records came from", forks, "interleave", _without_origins),
    Mutant("promote forgets +k on siblings", LazyTailTree, "absorb", _siblings_left_behind),
    Mutant("tail not told to descendants", LazyTailTree, "append", _only_itself),
    Mutant("blocked sibling takes an append", positions, "_refusal", _whoever_asks),
    Mutant("parent read past the fork point", Forest, "settled", _up_to_the_tail),
    Mutant("sibling read past the fork point", Forest, "inherited_limit", _of_ancestors_only),
    Mutant("position in place of a receipt", positions, "_sequence", _told_at_once),
    Mutant("receipt resolved to where it was", replica, "replay", _where_it_was),
    Mutant("squash leaves a descendant", forks, "_squash", _sparing_a_child),
    Mutant("promote leaves the rivals", forks, "_squash", _sparing_rivals),
    Mutant("any continuous fork is promoted", state._DO, Promote, _promoting_anything),
    Mutant("time to live is half as long", Replica, "expire_at", _half_as_long),
    Mutant("trim drops what a fork needs", retention, "needed_from", _for_itself),
    Mutant("object in use is garbage", References, "dropped", _at_the_first_drop),
    Mutant("garbage goes without grace", References, "deletable", _at_once),
    Mutant("look-up outlives a promotion", lineage, "lineage_of", _with_what_was_cached),
    Mutant("speculation is never failed", Subscriptions, "_fail", returning(None)),
    Mutant("tokens are the same in each life", Correspondence, "begin", returning(None)),
    Mutant("copied batches change their order", Compacting, "_put", _the_last_first),
    Mutant("extents swapped that are others by now", swapping, "_difference", returning("")),
    Mutant("joined extents have the first one's set sum", swapping, "_sum", _of_the_first),
    Mutant("extents swapped a second time", state._DO, SwapExtents, _swapped_anew),
    Mutant(
        "extents joined that a promotion parts",
        compaction,
        "_pieces",
        _to_the_tail,
        Mutant("what isn't settled may move", swapping, "may_move", returning(True)),
    ),
    Mutant(
        "swap before the copy is written",
        Compacting,
        "_put",
        _swapping_early,
        Mutant(
            "nobody waits for a PUT",
            Writing,
            "landed",
            _to_nobody,
            Mutant("nor for its failure", Writing, "crashed", _failing_for_nobody),
        ),
    ),
]

BY_LETTER = [
    Mutant("pages of any generation", Subscriptions, "_same_generation", _of_any_generation),
]
"""Found by one seed in some thousands: a promotion has to be heard of in a page before the watch
tells of it, by a subscriber with speculative records. A test that writes the letters itself finds
it (tests/simulation/test_mutants.py).
"""
