"""Ways to get Erwin wrong: each breaks one rule, where one function holds it."""

# Breaking what others keep to themselves is the purpose here.
# pyright: reportPrivateUsage=false

from collections.abc import Sequence

from msgspec.structs import replace

from anabranch.core.erwin.orderer.pushing import Pushing
from anabranch.core.erwin.orderer.trims import Trims
from anabranch.core.erwin.protocol.letters import Push
from anabranch.core.erwin.protocol.messages import Data
from anabranch.core.erwin.shard.contents import Contents
from anabranch.core.erwin.shard.items import Head
from anabranch.core.erwin.shard.passages import Passage
from anabranch.core.erwin.shard.pushes import Pushes
from anabranch.core.erwin.shard.unordered import Unordered
from anabranch.core.sequencing.appends import Appends, Waiting
from anabranch.core.sequencing.controller.contacts import Contacts
from anabranch.core.sequencing.controller.draining import Draining
from anabranch.core.sequencing.controller.stragglers import Stragglers
from anabranch.core.sequencing.controller.views import Views
from anabranch.core.sequencing.drops import Drops
from anabranch.core.sequencing.member import Member
from anabranch.core.sequencing.positions import Positions
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.letters import Drop
from anabranch.core.sequencing.protocol.messages import FindPosition
from anabranch.core.sequencing.replica import SequencingReplica
from anabranch.core.sequencing.state.duplicates import Duplicates, KnownAppends
from anabranch.core.sequencing.state.entries import Began
from anabranch.core.sequencing.state.state import State, StateImage
from anabranch.core.sequencing.view import View
from anabranch.core.storage.black_box import Fold, Kind, Part, Whole, decode, encode
from anabranch.core.types import NEVER
from anabranch_sim.world.mutants import Function, Mutant, returning


def _though_it_is_sealed(_: Function) -> property:
    return property(lambda self: self.view is not None)


def _one_is_enough(original: Function) -> Function:
    def count(self: Drops) -> None:
        furthest = max((each.dropped for each in self._followers.values()), default=0)
        for each in self._followers.values():
            each.dropped = furthest
        original(self)

    return count


def _only_what_was_there(original: Function) -> Function:
    """A drop doesn't make its ids known to a member that hasn't had them yet."""

    def drop(
        self: State,
        ids: Sequence[AppendId],
        positions: Sequence[int],
        *,
        upto: int,
        now: int,
        shards: Sequence[str] = (),
    ) -> None:
        shards = shards or [""] * len(ids)
        there = [each for each in zip(ids, positions, shards, strict=True) if each[0] in self.ring]
        kept, places, names = [[each[part] for each in there] for part in range(3)]
        original(self, kept, places, upto=upto, now=now, shards=names)

    return drop


def _without_what_is_known(original: Function) -> Function:
    def image(self: State) -> StateImage:
        return replace(original(self), known=KnownAppends())

    return image


def _with_an_empty_ring(original: Function) -> Function:
    def image(self: State) -> StateImage:
        return replace(original(self), entries=[])

    return image


def _always_the_same(original: Function) -> Function:
    """Lives don't differ, so that nobody knows what a member has lost."""

    def born(self: Member) -> None:
        self.life = 1
        original(self)

    return born


def _at_once(original: Function) -> Function:
    """An append is answered before it is in the journal."""

    def take(self: Appends, asked: Waiting) -> None:
        original(self, asked)
        if asked.entry.id in self._askers:
            self._askers[asked.entry.id][1].clear()
            self._taken([asked.token], asked.entry.shard)

    return take


def _without_the_ring(_: Function) -> property:
    return property(lambda self: self.ordered)


def _before_it_is_stable(original: Function) -> Function:
    def find(self: Positions, token: int, message: FindPosition, _: int) -> None:
        original(self, token, message, NEVER)

    return find


def _behind_a_gap(original: Function) -> Function:
    def drop(self: SequencingReplica, sender: str, letter: Drop) -> None:
        first = min(letter.first, self._member.state.ordered)
        original(self, sender, replace(letter, first=first))

    return drop


def _always_the_first(original: Function) -> Function:
    """A leader that was restarted pushes under the fence that it had before."""

    def begin(self: Member) -> Began:
        self.begun = 0
        began: Began = original(self)
        return began

    return begin


def _held_by_one_shard(original: Function) -> Function:
    def order(self: Pushing) -> None:
        held = {number: cursor.held for number, cursor in self.cursors.items()}
        furthest = max(held.values(), default=0)
        for cursor in self.cursors.values():
            cursor.held = furthest
        original(self)
        for number, cursor in self.cursors.items():
            cursor.held = held[number]

    return order


def _over_a_gap(original: Function) -> Function:
    def push(self: Pushes, sender: str, letter: Push) -> None:
        if self._contents.storage.fence == letter.fence and letter.first > self.end:
            self._contents.mark(letter.first)
        original(self, sender, letter)

    return push


def _without_a_cut(original: Function) -> Function:
    def fence(self: Pushes, letter: Push) -> None:
        original(self, replace(letter, base=max(letter.base, self._contents.map.end)))

    return fence


def _all_that_is_logged(_: Function) -> property:
    return property(lambda self: self.map.end)


def _late_data(original: Function) -> Function:
    """What was bound to no-ops is taken after all."""

    def store(self: Unordered, token: int, message: Data) -> None:
        self._voided.ids.clear()
        original(self, token, message)

    return store


