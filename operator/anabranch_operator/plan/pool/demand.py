"""How many brokers a pool should have now: as many as are said, or as the load needs."""

from msgspec import Struct

from anabranch_operator.api.anabranch_names import MS, Nanoseconds
from anabranch_operator.api.common import instant
from anabranch_operator.api.conditions import Type
from anabranch_operator.plan.engine.dependencies import waits_for_broker
from anabranch_operator.plan.engine.world import Pool, World
from anabranch_operator.plan.pool.brokers import Crew

QUIET_MS = 300_000
"""A pool that has just moved isn't made smaller."""
_EASE = 4, 3
"""And never before a third more than there is would fit on what is left."""


class Demand(Struct, frozen=True):
    desired: int
    needed: int
    """Before the pool's bounds."""
    waiting: int
    """Forks that wait for a broker of their own."""
    quiet_at: Nanoseconds | None = None
    """When one of the brokers may be taken away."""


def demand(world: World, pool: Pool, found: Crew, now: Nanoseconds) -> Demand:
    spec = pool.spec
    waiting = sum(map(waits_for_broker, world.forks.values()))
    if spec.replicas is not None:
        return Demand(_bounded(pool, spec.replicas), spec.replicas, waiting)
    needed = _needed(world, pool, found) + waiting
    held = _bounded(pool, pool.status.desired or needed)
    desired = _bounded(pool, needed)
    if desired >= held:
        return Demand(desired, needed, waiting)
    eased = _bounded(pool, _needed(world, pool, found, *_EASE) + waiting)
    if eased >= held or not _is_measured(world, found):
        return Demand(held, needed, waiting)
    quiet_at = _quiet_at(pool)
    if quiet_at is None or now < quiet_at:
        return Demand(held, needed, waiting, quiet_at)
    return Demand(held - 1, needed, waiting)


def floor(pool: Pool, desired: int) -> int:
    """So few brokers are enough for a while: the spare ones serve nothing."""
    return max(pool.spec.min, desired - pool.spec.spare)


def _needed(world: World, pool: Pool, found: Crew, times: int = 1, over: int = 1) -> int:
    """For `times / over` of the load."""
    scaling = pool.spec.scaling
    seats = [each.seat for each in (*found.staying, *found.drained) if each.seat is not None]
    logs = sum(seat.roots + seat.trees for seat in seats)
    appended = int(
        sum(
            world.vitals[each.pod.uid].append_bytes_per_s
            for each in found.staying
            if each.pod.uid in world.vitals
        )
    )
    shared = max(
        _parts(logs * times, scaling.logs_per_broker * over),
        _parts(appended * times, scaling.append_bytes_per_broker * over),
    )
    return shared + sum(seat.exclusive for seat in seats) + pool.spec.spare


def _parts(amount: int, each: int) -> int:
    return -(-amount // each)


def _bounded(pool: Pool, count: int) -> int:
    return max(pool.spec.min, min(pool.spec.max, count))


def _is_measured(world: World, found: Crew) -> bool:
    """Who isn't seen may be the busiest."""
    return world.service.trouble is None and all(
        each.pod.uid in world.vitals for each in found.ready
    )


def _quiet_at(pool: Pool) -> Nanoseconds | None:
    """None while it moves."""
    for each in pool.status.conditions:
        if each.type == Type.PROGRESSING and each.status == "False":
            return (instant(each.last_transition_time) + QUIET_MS) * MS
    return None
