"""What is told of a pool: its conditions, and the events of their transitions."""

from collections.abc import Iterator

from msgspec import Struct

from anabranch_operator.api.conditions import Reason, Type
from anabranch_operator.api.pods import RolloutPolicy
from anabranch_operator.plan.certificates.schedule import findings
from anabranch_operator.plan.engine.actions import Announce, Apply, Create, Delete, DrainBroker
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.status import Said
from anabranch_operator.plan.engine.world import Pool, World
from anabranch_operator.plan.log import conditions
from anabranch_operator.plan.pool.brokers import Crew, State
from anabranch_operator.plan.pool.demand import Demand
from anabranch_operator.plan.pool.departures import WORDS, Cause, Departures


class Sight(Struct, frozen=True):
    """What was found and is to be done."""

    world: World
    found: Crew
    wanted: Demand
    going: Departures
    coming: int


def said(sight: Sight, pool: Pool, troubles: Troubles) -> list[Said]:
    return [
        _ready(sight, troubles),
        _progressing(sight, pool),
        _degraded(sight),
        _exhausted(sight, pool),
        _blocked(sight, pool, troubles),
    ]


def announce(pool: Pool, wanted: Demand, said: list[Said]) -> tuple[Announce, ...]:
    """Events, for what has just come to be so."""
    return tuple(_announce(pool, wanted, said))


def _announce(pool: Pool, wanted: Demand, said: list[Said]) -> Iterator[Announce]:
    before = pool.status.desired
    if before != wanted.desired:
        message = f"{before} brokers were wanted, and now {wanted.desired} are"
        yield _event(pool, Reason.SCALING, message, warning=False)
    known = {each.type: each for each in pool.status.conditions}
    for each in said:
        old = known.get(each.type.value)
        if each.type is Type.PROGRESSING:
            rolled = old is not None and old.reason == Reason.ROLLING
            if rolled != (each.reason is Reason.ROLLING):
                yield _event(pool, each.reason, each.message, warning=False)
        elif each.type is not Type.READY and each.status and (old is None or old.status != "True"):
            yield _event(pool, each.reason, each.message, warning=True)


def _event(pool: Pool, reason: Reason, message: str, *, warning: bool) -> Announce:
    return Announce(
        ref=pool.ref,
        uid=pool.object.uid,
        warning=warning,
        reason=reason.value,
        message=message,
    )


def _ready(sight: Sight, troubles: Troubles) -> Said:
    for kind in (Create, Apply, Delete):
        held = troubles.with_action(kind)
        if held is not None and isinstance(held.action, kind):
            message = f"{held.action.ref}: {held.refusal.message}"
            return Said(Type.READY, False, Reason.WRITE_FAILED, message)
    if sight.world.service.trouble is not None:
        return Said(Type.READY, False, Reason.SERVICE_AWAY, sight.world.service.trouble)
    ready, desired = len(sight.found.ready), sight.wanted.desired
    if ready >= desired:
        complete = Said(
            Type.READY, True, Reason.POOL_COMPLETE, "all brokers that are wanted are ready"
        )
        return conditions.full(sight.world) or complete
    message = f"{ready} of {desired} brokers are ready"
    return Said(Type.READY, False, Reason.WAITING_FOR_BROKERS, message)


def _progressing(sight: Sight, pool: Pool) -> Said:
    going, found = sight.going, sight.found
    old = sum(each.outdated for each in found.everybody)
    rolls = pool.spec.rollout.policy is RolloutPolicy.AUTO
    if rolls and old and going.obstacle is None:
        message = f"{old} brokers run an older spec"
        return Said(Type.PROGRESSING, True, Reason.ROLLING, message)
    if going.next is not None and going.cause is not None and going.obstacle is None:
        message = f"{going.next.name} is being replaced or removed: {WORDS[going.cause]}"
        return Said(Type.PROGRESSING, True, Reason.DRAINING, message)
    leaving = [each.name for each in (*found.drained, *found.ending)]
    if leaving:
        message = f"{', '.join(leaving)} leaving"
        return Said(Type.PROGRESSING, True, Reason.DRAINING, message)
    starting = len(found.of(State.STARTING)) + sight.coming
    if starting:
        message = f"{starting} brokers are starting"
        return Said(Type.PROGRESSING, True, Reason.SCALING, message)
    return Said(Type.PROGRESSING, False, Reason.UP_TO_DATE, "no pod is starting or ending")


def _degraded(sight: Sight) -> Said:
    failing = [f"{each.name}: {each.health.failing}" for each in sight.found.of(State.FAILING)] + [
        f"{each.name}: the log service has lost contact with it"
        for each in sight.found.of(State.LOST)
    ]
    if failing:
        return Said(Type.DEGRADED, True, Reason.PODS_FAILING, "; ".join(failing))
    flaws = [f"{found.object} {found.says}" for found in findings(sight.world)]
    if flaws:
        return Said(Type.DEGRADED, True, Reason.CERTIFICATES_FLAWED, "; ".join(flaws))
    return Said(Type.DEGRADED, False, Reason.PODS_HEALTHY)


def _exhausted(sight: Sight, pool: Pool) -> Said:
    needed, most = sight.wanted.needed, pool.spec.max
    if needed > most:
        message = f"{needed} brokers are needed, and spec.max is {most}: raise it"
        return Said(Type.POOL_EXHAUSTED, True, Reason.AT_MAXIMUM, message)
    return Said(Type.POOL_EXHAUSTED, False, Reason.WITHIN_BOUNDS)


def _blocked(sight: Sight, pool: Pool, troubles: Troubles) -> Said:
    going = sight.going
    if going.next is not None and going.cause not in (None, Cause.SURPLUS):
        held = troubles.with_action(DrainBroker)
        if going.obstacle is not None:
            message = f"{going.next.name} can't be replaced yet: {going.obstacle.message}"
            return Said(Type.ROLLOUT_BLOCKED, True, going.obstacle.reason, message)
        if held is not None:
            message = f"{going.next.name} can't be drained: {held.refusal.message}"
            return Said(Type.ROLLOUT_BLOCKED, True, Reason.WAITING_FOR_BROKERS, message)
    old = sum(each.outdated for each in sight.found.staying)
    policy = pool.spec.rollout.policy
    if old and policy is not RolloutPolicy.AUTO:
        message = f"{old} brokers run an older spec, and policy {policy} leaves them"
        return Said(Type.ROLLOUT_BLOCKED, False, Reason.UP_TO_DATE, message)
    return Said(Type.ROLLOUT_BLOCKED, False, Reason.UP_TO_DATE)