def _stored_as_a_no_op(original: Function) -> Function:
    """A replica that has a batch says so, though its row is bound to no-ops."""

    def store(self: Unordered, token: int, message: Data) -> None:
        bound = self._bound
        self._bound = {
            id: replace(each, voided=each.voided and id not in self._data)
            for id, each in bound.items()
        }
        try:
            original(self, token, message)
        finally:
            self._bound = bound

    return store


def _one_is_lost(_: Function) -> Function:
    def lost_all(self: Views, view: View) -> bool:
        return any(self._is_over(each) for each in view.members)

    return lost_all


def _whatever_is_asked(original: Function) -> Function:
    def begun(self: Trims, _: int) -> int:
        asked: int = original(self, NEVER)
        return asked + 5 if asked else 0

    return begun


def _of_any_life(_: Function) -> Function:
    def counts(self: Fold, part: Part) -> bool:
        if part.kind == Kind.OPENING:
            return part.before == self.life
        return part.kind == Kind.SNAPSHOT or part.index == self.last + 1

    return counts


def _that_came_twice(original: Function) -> Function:
    """A record counts whatever its number; entries are renumbered as they come."""

    def take(self: Fold, position: int, record: bytes) -> Whole | None:
        part = decode(record)
        if part is not None and part.kind == Kind.ENTRY and part.life == self.life:
            part = replace(part, number=self.number, index=self.last + 1)
            record = encode(part)
        return original(self, position, record)

    return take


def _always(_: Function) -> property:
    return property(lambda self: True)


def _empty_opening(original: Function) -> Function:
    """A new replica isn't given what clients sent before it came."""

    def open_(self: Unordered, epoch: int) -> None:
        data, self._data = self._data, {}
        original(self, epoch)
        self._data = data

    return open_


def _of_any_epoch(original: Function) -> Function:
    """Answers of one replica in an epoch and of another in the next make up an acknowledgement."""

    def check(self: Unordered, message: Data) -> None:
        original(self, replace(message, epoch=self._replica.epoch))

    return check


def _until_it_is_bound(original: Function) -> Function:
    """A batch is forgotten with its row, which a new fence may void."""

    def logged(self: Unordered, head: Head, content: bytes) -> None:
        original(self, head, content)
        for binding in self._bindings:
            self._remove(binding.id)

    return logged


def _by_what_is_ordered(original: Function) -> Function:
    def note(self: Stragglers, node: str, ordered: int, tail: int, now: int) -> None:
        original(self, node, ordered, ordered, now)

    return note


def _nobody_needs_it(_: Function) -> Function:
    """A sequencer ends when it is told to, without waiting for the view that does without it."""

    def is_needed(_: Draining) -> bool:
        return False

    return is_needed


MUTANTS = [
    Mutant(
        "a sealed member goes on",
        Member,
        "takes",
        _though_it_is_sealed,
        also=Mutant("", Member, "check_view", returning(None)),
    ),
    Mutant("stable when one other has dropped it", Drops, "_count", _one_is_enough),
    Mutant("a drop is of what was there alone", State, "drop", _only_what_was_there),
    Mutant("what is known isn't handed over", State, "image", _without_what_is_known),
    Mutant("a ring isn't handed over", State, "image", _with_an_empty_ring),
    Mutant("lives are all the same", Member, "born", _always_the_same),
    Mutant("acknowledged before it is journaled", Appends, "_take", _at_once),
    Mutant("a tail leaves the ring out", State, "tail", _without_the_ring),
    Mutant("a position is told that isn't stable", Positions, "find", _before_it_is_stable),
    Mutant("a drop behind a gap counts", SequencingReplica, "_drop", _behind_a_gap),
    Mutant("what was dropped is taken again", Duplicates, "find", returning(value=False)),
    Mutant("a restarted leader keeps its fence", Member, "begin", _always_the_first),
    Mutant("ordered when one shard holds it", Pushing, "_order", _held_by_one_shard),
    Mutant("a shard passes over a gap", Pushes, "push", _over_a_gap),
    Mutant("a new fence leaves what was pushed", Pushes, "_fence", _without_a_cut),
    Mutant("a shard answers what is logged alone", Contents, "durable", _all_that_is_logged),
    Mutant("what isn't stable is read", Contents, "readable", _all_that_is_logged),
    Mutant("other shards' rows are left out", Passage, "add_span", returning(None)),
    Mutant("data is taken after its no-op", Unordered, "store", _late_data),
    Mutant("what is bound to no-ops is acknowledged", Unordered, "store", _stored_as_a_no_op),
    Mutant("data of any epoch is taken", Unordered, "_check", _of_any_epoch),
    Mutant("data is kept until it is bound", Unordered, "logged", _until_it_is_bound),
    Mutant("an epoch has no opening", Unordered, "_open", _empty_opening),
    Mutant("a leader is no straggler", Stragglers, "note", _by_what_is_ordered),
    Mutant("one lost member gives up a view", Views, "lost_all", _one_is_lost),
    Mutant("a black box's records of an old life count", Fold, "_counts", _of_any_life),
    Mutant("a record that came twice counts twice", Fold, "take", _that_came_twice),
    Mutant("trimmed beyond what is stable", Trims, "begun", _whatever_is_asked),
    Mutant("who leaves isn't replaced first", Draining, "_is_needed", _nobody_needs_it),
]

BY_LETTER = [
    Mutant("a backup leads without the opening", Unordered, "may_be_sealed", _always),
    Mutant(
        "controllers wait for the end of who leaves",
        Contacts,
        "must_be_replaced",
        returning(value=False),
    ),
]
"""No known seed finds these. For the first the primary must be lost between the begin of its epoch
and the opening's arrival; the second makes the log slower and breaks no promise. Tests that write
the letters themselves find them (tests/simulation/test_mutants.py).
"""
