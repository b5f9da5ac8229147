"""Ways to get a lazy front wrong: each breaks one rule, where one function holds it."""

# Breaking what others keep to themselves is the purpose here.
# pyright: reportPrivateUsage=false

from typing import Any

from msgspec.structs import replace

from anabranch.core.bolt.front.committing import Committing
from anabranch.core.bolt.logs import fronts
from anabranch.core.bolt.logs.forest import Log
from anabranch.core.bolt.logs.front import Front
from anabranch.core.bolt.protocol.commands import Row
from anabranch.core.bolt.protocol.fronts import EndFront, FrontOpened, OpenFront
from anabranch.core.bolt.state import state
from anabranch.core.errors.refused import Refused
from anabranch_sim.erwin import mutants as of_erwin
from anabranch_sim.world.mutants import Function, Mutant


def _of_any_epoch(original: Function) -> Function:
    """The log takes batches of a view before the one that it was opened for."""

    def refusal(log: Log, row: Row) -> Refused | None:
        assert log.front is not None
        assert row.front is not None
        refused: Refused | None = original(log, row)
        return None if row.front.epoch < log.front.epoch else refused

    return refusal


def _twice(original: Function) -> Function:
    """The log takes a batch again that was sent again."""

    def refusal(log: Log, row: Row) -> Refused | None:
        front, mark = log.front, row.front
        assert front is not None
        assert mark is not None
        if mark.epoch == front.epoch and mark.number == front.number:
            front.number -= 1
        refused: Refused | None = original(log, row)
        return refused

    return refusal


def _at_once(original: Function) -> Function:
    """The log forgets a batch's ids before all replicas have dropped them."""

    def release(self: Front, upto: int) -> None:
        original(self, upto)
        self.lists.clear()

    return release


def _without_ids(original: Function) -> Function:
    """The ring isn't cleared of what the log holds."""

    def opened(replica: Any, command: OpenFront) -> FrontOpened:
        return replace(original(replica, command), ids=[])

    return opened


def _before_the_log(original: Function) -> Function:
    """A batch is dropped from the rings when it is sent."""

    def send(self: Committing, batch: Any, **more: Any) -> None:
        original(self, batch, **more)
        if self.batches and self.batches[0] is batch:
            self._committed(batch.number)

    return send


def _whatever_the_ring_holds(_: Function) -> Function:
    def end(self: Committing) -> None:
        if self.opened and not (self._ends or self.over or self.ended):
            self._ends = True
            self._questions.ask(EndFront(self._log, self.epoch, self._end), self._on_end)

    return end


_OF_ERWIN = {
    "a sealed member goes on",
    "stable when one other has dropped it",
    "a drop is of what was there alone",
    "a ring isn't handed over",
    "lives are all the same",
    "acknowledged before it is journaled",
    "a tail leaves the ring out",
    "what was dropped is taken again",
    "one lost member gives up a view",
}
"""Broken rules of the sequencing layer that both lazy logs stand on."""

MUTANTS = [
    *(each for each in of_erwin.MUTANTS if each.name in _OF_ERWIN),
    Mutant("batches of an earlier view are taken", fronts, "refusal", _of_any_epoch),
    Mutant("a batch is taken twice", fronts, "refusal", _twice),
    Mutant("ids are forgotten at once", Front, "release", _at_once),
    Mutant("an opening tells no ids", state._DO, OpenFront, _without_ids),
    Mutant("a front ends before its ring is empty", Committing, "end", _whatever_the_ring_holds),
    Mutant("dropped before it is committed", Committing, "_send", _before_the_log),
]
