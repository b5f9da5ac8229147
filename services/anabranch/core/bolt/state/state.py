"""The replicated state of all logs: entries of the journal in, outcomes out (AgileLog, 5.2).

`apply` is the only way it changes, and the same entries in the same order give the same state,
byte for byte (B12). A command that can't be granted changes nothing. What each command does is in
its own file: `sequencing` (commits), `forking` (forks, promote, squash), `retention` (trim,
garbage), `swapping` (extents copied together); queries are in `questions`.
"""

from collections.abc import Callable

from anabranch.core.bolt.logs import fronts, writers
from anabranch.core.bolt.protocol.commands import (
    Adopt,
    CommitCursor,
    CommitObject,
    Configure,
    CreateLog,
    DeleteCursor,
    DeleteLog,
    Done,
    DrainBroker,
    Entry,
    Epoch,
    Expire,
    FindBroker,
    ForgetBroker,
    ForgetObjects,
    ForkLog,
    Guarded,
    LoseBroker,
    Outcome,
    Promote,
    PromoteIf,
    RaiseFormat,
    RegisterBroker,
    SetAppends,
    SetQuota,
    SetSettings,
    Squash,
    Trim,
)
from anabranch.core.bolt.protocol.compaction import SwapExtents
from anabranch.core.bolt.protocol.compactors import (
    COMPACTOR_PREFIX,
    COMPACTORS_FORMAT,
    EndCompactor,
    LapseCompactors,
    RegisterCompactor,
    RenewCompactor,
)
from anabranch.core.bolt.protocol.fronts import ConfigureFront, EndFront, LeadFront, OpenFront
from anabranch.core.bolt.protocol.marks import CompleteVersion, ReleaseWriter
from anabranch.core.bolt.protocol.queries import Answer, Query
from anabranch.core.bolt.protocol.scans import (
    BeginPlan,
    EndPlan,
    EraseGarbage,
    LapsePlans,
    RenewPlan,
)
from anabranch.core.bolt.state import (
    answers,
    catalogue,
    cursors,
    forks,
    positions,
    quotas,
    retention,
    swap,
)
from anabranch.core.bolt.state.replica import BrokerRecord, Replica
from anabranch.core.bolt.state.requests import is_kept
from anabranch.core.bolt.state.scans import compactors, plans
from anabranch.core.errors import (
    AnabranchError,
    BadRequest,
    Deposed,
    Overloaded,
    RequestReused,
    TooMany,
    UnknownBroker,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits

EVENED_FORMAT = 2
"""From this one on, whoever comes to the pool gets its share."""


class State:
    """Applies commands to a replica of everything the metadata know."""

    def __init__(self, cluster: str, limits: Limits) -> None:
        self.replica = Replica(cluster, limits)

    def apply(self, entry: Entry) -> Outcome:
        """Do what the entry asks, once: a request id seen before gets its first outcome.

        If it asks for something else than it did then, it is refused. A refusal that may pass isn't
        remembered, or trying again would be in vain.
        """
        replica = self.replica
        replica.at = max(replica.at, entry.at)
        replica.applied += 1
        if not entry.request:
            return self._attempt(entry)
        retention.prune(replica)
        try:
            known = replica.requests.outcome(entry.request, entry.digest)
        except RequestReused as reused:
            return Refused.of(reused)
        if known is not None:
            return known
        if not replica.requests.has_room(replica.at, replica.limits):
            return Refused.of(
                Overloaded("requests remembered", replica.limits.requests_max, "requests_max")
            )
        outcome = self._attempt(entry)
        if is_kept(outcome, replica.format):
            replica.requests.remember(entry.request, replica.at, outcome, entry.digest)
        return outcome

    def answer(self, query: Query) -> Answer:
        try:
            return answers.answer(self.replica, query)
        except AnabranchError as error:
            return Refused.of(error)

    def _attempt(self, entry: Entry) -> Outcome:
        try:
            return _DO[type(entry.command)](self.replica, entry.command)
        except AnabranchError as error:
            return Refused.of(error)


def _register_broker(replica: Replica, command: RegisterBroker) -> Epoch:
    if command.broker.startswith(COMPACTOR_PREFIX) and replica.format >= COMPACTORS_FORMAT:
        raise BadRequest(f"a broker called {command.broker}", "compactors are called so")
    replica.broker_epochs += 1
    replica.brokers[command.broker] = BrokerRecord(replica.broker_epochs)
    replica.placement.register(command.broker, command.address, replica.broker_epochs)
    _even_out(replica, command.broker)
    assert command.broker in replica.placement.seats
    return Epoch(replica.broker_epochs)


def _drain_broker(replica: Replica, command: DrainBroker) -> Done:
    _check_life(replica, command)
    replica.placement.drain(command.broker, command.epoch)
    return Done()


def _forget_broker(replica: Replica, command: ForgetBroker) -> Done:
    """What it may still have written is an orphan from here on."""
    _check_life(replica, command)
    replica.placement.forget(command.broker)
    assert command.broker in replica.brokers, "whoever has a seat has a life"
    del replica.brokers[command.broker]
    return Done()


def _check_life(replica: Replica, command: DrainBroker | ForgetBroker) -> None:
    seat = replica.placement.seats.get(command.broker)
    if seat is None or seat.epoch != command.epoch:
        raise UnknownBroker(f"{command.broker} of epoch {command.epoch}")


def _lose_broker(replica: Replica, command: LoseBroker) -> Done:
    replica.placement.lose(command.broker, command.epoch)
    return Done()


def _find_broker(replica: Replica, command: FindBroker) -> Done:
    replica.placement.find(command.broker, command.epoch)
    _even_out(replica, command.broker)
    return Done()


def _even_out(replica: Replica, broker: str) -> None:
    """All members must place alike, those that know no better as well."""
    if replica.format >= EVENED_FORMAT and broker in replica.placement.seats:
        replica.placement.even_out(broker)


def _raise_format(replica: Replica, command: RaiseFormat) -> Done:
    assert command.format >= 0
    replica.raise_format(max(replica.format, command.format))
    return Done()


def _configure(replica: Replica, command: Configure) -> Done:
    replica.limit(command.limits)
    return Done()


def _guarded(replica: Replica, command: Guarded) -> Outcome:
    """Also if the command itself is then refused: the turn has passed on all the same."""
    assert not isinstance(command.command, Guarded), "a turn is taken once"
    limits, guards, scope = replica.limits, replica.guards, command.scope
    seen = guards.get(scope)
    if seen is not None and command.epoch < seen:
        raise Deposed(scope, command.epoch)
    if seen is None:
        if not 0 < len(scope) <= limits.owner_chars_max:
            reason = f"1 to {limits.owner_chars_max} characters were expected (owner_chars_max)"
            raise BadRequest("a scope", reason)
        if len(guards) >= limits.guard_scopes_max:
            raise TooMany("scopes", limits.guard_scopes_max, "guard_scopes_max")
    guards[scope] = command.epoch
    return _DO[type(command.command)](replica, command.command)


_DO: dict[type, Callable[[Replica, object], Outcome]] = {
    CommitObject: positions.commit,
    CreateLog: forks.create,
    DeleteLog: forks.delete,
    ForkLog: forks.fork,
    Promote: forks.promote,
    PromoteIf: forks.promote,
    Squash: forks.squash,
    Expire: forks.expire,
    Trim: retention.trim,
    ForgetObjects: retention.forget,
    RegisterBroker: _register_broker,
    DrainBroker: _drain_broker,
    LoseBroker: _lose_broker,
    FindBroker: _find_broker,
    RaiseFormat: _raise_format,
    Configure: _configure,
    CommitCursor: cursors.commit,
    DeleteCursor: cursors.delete,
    SetQuota: quotas.allot,
    SetSettings: catalogue.set_settings,
    SetAppends: catalogue.set_appends,
    SwapExtents: swap.swap,
    Adopt: catalogue.adopt,
    ForgetBroker: _forget_broker,
    Guarded: _guarded,
    LeadFront: fronts.lead,
    ConfigureFront: fronts.configure,
    OpenFront: fronts.open_front,
    EndFront: fronts.end_front,
    CompleteVersion: writers.complete,
    ReleaseWriter: writers.release,
    BeginPlan: plans.begin,
    RenewPlan: plans.renew,
    EndPlan: plans.end,
    LapsePlans: plans.lapse,
    EraseGarbage: plans.erase,
    RegisterCompactor: compactors.register,
    RenewCompactor: compactors.renew,
    EndCompactor: compactors.end,
    LapseCompactors: compactors.lapse,
}  # pyright: ignore[reportAssignmentType]
