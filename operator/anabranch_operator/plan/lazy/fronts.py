"""How a Bolt log whose appends are declared lazy gets its front, and loses it again (ADR 0074).

The SequencerSet is there first, because a log is told its front's addresses. Then the log has the
front, and its direct appends end; then the set is told the log's id, and gets pods. On the way back
the front ends by itself, while its pods run; the set goes after that.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from anabranch_operator.api import names
from anabranch_operator.api.anabranch_names import Description, EngineSettings
from anabranch_operator.api.common import GroupEngineName
from anabranch_operator.api.conditions import Reason, Type
from anabranch_operator.api.log import Appends, LogStatus
from anabranch_operator.plan.engine.actions import (
    Action,
    Apply,
    Delete,
    SetAppends,
    SetSettings,
)
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.status import Said
from anabranch_operator.plan.engine.world import Log, Sequencers, World, parts_of
from anabranch_operator.plan.groups import parts, quota
from anabranch_operator.plan.groups.sequencer_pod import cluster, cluster_of, log_id, nodes

_ACTIONS: Final = (SetAppends, SetSettings)


class FrontPlan(Struct, frozen=True, kw_only=True):
    """What a Log's plan adds for the sake of its front."""

    actions: tuple[Action, ...] = ()
    obstacle: Said | None = None
    """Why the log can't be appended to as declared."""
    said: tuple[Said, ...] = ()
    """Further conditions."""


class Preparation(Struct, frozen=True, kw_only=True):
    """What comes before a new log is made."""

    actions: tuple[Action, ...] = ()
    obstacle: Said | None = None
    """Why it can't be made yet."""
    front: EngineSettings | None = None
    """The front that the log is made with."""


def prepare(world: World, log: Log, troubles: Troubles) -> Preparation:
    if log.spec.appends is Appends.DIRECT:
        return Preparation()
    obstacle = _unserved(world, log)
    if obstacle is not None:
        return Preparation(obstacle=obstacle)
    actions = tuple(parts.make(world, log))
    ref = _set(log)
    sequencers = world.sequencers.get(ref)
    obstacle = parts.failed(troubles, (Apply,)) or parts.obstacle(world, log, ref)
    if obstacle is None and sequencers is None:
        obstacle = parts.unready(world, log, ref)
    if obstacle is not None or sequencers is None:
        return Preparation(actions=actions, obstacle=obstacle)
    if log_id(sequencers) is None:
        return Preparation(actions=actions, front=_settings(sequencers))
    # It has a log already: the one that is adopted, or another.
    obstacle = None if log.spec.adopt else _of_another_log(sequencers, None)
    return Preparation(obstacle=obstacle)


def plan_front(world: World, log: Log, found: Description, troubles: Troubles) -> FrontPlan:
    """Of a log that is there."""
    if log.spec.appends is Appends.DIRECT:
        return _made_direct(world, log, found, troubles)
    obstacle = _unserved(world, log)
    if obstacle is not None:
        return FrontPlan(obstacle=obstacle)
    ref = _set(log)
    sequencers = world.sequencers.get(ref)
    obstacle = parts.obstacle(world, log, ref)
    if sequencers is None or obstacle is not None:
        actions = tuple(parts.make(world, log))
        obstacle = obstacle or parts.unready(world, log, ref)
        return FrontPlan(actions=actions, obstacle=parts.failed(troubles, (Apply,)) or obstacle)
    obstacle = _of_another_log(sequencers, found)
    if obstacle is not None:
        return FrontPlan(obstacle=obstacle)
    if found.front is None:
        return _made_lazy(world, log, found, sequencers, troubles)
    return _served(world, log, found, found.front, sequencers, troubles)


def shown(world: World, log: Log, status: LogStatus) -> LogStatus:
    """A Log's status with what is known of its front."""
    lazy = log.spec.appends is Appends.LAZY
    sequencers = world.sequencers.get(_set(log)) if lazy else None
    front = None if sequencers is None else sequencers.status
    return replace(
        status,
        sequencers=_set(log).name if lazy else None,
        view=None if front is None else front.view,
        leader=None if front is None else front.leader,
        backlog=None if front is None else front.backlog,
        durability=None if sequencers is None else sequencers.spec.durability.value,
    )


def _made_lazy(
    world: World, log: Log, found: Description, sequencers: Sequencers, troubles: Troubles
) -> FrontPlan:
    """It has no front: not yet, or not any more."""
    if log_id(sequencers) == found.id:
        message = (
            "its lazy front has ended, and a log can't have another one: set spec.appends to "
            "Direct and leave spec.sequencers out, or fork the log"
        )
        obstacle = Said(Type.READY, False, Reason.REFUSED, message)
        return FrontPlan(actions=_removed(world, log, found), obstacle=obstacle)
    actions = (
        *parts.make(world, log),
        SetAppends(log=found.id, front=_settings(sequencers)),
    )
    waits = Said(Type.READY, False, Reason.SEQUENCERS_AWAY, "its appends are about to be lazy")
    return FrontPlan(actions=actions, obstacle=parts.failed(troubles, _ACTIONS) or waits)


