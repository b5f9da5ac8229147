"""A BrokerPool: as many brokers as are needed, of the pods that the spec says (ADR 0024).

A pool that is deleted takes its pods with it: the garbage collector ends them, and each hands over
by itself as long as its grace lasts. So there is no finalizer, and nothing that could hang.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from anabranch_operator.api.anabranch_names import Nanoseconds
from anabranch_operator.api.pool import Broker as Shown
from anabranch_operator.api.pool import PoolStatus
from anabranch_operator.plan.engine.actions import Action, Create, Plan
from anabranch_operator.plan.engine.events import CONFLICT
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.status import Said, conditions, write
from anabranch_operator.plan.engine.world import Pool, World
from anabranch_operator.plan.log import conditions as telling
from anabranch_operator.plan.log.services import missing
from anabranch_operator.plan.manifests.pod_parts import selector
from anabranch_operator.plan.pool import conditions as crewing
from anabranch_operator.plan.pool.broker_pod import budget, headless, labels, pod
from anabranch_operator.plan.pool.brokers import Broker, Crew, crew, forsaken
from anabranch_operator.plan.pool.demand import Demand, demand
from anabranch_operator.plan.pool.departures import departures, wakes


def plan_pool(world: World, ref: Ref, now: Nanoseconds, troubles: Troubles) -> Plan:
    pool = world.pools.get(ref)
    if pool is None:
        return telling.plan_malformed(world, ref, now)
    if pool.object.deleting or world.terminating(ref.namespace):
        return Plan()
    if telling.is_paused(pool.object):
        return Plan(
            _told(
                world, pool, now, pool.status, telling.paused(pool.object, pool.status.conditions)
            )
        )
    found = crew(world, pool, now)
    wanted = demand(world, pool, found, now)
    going = departures(world, pool, found, wanted.desired, now, troubles)
    coming = _coming(world, pool, found, wanted.desired + going.surge, wanted.desired, troubles)
    around = (*missing(world, headless(pool)), *missing(world, budget(pool, wanted.desired)))
    sight = crewing.Sight(world, found, wanted, going, len(coming))
    said = crewing.said(sight, pool, troubles)
    told = _told(world, pool, now, _status(pool, found, wanted), said)
    events = crewing.announce(pool, wanted, said)
    actions: tuple[Action, ...] = (
        *around,
        *coming,
        *going.actions,
        *forsaken(world, pool),
        *told,
        *events,
    )
    return Plan(actions, _wake_at(world, found, wanted, now))


def _coming(
    world: World, pool: Pool, found: Crew, target: int, desired: int, troubles: Troubles
) -> tuple[Create, ...]:
    """Pods that fail count against what may be made: a bad spec breaks one more, and no others."""
    short = target - len(found.sound)
    room = desired + 1 - len(found.staying)
    free = _free(world, pool, troubles)
    return tuple(_create(pool, next(free)) for _ in range(min(short, room)))


def _free(world: World, pool: Pool, troubles: Troubles) -> Iterator[str]:
    """The lowest numbers that nobody bears. They are names only, and may come again."""
    borne = {
        each.action.ref.name
        for each in troubles
        if isinstance(each.action, Create) and each.refusal.code == CONFLICT
    }
    number = 0
    while True:
        name = f"{pool.ref.name}-{number}"
        if Ref("Pod", pool.ref.namespace, name) not in world.objects and name not in borne:
            yield name
        number += 1


def _create(pool: Pool, name: str) -> Create:
    return Create(ref=Ref("Pod", pool.ref.namespace, name), manifest=pod(pool, name))


def _status(pool: Pool, found: Crew, wanted: Demand) -> PoolStatus:
    return PoolStatus(
        replicas=len(found.staying),
        ready=len(found.ready),
        spare=sum(not each.load for each in found.ready),
        updated=sum(not each.outdated for each in found.staying),
        desired=wanted.desired,
        waiting=wanted.waiting,
        selector=selector(labels(pool.ref.name)),
        brokers=[_shown(each) for each in found.everybody],
    )


def _shown(broker: Broker) -> Shown:
    seat = broker.seat
    return Shown(
        pod=broker.name,
        node=broker.pod.spec.get("nodeName"),
        state=broker.state.value,
        epoch=seat.epoch if seat else None,
        roots=seat.roots if seat else 0,
        trees=seat.trees if seat else 0,
        exclusive=seat.exclusive if seat else 0,
        updated=not broker.outdated,
    )


def _told(
    world: World, pool: Pool, now: Nanoseconds, status: PoolStatus, said: list[Said]
) -> tuple[Action, ...]:
    generation = pool.object.generation
    every = [*said, telling.reachable(world)]
    made = conditions(pool.status.conditions, every, generation, now)
    return write(pool.object, replace(status, observed_generation=generation, conditions=made))


def _wake_at(world: World, found: Crew, wanted: Demand, now: Nanoseconds) -> Nanoseconds | None:
    times = [*wakes(world, found), *filter(None, (wanted.quiet_at,))]
    return min((each for each in times if each > now), default=None)
