"""Ways to get Belfast wrong: each breaks one rule, where one function holds it."""

# Breaking what others keep to themselves is the purpose here.
# pyright: reportPrivateUsage=false

from typing import Any

from msgspec.structs import replace

from anabranch.client.belfast.event_queue import EventQueue
from anabranch.client.belfast.merge import Merge, Piece
from anabranch.client.belfast.rollback import Rollback
from anabranch.client.session.records import Fail
from anabranch.core.belfast.ledger.ledger import Ledger, Member, Standing
from anabranch.core.belfast.ledger.placements import Placements
from anabranch.core.belfast.ledger.windows import Mode
from anabranch.core.belfast.protocol.letters import Report, Sealed
from anabranch.core.belfast.protocol.messages import Confirmed
from anabranch.core.belfast.sequencer import failures
from anabranch.core.belfast.sequencer.cuts import Progress
from anabranch.core.belfast.sequencer.failures import Failures
from anabranch.core.belfast.sequencer.idleness import Idleness
from anabranch.core.belfast.sequencer.lag import Lag
from anabranch.core.belfast.sequencer.membership import Membership
from anabranch.core.belfast.sequencer.policy import Office
from anabranch.core.belfast.sequencer.publisher import Publishing
from anabranch.core.belfast.shard.appends import Acknowledging
from anabranch.core.belfast.shard.deliveries import Delivering
from anabranch.core.belfast.shard.duplicates import Retries
from anabranch.core.belfast.shard.positions import Seating
from anabranch.core.belfast.shard.reports import Reporting
from anabranch.core.belfast.shard.streams import Stream
from anabranch.core.replication.log import Log
from anabranch.core.replication.primary import Primary
from anabranch.core.replication.replica import Replica, SealAnswer
from anabranch.core.types import NEVER
from anabranch_sim.world.mutants import Function, Mutant, returning


def _less_after_the_first(original: Function) -> Function:
    """The quota changes in the midst of a window."""

    def seat(self: Reporting, *asked: Any) -> Any:
        found = original(self, *asked)
        if found is None or not self.rounds or found.quota == 1:
            return found
        return replace(found, quota=found.quota - 1)

    return seat


def _its_own_alone(_: Function) -> Function:
    def count(self: Primary) -> None:
        if not self._closed:
            self._log.durable = max(self._log.durable, self._log.stored)

    return count


def _up_to_the_end_of_its_log(original: Function) -> Function:
    def settle(self: Acknowledging, confirmed: int) -> None:
        original(self, max(confirmed, min(self._replica.log.last, self._placements.end)))

    return settle


def _what_is_logged(original: Function) -> Function:
    def pump(self: Delivering, me: int, upto: int, confirmed: int) -> None:
        original(self, me, min(self._placements.end, self._log.last), confirmed)

    return pump


def _a_little_further(original: Function) -> Function:
    def slot(self: Delivering, local: int) -> int:
        return original(self, local) + (self._placements.position(local) is None)

    return slot


def _the_furthest(_: Function) -> Function:
    def find_lowest(self: Progress) -> None:
        reaches = self._reaches.values()
        self._lowest = max(reaches)
        self._holders = sum(reach == self._lowest for reach in reaches)

    return find_lowest


def _only_in_words(original: Function) -> Function:
    """It says that it is sealed, and goes on."""

    def seal(self: Replica, sender: str, epoch: int, answer: SealAnswer) -> None:
        answer(self.log.adopted, self.log.stored)

    return seal


def _who_holds_least(original: Function) -> Function:
    def log_of(sealed: Sealed) -> tuple[int, int]:
        epoch, last = original(sealed)
        return -epoch, -last

    return log_of


def _only_who_has_a_seat(original: Function) -> Function:
    """Who waits for one could stand in as well."""

    def change_view(self: Failures, failed: Any, now: int) -> None:
        if self._plan.members(Standing.SEATED, Standing.LEAVING) != failed:
            original(self, failed, now)

    return change_view


def _without_a_watermark(_: Function) -> Function:
    def edge(_: Merge) -> int:
        return NEVER

    return edge


def _up_to_the_horizon(original: Function) -> Function:
    def pump(self: Delivering, *asked: Any) -> None:
        original(self, *asked)
        early = Confirmed(self._ledger.view, self._ledger.horizon)
        for stream in self._open.values():
            stream.tell_confirmed(early, self._effects)

    return pump


def _of_whatever_view(original: Function) -> Function:
    def reported(self: Office, sender: str, report: Report) -> None:
        original(self, sender, replace(report, view=self.plan.ledger.view))

    return reported


def _without_a_word(original: Function) -> Function:
    def roll_back(self: Rollback, since: int) -> Any:
        kept = original(self, since)
        self._due = [each for each in self._due if not isinstance(each, Fail)]
        return kept

    return roll_back


def _by_the_last_alone(_: Function) -> Function:
    def left_by(_: Seating, me: Member) -> int:
        return me.placed

    return left_by


def _behind_a_hole(original: Function) -> Function:
    """Whoever asks for older records begins with the first whose place is known."""

    def below(self: Placements, position: int) -> int:
        if self.rows and position <= self.rows[0].first:
            return self.rows[0].base
        return original(self, position)

    return below