def _served(
    world: World,
    log: Log,
    found: Description,
    front: EngineSettings,
    sequencers: Sequencers,
    troubles: Troubles,
) -> FrontPlan:
    obstacle = _ending(found) or _unlike(front, sequencers)
    if obstacle is not None:
        return FrontPlan(obstacle=obstacle)
    actions: list[Action] = [*_told(world, log, found, sequencers)]
    placed = replace(front, addresses=nodes(sequencers), cluster=cluster(sequencers))
    if placed != front:
        actions.append(SetSettings(log=found.id, settings=placed))
    actions += quota.told(world, log.ref, sequencers, 1, found)
    there = parts.look(world, log)
    return FrontPlan(
        actions=tuple(actions),
        obstacle=parts.failed(troubles, _ACTIONS) or parts.unready(world, log, _set(log)),
        said=tuple(parts.of_the_view(there)),
    )


def _made_direct(world: World, log: Log, found: Description, troubles: Troubles) -> FrontPlan:
    if found.front is None:
        return FrontPlan(actions=_removed(world, log, found))
    if found.front.cluster != cluster_of(log.ref):
        return FrontPlan()  # somebody else runs it, and no resource told of it
    if found.front_ends:
        return FrontPlan(obstacle=_ending(found))
    ends = SetAppends(log=found.id, front=None)
    waits = Said(Type.READY, False, Reason.FRONT_ENDING, "its lazy front is about to end")
    return FrontPlan(actions=(ends,), obstacle=parts.failed(troubles, _ACTIONS) or waits)


def _ending(found: Description) -> Said | None:
    if not found.front_ends:
        return None
    message = (
        "its appends become direct: they wait until the log has what the sequencers have "
        "acknowledged"
    )
    return Said(Type.READY, False, Reason.FRONT_ENDING, message)


def _removed(world: World, log: Log, found: Description) -> tuple[Delete, ...]:
    """The set that was made for a front that has ended; one that somebody else made stays."""
    there = world.objects.get(Ref(names.SEQUENCERS, log.ref.namespace, log.ref.name))
    if there is None or there.deleting or not parts.is_ours(there, log):
        return ()
    if there.labels.get(names.LOG_ID) != str(found.id):
        return ()
    return (Delete(ref=there.ref, uid=there.uid),)


def _told(world: World, log: Log, found: Description, sequencers: Sequencers) -> tuple[Action, ...]:
    """The set as its template says, and with the id of its log."""
    label = {names.LOG_ID: str(found.id)}
    template = log.spec.sequencers is not None and log.spec.sequencers.template is not None
    if template:
        return tuple(parts.make(world, log, label))
    if log_id(sequencers) == found.id:
        return ()
    return (_labelled(sequencers.object, label),)


def _labelled(object: Observed, label: dict[str, str]) -> Apply:
    """Of a set that somebody else made nothing but the label is ours."""
    ref = object.ref
    meta = {"name": ref.name, "namespace": ref.namespace, "uid": object.uid, "labels": label}
    manifest = {"apiVersion": names.API_VERSION, "kind": ref.kind, "metadata": meta}
    return Apply(ref=ref, manifest=manifest)


def _settings(sequencers: Sequencers) -> EngineSettings:
    return EngineSettings(
        sequencers=sequencers.spec.members,
        addresses=nodes(sequencers),
        cluster=cluster(sequencers),
        durability=sequencers.spec.durability.value,
    )


def _unserved(world: World, log: Log) -> Said | None:
    home = world.surroundings.namespace
    if log.ref.namespace == home:
        return None
    message = (
        f"lazy appends are served in namespace {home} alone, where this operator looks after "
        "SequencerSets: make the Log there"
    )
    return Said(Type.READY, False, Reason.ENGINE_NOT_AVAILABLE, message)


def _of_another_log(sequencers: Sequencers, found: Description | None) -> Said | None:
    """What a set holds that isn't committed yet is of one log alone.

    A log whose front the set is has that set, whatever the label says: somebody has changed the
    label, and it is set right.
    """
    taken = log_id(sequencers)
    if taken is None or (found is not None and taken == found.id):
        return None
    front = None if found is None else found.front
    if front is not None and front.cluster == cluster(sequencers):
        return None
    message = (
        f"SequencerSet {sequencers.ref.name} has taken the appends of another log, whose id is "
        f"{taken}: delete the set, or make a Log of another name"
    )
    return Said(Type.READY, False, Reason.NAME_TAKEN, message)


def _unlike(front: EngineSettings, sequencers: Sequencers) -> Said | None:
    """A front keeps how many sequencers it has, and what they promise."""
    spec = sequencers.spec
    has = front.sequencers, front.durability
    if has == (spec.members, spec.durability.value):
        return None
    message = (
        f"the log's front has {front.sequencers} sequencers of durability {front.durability}, and "
        f"keeps them; SequencerSet {sequencers.ref.name} has {spec.members} of "
        f"{spec.durability.value}: make it as the front is"
    )
    return Said(Type.READY, False, Reason.INVALID, message)


def _set(log: Log) -> Ref:
    found = parts_of(log)
    assert found, f"a log with lazy appends has {GroupEngineName.LAZY} sequencers"
    return found[0]
