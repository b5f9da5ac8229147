"""Log resources: their logs are made, served, trimmed, and shown in the status."""

from msgspec.structs import replace

from anabranch_operator.api.anabranch_names import MS, Description, Nanoseconds
from anabranch_operator.api.common import milliseconds
from anabranch_operator.api.log import Engine, LogPhase, LogStatus
from anabranch_operator.plan.engine.actions import Action, Plan, Trim, TrimOlder
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.world import Log, World
from anabranch_operator.plan.groups.logs import plan_group_log
from anabranch_operator.plan.lazy.fronts import plan_front, prepare
from anabranch_operator.plan.lazy.fronts import shown as fronted
from anabranch_operator.plan.log import conditions
from anabranch_operator.plan.log.conditions import told
from anabranch_operator.plan.log.orphans import declare, known, unhold
from anabranch_operator.plan.log.registration import is_new, lost, of_another_engine, register
from anabranch_operator.plan.log.services import Face, face

"""How often what has grown too old is trimmed."""


def plan_log(world: World, ref: Ref, now: Nanoseconds, troubles: Troubles) -> Plan:
    log = world.logs.get(ref)
    if log is None:
        return conditions.plan_malformed(world, ref, now)
    if held := unhold(world, log):
        return Plan(held)
    if conditions.is_left_alone(world, log):
        said = conditions.paused(log.object, log.status.conditions)
        return told(world, log, now, log.status, said)
    if log.object.deleting:
        status = replace(log.status, phase=LogPhase.TERMINATING)
        return told(world, log, now, status, [conditions.terminating(log)])
    if log.spec.engine is not Engine.BOLT:
        return plan_group_log(world, log, now, troubles)
    found = known(world, log)
    if isinstance(found, Description):
        if (another := of_another_engine(log, found)) is not None:
            return told(world, log, now, log.status, [another])
        return _served(world, log, found, now, troubles)
    if is_new(world, log):
        return _new(world, log, now, troubles)
    return lost(world, log, now) if found is None else Plan((found,))


def _new(world: World, log: Log, now: Nanoseconds, troubles: Troubles) -> Plan:
    first = prepare(world, log, troubles)
    actions, refused = first.actions, first.obstacle
    if refused is None:
        making, refused = register(world, log, troubles, front=first.front)
        actions = (*actions, *making)
    if refused is None:
        return Plan(actions)
    return told(world, log, now, log.status, [refused], actions)


def _served(
    world: World, log: Log, found: Description, now: Nanoseconds, troubles: Troubles
) -> Plan:
    shown = face(world, log, found)
    trims, again = _trims(world, log, found, now)
    front = plan_front(world, log, found, troubles)
    wanted: tuple[Action, ...] = (
        *shown.actions,
        *conditions.quota(log.spec.quota, found),
        *declare(log, found),
        *trims,
        *front.actions,
    )
    if troubles.due(wanted, now):
        return Plan(wanted)
    ready = conditions.ready(world, shown, troubles)
    if ready.status and front.obstacle is not None:
        ready = front.obstacle
    status = fronted(world, log, _status(log, found, shown))
    plan = told(world, log, now, status, [ready, *front.said], wanted)
    return Plan(plan.actions, again)


def _trims(
    world: World, log: Log, found: Description, now: Nanoseconds
) -> tuple[tuple[Action, ...], Nanoseconds | None]:
    """Retention by count at once, by age once an interval."""
    keep, actions = log.spec.retention, list[Action]()
    if keep.records is not None and found.settled - keep.records > found.start:
        actions.append(Trim(log=found.id, before=found.settled - keep.records))
    if keep.age is None:
        return tuple(actions), None
    interval_ms = world.surroundings.trim_ms
    interval = now // (interval_ms * MS)
    before = interval * interval_ms - milliseconds(keep.age)
    done = world.trimmed.get(found.id, found.created_at)
    if found.start < found.settled and done < before:
        actions.append(TrimOlder(log=found.id, before=before))
    return tuple(actions), (interval + 1) * interval_ms * MS


def _status(log: Log, found: Description, shown: Face) -> LogStatus:
    return replace(
        log.status,
        phase=LogPhase.READY,
        log_id=found.id,
        log_name=found.name,
        start=found.start,
        tail=found.tail,
        settled=found.settled,
        forks=found.forks,
        broker=shown.pod.ref.name if shown.pod else found.broker or None,
        endpoint=shown.endpoint,
    )