def _whole(_: Function) -> Function:
    def count_below(self: Piece, at: int) -> int:
        return len(self.records) if self.first < at else 0

    return count_below


_AT_REST = set[int]()
"""The quotas of leaders whose log is at rest."""


def _remembered(original: Function) -> Function:
    def review(self: Idleness, now: int) -> None:
        original(self, now)
        (_AT_REST.add if self.at_rest else _AT_REST.discard)(id(self._quotas))

    return review


def _back_to_free_will(original: Function) -> Function:
    """As releases before did: an order that predicts nothing, while the log is at rest."""

    def mode(self: Publishing) -> Mode:
        return Mode.FREE_WILL if id(self._quotas) in _AT_REST else original(self)

    return mode


def _whatever_rests(original: Function) -> Function:
    def arm(self: Reporting, *asked: Any) -> None:
        at_rest, self._following.at_rest = self._following.at_rest, False
        original(self, *asked)
        self._following.at_rest = at_rest

    return arm


def _as_if_awake(original: Function) -> Function:
    def look(self: Lag, now: int) -> Any:
        at_rest, self._idleness.at_rest = self._idleness.at_rest, False
        letters = original(self, now)
        self._idleness.at_rest = at_rest
        return letters

    return look


def _by_the_clock_alone(_: Function) -> Function:
    """However late letters, timers and syncs have been."""

    def patience(self: Membership, intervals: int, now: int, delay: int = 0) -> int:
        return self._rules.intervals(intervals)

    return patience


def _one_more(original: Function) -> Function:
    """A cut of free will counts a record that its shard hasn't reported."""

    def free_counts(self: Progress) -> Any:
        counts = original(self)
        return None if counts is None else (counts[0] + 1, *counts[1:])

    return free_counts


def _one_further(original: Function) -> Function:
    """A shard takes the position after its own for its records."""

    def placed_freely(self: Seating, *cut: Any) -> list[Any]:
        return [replace(row, first=row.first + 1) for row in original(self, *cut)]

    return placed_freely


MUTANTS = [
    Mutant("a free cut counts what isn't reported", Progress, "free_counts", _one_more),
    Mutant("free places are off by one", Seating, "_placed_freely", _one_further),
    Mutant("a quota changes within its window", Reporting, "_seat", _less_after_the_first),
    Mutant("durable is what its primary has", Primary, "count", _its_own_alone),
    Mutant("acknowledged before its cut", Acknowledging, "settle", _up_to_the_end_of_its_log),
    Mutant("what isn't durable is delivered", Delivering, "pump", _what_is_logged),
    Mutant("speculates beyond what is published", Delivering, "_slot", _a_little_further),
    Mutant("confirmed without a cut", Delivering, "pump", _up_to_the_horizon),
    Mutant("what the failed had reported counts", Progress, "forget", returning(None)),
    Mutant("a cut waits for the first alone", Progress, "_find_lowest", _the_furthest),
    Mutant("the one with least leads the shard", failures, "_log_of", _who_holds_least),
    Mutant("a failure is kept from subscribers", Delivering, "failed", returning(None)),
    Mutant("who failed keeps what was void", Seating, "obey", returning(False)),
    Mutant("logs that differ stay so", Log, "cut", returning(None)),
    Mutant("a batch sent again is logged again", Retries, "find", returning(None)),
    Mutant("what was cut back counts as there", Retries, "cut_back", returning(None)),
    Mutant("eras are kept from subscribers", Stream, "tell_eras", returning(None)),
    Mutant("merged without a watermark", Merge, "edge", _without_a_watermark),
    Mutant("no-ops by decree are filled once more", Ledger, "gap", returning(None)),
    Mutant("delivered again without a fail", Rollback, "_roll_back", _without_a_word),
    Mutant("what isn't known is passed over", Placements, "below", _behind_a_hole),
    Mutant("a piece is not split at the edge", Piece, "count_below", _whole),
    Mutant("predictions don't bound final", Rollback, "unconfirmed_from", returning(NEVER)),
    Mutant("a Confirm at hand counts as given", EventQueue, "_confirms", returning(False)),
    Mutant(
        "a log at rest predicts nothing",
        Idleness,
        "review",
        _remembered,
        also=Mutant("", Publishing, "_mode", _back_to_free_will),
    ),
    Mutant("a log at rest fills up with no-ops", Reporting, "_arm", _whatever_rests),
    Mutant("at rest nobody has to catch up at once", Lag, "look", _as_if_awake),
    Mutant("silence counts by the clock alone", Membership, "patience", _by_the_clock_alone),
]

BY_LETTER = [
    Mutant("sealed in words alone", Replica, "seal", _only_in_words),
    Mutant("the stamp of a view is ignored", Office, "_reported", _of_whatever_view),
    Mutant("only the last failure voids places", Seating, "_left_by", _by_the_last_alone),
]
"""No known seed finds these. A seal that does not bind loses records only where three letters
overtake one another, and a second failure leaves places only where a replica was away over both. A
report of an earlier view does no harm, because a shard that is back reports in another epoch. Tests
that write the letters themselves find them (tests/simulation/test_mutants.py).
"""

BY_ORDER = Mutant("nobody stands in who waits", Failures, "_change_view", _only_who_has_a_seat)
"""Found among all orders of a small deployment: seeds have luck too seldom."""
