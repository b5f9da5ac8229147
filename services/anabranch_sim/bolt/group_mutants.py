"""Ways to get a metadata group wrong, and whom it places what on; and what callers are told of
appends that aren't done.
"""

# Breaking what others keep to themselves is the purpose here.
# pyright: reportPrivateUsage=false

from collections.abc import Sequence
from typing import Any, cast

from anabranch.client.bolt.producer import Pledge
from anabranch.core.bolt.broker.broker import Broker
from anabranch.core.bolt.broker.inquiries import Correspondence
from anabranch.core.bolt.broker.write_path.appends import Appending
from anabranch.core.bolt.broker.write_path.open_object import Held
from anabranch.core.bolt.broker.write_path.parked import Parking
from anabranch.core.bolt.metadata import orphans
from anabranch.core.bolt.metadata.member import Member
from anabranch.core.bolt.state import catalogue, snapshot
from anabranch.core.bolt.state.placement import Placement, Seat
from anabranch.core.bolt.state.replica import BrokerRecord
from anabranch.core.machine import Effects, Elected, PersistFailed
from anabranch.core.types import NEVER, Nanoseconds
from anabranch_sim.world.coordinator import SimCoordinator
from anabranch_sim.world.etcd import SimEtcd
from anabranch_sim.world.mutants import Function, Mutant, being, returning

_FOR_EVER_MS = 1 << 30


def _for_ever(original: Function) -> Function:
    """The lease is believed to last."""

    def received(self: Member, now: Nanoseconds, sender: str, message: Any) -> Effects:
        self._until = NEVER
        return original(self, now, sender, message)

    return received


def _as_it_is(_: Function) -> Function:
    """Elected, whatever there is in the journal that it has not seen."""

    def catch_up(self: SimCoordinator, candidacy: int) -> None:
        self._fence = self._revision
        self._post(Elected(self._revision, self._until))

    return catch_up


def _refused_as_not_done(original: Function) -> Function:
    def answered(self: Member, now: Nanoseconds, event: Any) -> Effects:
        if isinstance(event, PersistFailed) and self.leader is not None:
            self._persisting = False
            return self._as_leader(now, event)
        return original(self, now, event)

    return answered


def _but_the_last(original: Function) -> Function:
    def follow(self: Member, first: int, entries: Sequence[bytes]) -> Effects:
        effects: Effects = original(self, first, entries[:-1])
        if self.index == first + len(entries) - 2:
            self.index += 1
        return effects

    return follow


def _hardly(original: Function) -> Function:
    def remember(self: BrokerRecord, object: Any, number: int, result: Any) -> None:
        self.committed.clear()
        original(self, object, number, result)

    return remember


def _anybody(_: Function) -> Function:
    def ready(self: Placement) -> list[Seat]:
        return [seat for _, seat in sorted(self.seats.items())]

    return ready


def _among_roots(original: Function) -> Function:
    def for_tree(self: Placement) -> Seat | None:
        return next((seat for seat in self._ready() if seat.roots), original(self))

    return for_tree


def _refused_and_kept(original: Function) -> Function:
    """A blocked append is refused, and appended all the same once the fork is decided."""

    def expire(self: Parking, lot: Any, held: Held) -> None:
        original(self, lot, held)
        appending: Appending = cast("Any", self.on_refused).__self__
        appending.held += 1
        appending.held_bytes += held.entry.length
        sizes = appending._log_bytes
        sizes[held.log] = sizes.get(held.log, 0) + held.entry.length
        lot.held[held.serial] = held
        self._tokens[held.token] = held
        lot.alarms[held.serial] = self._alarms.after(_FOR_EVER_MS, lambda: None)

    return expire


GROUP_MUTANTS = [
    Mutant("a blocked append is refused and kept", Parking, "_expire", _refused_and_kept),
    Mutant("what wasn't answered wasn't done", Pledge, "in_doubt", being(value=False)),
    Mutant("questions answered past the lease", Member, "_received", _for_ever),
    Mutant("leads before it has followed", SimCoordinator, "_catch_up", _as_it_is),
    Mutant("a zombie's group is journaled", SimEtcd, "leads", returning(True)),
    Mutant("a fenced group counts as not done", Member, "_answered", _refused_as_not_done),
    Mutant("goes on though it was deposed", Member, "_step_down", returning(())),
    Mutant("a standby leaves out an entry", Member, "_follow", _but_the_last),
    Mutant("an older member leads on", Member, "_give_up", returning(())),
    Mutant(
        "nothing is said again",
        Broker,
        "_led_by_another",
        returning(None),
        Mutant("not after a while either", Correspondence, "_repeat", returning(None)),
    ),
    Mutant(
        "a commit that comes twice is done twice",
        BrokerRecord,
        "remember",
        _hardly,
    ),
    Mutant("a broker that is gone is chosen", Placement, "_ready", _anybody),
    Mutant("forks are placed among roots", Placement, "_for_tree", _among_roots),
    Mutant("what is declared again is made again", catalogue, "known", returning(None)),
    Mutant("objects of living brokers are orphans", orphans, "split_id", returning((0, 0))),
    Mutant(
        "what is referred to is quarantined", orphans, "referenced", returning(frozenset[int]())
    ),
    Mutant("snapshot loses who serves what", snapshot, "_load_placement", returning(None)),
]
