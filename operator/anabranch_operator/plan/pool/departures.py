"""Which brokers go, and when: what is useless at once, what serves one at a time and handed over.

A broker that serves is taken away only while all others of its pool are ready and enough of them
stay; if too few would, another is made first. It is drained, and deleted once the log service has
placed elsewhere what it served. A seat that drains is all the memory this needs.
"""

from collections.abc import Iterable, Iterator
from enum import IntEnum

from msgspec import Struct

from anabranch_operator.api.anabranch_names import MS, DeadlineExceeded, Nanoseconds, Unavailable
from anabranch_operator.api.conditions import Reason
from anabranch_operator.api.pods import RolloutPolicy
from anabranch_operator.plan.engine.actions import Action, Delete, DrainBroker
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.world import Pool, World
from anabranch_operator.plan.metadata.evictions import deadline, forgotten_at
from anabranch_operator.plan.pool.brokers import Broker, Crew, State, order
from anabranch_operator.plan.pool.demand import floor

ENDED_MS = 10_000
"""A pod that ended isn't replaced sooner after it was made: the next may end as well."""


class Cause(IntEnum):
    """Why a broker is to go, the more urgent first."""

    EVICTED = 0
    CORDONED = 1
    OUTDATED = 2
    SURPLUS = 3


WORDS = {
    Cause.EVICTED: "it is to leave its node",
    Cause.CORDONED: "its node is cordoned",
    Cause.OUTDATED: "the spec has changed",
    Cause.SURPLUS: "there is one too many",
}


class Obstacle(Struct, frozen=True):
    """Why nobody can go now, though somebody should."""

    reason: Reason
    message: str


class Departures(Struct, frozen=True):
    actions: tuple[Action, ...]
    surge: bool
    """One more is needed before anybody can go."""
    next: Broker | None
    """Who goes, or would."""
    cause: Cause | None
    obstacle: Obstacle | None


class _Yard:
    """What the rules below look at."""

    def __init__(
        self, world: World, pool: Pool, found: Crew, desired: int, now: Nanoseconds
    ) -> None:
        self.world = world
        self.found = found
        self.now = now
        self.desired = desired
        self.floor = floor(pool, desired)
        self.rolls = pool.spec.rollout.policy is RolloutPolicy.AUTO
        self.away = world.service.trouble
        self.doubted: tuple[str, ...] = ()

    def cause(self, broker: Broker) -> Cause | None:
        if broker.eviction is not None:
            return Cause.EVICTED
        if broker.cordoned:
            return Cause.CORDONED
        return Cause.OUTDATED if self.rolls and broker.outdated else None

    def is_overdue(self, broker: Broker) -> bool:
        eviction = broker.eviction
        return eviction is not None and deadline(self.world, eviction) <= self.now


def departures(
    world: World, pool: Pool, found: Crew, desired: int, now: Nanoseconds, troubles: Troubles
) -> Departures:
    yard = _Yard(world, pool, found, desired, now)
    yard.doubted = _doubted(troubles)
    useless = list(_useless(yard))
    gone = {each.pod.uid: None for each in useless}
    forced = [] if found.leaving(now) else _forced(yard, gone)
    gone |= {each.pod.uid: None for each in forced}
    candidate, cause = _candidate(yard, gone)
    cramped = candidate is not None and cause is not Cause.SURPLUS and _cramped(yard, candidate)
    surge = cramped and not found.leaving(now)
    surplus = list(_surplus(yard, desired + surge, gone))
    actions: list[Action] = [_delete(each) for each in (*found.drained, *useless, *surplus)]
    actions += [_dismiss(yard, each) for each in forced]
    obstacle = None
    if candidate is not None and cause is not None:
        obstacle = _obstacle(yard, candidate, cause, cramped=cramped)
        if obstacle is None and not _must_wait(yard, candidate, [*useless, *forced, *surplus]):
            actions.append(_dismiss(yard, candidate))
    return Departures(tuple(actions), surge, candidate, cause, obstacle)


def wakes(world: World, found: Crew) -> Iterator[Nanoseconds]:
    """When something changes by time alone."""
    if found.busy_until is not None:
        yield found.busy_until
    for each in found.staying:
        if each.health.overdue_at is not None:
            yield each.health.overdue_at
        if each.health.ended:
            yield _replaced_at(each)
        if each.eviction is not None:
            yield deadline(world, each.eviction)
            yield forgotten_at(each.eviction)


def _useless(yard: _Yard) -> Iterator[Broker]:
    """Those that serve nothing and won't, and that another would do better than."""
    for each in yard.found.staying:
        cause = yard.cause(each)
        unscheduled = each.state is State.STARTING and not each.health.placed
        if (
            (each.state is State.FAILING and cause is not None)
            or (each.health.ended and _replaced_at(each) <= yard.now)
            or (unscheduled and cause is Cause.OUTDATED)
        ):
            yield each
    stuck = _stuck(yard)
    if stuck is not None:
        yield stuck


def _stuck(yard: _Yard) -> Broker | None:
    """One that has had its time where others serve: another try, maybe on another node."""
    if yard.away is not None or not yard.found.ready or yard.found.of(State.STARTING):
        return None
    return next(
        (
            each
            for each in yard.found.of(State.FAILING)
            if each.health.overdue and each.health.placed and not each.health.ended
            if yard.cause(each) is None
        ),
        None,
    )


