"""Logs that a SequencerSet and ShardGroups serve, kept in the catalogue: engines belfast and erwin.

The operator makes both parts from templates, or takes those that are named. It registers the log
in the log service with the addresses of its sequencers, so that clients open it by name, and shows
in the Log whether all parts are ready.

A Log that deletes its records owns what was made for it: the garbage collector deletes the
ShardGroup with the Log, and then the SequencerSet, which the ShardGroup owns as well. The entry in
the catalogue goes last (see `orphans`). Another Log leaves all of it where it is.
"""

from msgspec.structs import replace

from anabranch_operator.api.anabranch_names import Description, EngineSettings, Nanoseconds
from anabranch_operator.api.common import GroupEngineName
from anabranch_operator.api.conditions import Reason, Type
from anabranch_operator.api.log import Engine, LogPhase, LogStatus
from anabranch_operator.api.sequencers import Mode
from anabranch_operator.plan.engine.actions import Action, Describe, Plan, SetSettings
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.status import Said
from anabranch_operator.plan.engine.world import Log, Sequencers, Shards, World, parts_of
from anabranch_operator.plan.groups import quota
from anabranch_operator.plan.groups.parts import (
    Parts,
    failed,
    look,
    make,
    obstacle,
    of_the_view,
    unready,
)
from anabranch_operator.plan.groups.sequencer_pod import cluster, endpoint, nodes
from anabranch_operator.plan.log import conditions
from anabranch_operator.plan.log.orphans import declare, known
from anabranch_operator.plan.log.registration import (
    is_new,
    log_name,
    lost,
    of_another_engine,
    register,
)

REPLICAS_MIN = SHARDS_MIN = 1
"""What the catalogue takes for a log whose shards are all gone."""


def plan_group_log(world: World, log: Log, now: Nanoseconds, troubles: Troubles) -> Plan:
    unserved = _unserved(world, log)
    if unserved is not None:
        return conditions.told(world, log, now, log.status, [unserved])
    found, parts = known(world, log), look(world, log)
    if isinstance(found, Describe):
        return Plan((found,))
    if found is None and not is_new(world, log):
        return lost(world, log, now)
    if found is not None and (another := of_another_engine(log, found)) is not None:
        return conditions.told(world, log, now, log.status, [another])
    registering, refused = _register(world, log, parts, found, troubles)
    wanted = (*make(world, log), *registering, *_limit(world, log, parts, found))
    if troubles.due(wanted, now):
        return Plan(wanted)
    said = refused or failed(troubles) or _ready(world, log, parts)
    told = [said, *of_the_view(parts)]
    return conditions.told(world, log, now, _status(log, parts, found, said), told, wanted)


def _unserved(world: World, log: Log) -> Said | None:
    """Why no log can come of this resource, wherever its parts stand."""
    home, engine = world.surroundings.namespace, log.spec.engine
    if log.ref.namespace != home:
        message = (
            f"logs of engine {engine} are served in namespace {home} alone, where this operator "
            "looks after SequencerSets and ShardGroups: make the Log there"
        )
        return Said(Type.READY, False, Reason.ENGINE_NOT_AVAILABLE, message)
    if log.spec.sequencers is None or log.spec.shards is None:
        message = (
            f"engine {engine} needs spec.sequencers and spec.shards: delete this, and give both"
        )
        return Said(Type.READY, False, Reason.INVALID, message)
    return None


def _register(
    world: World, log: Log, parts: Parts, entry: Description | None, troubles: Troubles
) -> tuple[tuple[Action, ...], Said | None]:
    """The entry in the catalogue comes when the sequencers have addresses, and follows them."""
    if parts.sequencers is None:
        return (), None
    settings = _settings(parts.sequencers, parts.groups)
    if entry is None:
        return register(world, log, troubles, settings)
    actions: tuple[Action, ...] = declare(log, entry)
    if entry.settings != settings:
        actions = (*actions, SetSettings(log=entry.id, settings=settings))
    return actions, None


def _limit(world: World, log: Log, parts: Parts, entry: Description | None) -> tuple[Action, ...]:
    """The quota in the catalogue follows the Log's, and its processes are told the catalogue's. An
    append to an Erwin log goes to all sequencers, so each of them has the whole quota.
    """
    if entry is None:
        return ()
    setting = conditions.quota(log.spec.quota, entry)
    if parts.sequencers is None:
        return setting
    shards = sum(each.spec.shards for each in parts.groups)
    share = 1 if log.spec.engine is Engine.ERWIN else shards
    return (*setting, *quota.told(world, log.ref, parts.sequencers, share, entry))


def _settings(sequencers: Sequencers, groups: tuple[Shards, ...]) -> EngineSettings:
    settings = EngineSettings(
        shards=max(SHARDS_MIN, sum(each.spec.shards for each in groups)),
        replicas=max((each.spec.copies for each in groups), default=REPLICAS_MIN),
        sequencers=sequencers.spec.members,
        addresses=nodes(sequencers),
        cluster=cluster(sequencers),
    )
    spec = sequencers.spec
    if spec.engine is not GroupEngineName.ERWIN:
        return settings
    mode = (spec.mode or Mode.M).value
    return replace(settings, mode=mode, durability=spec.durability.value)


def _ready(world: World, log: Log, parts: Parts) -> Said:
    """The log is ready when all of its parts are. What only people can mend is told first."""
    for judge in (obstacle, unready):
        for ref in parts_of(log):
            said = judge(world, log, ref)
            if said is not None:
                return said
    if not sum(each.spec.shards for each in parts.groups):
        message = "it has no shards: raise spec.shards.count, or scale its ShardGroups"
        return Said(Type.READY, False, Reason.SHARDS_MISSING, message)
    assert parts.sequencers is not None, "else it was an obstacle"
    where = endpoint(parts.sequencers) or f"{log_name(log)} in the log service"
    message = f"clients reach it at {where}"
    return Said(Type.READY, True, Reason.SERVING, message)


def _status(log: Log, parts: Parts, entry: Description | None, said: Said) -> LogStatus:
    sequencers, *_ = parts_of(log)
    status = replace(
        log.status,
        sequencers=sequencers.name,
        shards=sum(each.spec.shards for each in parts.groups),
        shards_ready=sum(each.status.seated for each in parts.groups),
    )
    if parts.sequencers is not None:
        status = replace(
            status,
            settled=parts.sequencers.status.confirmed,
            endpoint=endpoint(parts.sequencers),
        )
    if log.spec.engine is Engine.ERWIN and parts.sequencers is not None:
        shown = parts.sequencers.status
        status = replace(
            status,
            tail=shown.tail,
            backlog=shown.backlog,
            view=shown.view,
            leader=shown.leader,
        )
    if entry is not None:
        status = replace(status, log_id=entry.id, log_name=entry.name)
    if entry is not None and said.status:
        status = replace(status, phase=LogPhase.READY)
    return status