def _surplus(yard: _Yard, target: int, gone: dict[str, None]) -> Iterator[Broker]:
    """More than are wanted, of those that serve nothing."""
    staying = [each for each in yard.found.staying if each.pod.uid not in gone]
    unsound = [each for each in staying if not each.sound]
    if len(yard.found.ready) >= yard.desired:
        yield from unsound[: max(0, len(staying) - target)]
    starting = _last(each for each in staying if each.state is State.STARTING)
    starting.sort(key=lambda each: yard.cause(each) is None)
    excess = sum(each.sound for each in staying) - target
    yield from starting[: max(0, excess)]


def _forced(yard: _Yard, gone: dict[str, None]) -> list[Broker]:
    """The one that was to leave its node the longest, whatever stands in the way. One at a time: a
    pool never loses all of its brokers at once because somebody asked for all of them.
    """
    overdue = [each for each in yard.found.staying if yard.is_overdue(each)]
    return sorted((each for each in overdue if each.pod.uid not in gone), key=_rank)[:1]


def _candidate(yard: _Yard, gone: dict[str, None]) -> tuple[Broker | None, Cause | None]:
    """Of those that serve, who should go first: the most urgent, of them the least loaded."""
    here = [each for each in yard.found.of(State.READY, State.LOST) if each.pod.uid not in gone]
    wanted = [(cause, each) for each in here if (cause := yard.cause(each)) is not None]
    if wanted:
        cause, broker = min(wanted, key=lambda each: (each[0], *_rank(each[1])))
        return broker, cause
    sound = [each for each in here if each.sound]
    if len(sound) > yard.desired:
        return min(_last(sound), key=lambda each: each.load), Cause.SURPLUS
    return None, None


def _cramped(yard: _Yard, candidate: Broker) -> bool:
    """Would too few stay, also when those that start are ready? Or has one more been made for that
    reason, which isn't ready yet?
    """
    if _ready_beside(yard, candidate) >= yard.floor:
        return False
    sound = len(yard.found.sound)
    return sound - candidate.sound < yard.floor or sound > yard.desired


def _obstacle(yard: _Yard, candidate: Broker, cause: Cause, *, cramped: bool) -> Obstacle | None:
    """What doesn't pass by itself, as far as one can see."""
    if yard.away is not None:
        message = f"the log service doesn't answer: {yard.away}"
        return Obstacle(Reason.WAITING_FOR_BROKERS, message)
    others = [each for each in yard.found.staying if each.pod.uid != candidate.pod.uid]
    failing = [each.name for each in others if each.state is State.FAILING]
    if failing and cause in (Cause.OUTDATED, Cause.SURPLUS):
        return Obstacle(Reason.PODS_FAILING, f"{', '.join(failing)} can't serve")
    lost = [each.name for each in others if each.state is State.LOST]
    if lost and cause in (Cause.OUTDATED, Cause.SURPLUS):
        message = f"the log service has lost contact with {', '.join(lost)}"
        return Obstacle(Reason.WAITING_FOR_BROKERS, message)
    if cramped and failing:
        return Obstacle(Reason.PODS_FAILING, f"{', '.join(failing)} can't stand in for it")
    return None


def _must_wait(yard: _Yard, candidate: Broker, going: Iterable[Broker]) -> bool:
    """For what is on its way: another that leaves or comes, or too few that would stay."""
    leaving = yard.found.leaving(yard.now) or any(each.state is State.READY for each in going)
    starting = any(each is not candidate for each in yard.found.of(State.STARTING))
    doubted = any(
        each.seat is not None and each.seat.name in yard.doubted
        for each in yard.found.staying
        if each is not candidate
    )
    needed = yard.desired if yard.cause(candidate) is None else yard.floor
    return leaving or starting or doubted or _ready_beside(yard, candidate) < needed


def _doubted(troubles: Troubles) -> tuple[str, ...]:
    """Brokers that were told to drain, and may do so or not: nobody has answered."""
    return tuple(
        held.action.broker
        for held in troubles
        if isinstance(held.action, DrainBroker)
        and held.refusal.code in (DeadlineExceeded.code, Unavailable.code)
    )


def _ready_beside(yard: _Yard, candidate: Broker) -> int:
    return sum(each.pod.uid != candidate.pod.uid for each in yard.found.ready)


def _dismiss(yard: _Yard, broker: Broker) -> Action:
    """Hand over first, if there is anything to and anybody to be told."""
    seat = broker.seat
    if broker.state is State.READY and seat is not None and yard.away is None:
        return DrainBroker(broker=seat.name, epoch=seat.epoch)
    return _delete(broker)


def _delete(broker: Broker) -> Delete:
    return Delete(ref=broker.pod.ref, uid=broker.pod.uid)


def _replaced_at(broker: Broker) -> Nanoseconds:
    return (broker.pod.created_at + ENDED_MS) * MS


def _rank(broker: Broker) -> tuple[Nanoseconds, bool, int, tuple[int, str]]:
    since = 0 if broker.eviction is None else broker.eviction.since
    return since, broker.state is not State.LOST, broker.load, order(broker.pod)


def _last(brokers: Iterable[Broker]) -> list[Broker]:
    return sorted(brokers, key=lambda each: order(each.pod), reverse=True)
