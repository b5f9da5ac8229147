"""Logs that a SequencerSet and ShardGroups serve, kept in the catalogue: engines belfast and erwin.

The operator makes both parts from templates, or takes those that are named. It registers the log
in the log service with the addresses of its sequencers, so that clients open it by name, and shows
in the Log whether all parts are ready.

A Log that deletes its records owns what was made for it: the garbage collector deletes the
ShardGroup with the Log, and then the SequencerSet, which the ShardGroup owns as well. The entry in
the catalogue goes last (see `orphans`). Another Log leaves all of it where it is.
"""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from anabranch_operator.api import names
from anabranch_operator.api.anabranch_names import Description, EngineSettings, Nanoseconds
from anabranch_operator.api.common import GroupEngineName
from anabranch_operator.api.conditions import Reason, Type
from anabranch_operator.api.log import Engine, LogPhase, LogStatus
from anabranch_operator.api.sequencers import Mode
from anabranch_operator.plan.engine.actions import (
    Action,
    Adopt,
    Apply,
    CreateRoot,
    Describe,
    Plan,
    SetQuota,
    SetSettings,
)
from anabranch_operator.plan.engine.objects import Document, Observed, Ref
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.status import Said
from anabranch_operator.plan.engine.world import Log, Sequencers, Shards, World, ends, parts_of
from anabranch_operator.plan.groups import quota
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
from anabranch_operator.plan.log.services import missing, owner_reference
from anabranch_operator.plan.manifests.pod_parts import digest

REPLICAS_MIN = SHARDS_MIN = 1
"""What the catalogue takes for a log whose shards are all gone."""


class Parts(Struct, frozen=True):
    """What serves a log, as far as it is there."""

    sequencers: Sequencers | None
    groups: tuple[Shards, ...]


def plan_group_log(world: World, log: Log, now: Nanoseconds, troubles: Troubles) -> Plan:
    unserved = _unserved(world, log)
    if unserved is not None:
        return conditions.told(world, log, now, log.status, [unserved])
    found, parts = known(world, log), _look(world, log)
    if isinstance(found, Describe):
        return Plan((found,))
    if found is None and not is_new(world, log):
        return lost(world, log, now)
    if found is not None and (another := of_another_engine(log, found)) is not None:
        return conditions.told(world, log, now, log.status, [another])
    registering, refused = _register(world, log, parts, found, troubles)
    wanted = (*_make(world, log), *registering, *_limit(world, log, parts, found))
    if troubles.due(wanted, now):
        return Plan(wanted)
    said = refused or _failed(troubles) or _ready(world, log, parts)
    told = [said, *_of_the_view(parts)]
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


def _look(world: World, log: Log) -> Parts:
    sequencers, *groups = parts_of(log)
    there = (world.shards.get(each) for each in groups)
    return Parts(
        world.sequencers.get(sequencers), tuple(each for each in there if each is not None)
    )


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


def _make(world: World, log: Log) -> Iterator[Action]:
    """The parts that are made from templates, as they should be."""
    for ref, spec in _templates(log):
        there = world.objects.get(ref)
        if there is None or (_is_ours(there, log) and not there.deleting):
            yield from missing(world, _manifest(world, log, ref, spec))


def _templates(log: Log) -> Iterator[tuple[Ref, Document]]:
    """Specs as they stand in the Log, so that the API server's defaults in it count."""
    sequencers, *groups = parts_of(log)
    spec, shards = log.object.spec, log.spec.shards
    assert shards is not None, "such logs aren't served"
    template = spec["sequencers"].get("template")
    engine = _engine(log)
    if template is not None:
        yield sequencers, {**template, **engine}
    template = spec["shards"].get("template")
    if template is not None:
        (group,) = groups
        yield (
            group,
            {**template, **engine, "sequencers": sequencers.name, "shards": shards.wanted},
        )


def _engine(log: Log) -> Document:
    """Left out where the API server's default says the same: parts of earlier releases lack it."""
    if log.spec.engine is Engine.BELFAST:
        return {}
    return {"engine": log.spec.engine.value}


def _manifest(world: World, log: Log, ref: Ref, spec: Document) -> Document:
    labels = {
        names.MANAGED_BY: names.FIELD_MANAGER,
        names.MADE_FOR: log.ref.name,
        # What was taken out of a template must go, though all that is left is there already.
        names.TEMPLATE: digest(spec),
    }
    return {
        "apiVersion": names.API_VERSION,
        "kind": ref.kind,
        "metadata": {
            "name": ref.name,
            "namespace": ref.namespace,
            "labels": labels,
            "ownerReferences": list(_owners(world, log, ref)),
        },
        "spec": spec,
    }


def _owners(world: World, log: Log, ref: Ref) -> Iterator[Document]:
    """None if the log's records outlive the Log."""
    if not ends(log):
        return
    yield owner_reference(log.object)
    if ref.kind != names.SEQUENCERS:
        return
    for each in parts_of(log)[1:]:
        group = world.objects.get(each)
        if group is not None and _is_ours(group, log) and not group.deleting:
            # The garbage collector waits until all owners are gone: sequencers go after shards.
            second = {"controller": False, "blockOwnerDeletion": False}
            yield {**owner_reference(group), **second}


def _is_ours(object: Observed, log: Log) -> bool:
    """Was it made for this Log, or for an earlier one of its name?"""
    labels = object.labels
    ours = labels.get(names.MANAGED_BY) == names.FIELD_MANAGER
    return ours and labels.get(names.MADE_FOR) == log.ref.name


def _failed(troubles: Troubles) -> Said | None:
    for kind in (Apply, CreateRoot, Adopt, SetSettings, SetQuota):
        held = troubles.with_action(kind)
        if held is None:
            continue
        if isinstance(held.action, Apply):
            message = f"{held.action.ref}: {held.refusal.message}"
            return Said(Type.READY, False, Reason.WRITE_FAILED, message)
        return conditions.refused(held)
    return None


def _ready(world: World, log: Log, parts: Parts) -> Said:
    """The log is ready when all of its parts are. What only people can mend is told first."""
    for obstacle in (_obstacle, _unready):
        for ref in parts_of(log):
            said = obstacle(world, log, ref)
            if said is not None:
                return said
    if not sum(each.spec.shards for each in parts.groups):
        message = "it has no shards: raise spec.shards.count, or scale its ShardGroups"
        return Said(Type.READY, False, Reason.SHARDS_MISSING, message)
    assert parts.sequencers is not None, "else it was an obstacle"
    where = endpoint(parts.sequencers) or f"{log_name(log)} in the log service"
    message = f"clients reach it at {where}"
    return Said(Type.READY, True, Reason.SERVING, message)


def _obstacle(world: World, log: Log, ref: Ref) -> Said | None:
    what, made = f"{ref.kind} {ref.name}", dict(_templates(log)).keys()
    object = world.objects.get(ref)
    if object is None:
        reason = (
            Reason.SEQUENCERS_MISSING if ref.kind == names.SEQUENCERS else Reason.SHARDS_MISSING
        )
        why = "is being made" if ref in made else "isn't in this namespace: make it"
        return Said(Type.READY, False, reason, f"{what} {why}")
    if ref in made and not _is_ours(object, log):
        message = (
            f"{what} is there already, and wasn't made for this Log: name it in the spec of "
            "another Log, or delete it"
        )
        return Said(Type.READY, False, Reason.NAME_TAKEN, message)
    part = world.sequencers.get(ref) or world.shards.get(ref)
    if part is not None and part.spec.engine != log.spec.engine.value:
        message = (
            f"{what} is of engine {part.spec.engine}, and this Log of {log.spec.engine}: make "
            "another Log, with the engine of its parts"
        )
        return Said(Type.READY, False, Reason.INVALID, message)
    group = world.shards.get(ref)
    wanted = parts_of(log)[0].name
    if group is not None and group.spec.sequencers != wanted:
        other = group.spec.sequencers
        message = f"{what} belongs to SequencerSet {other}, not to {wanted}: name other groups"
        return Said(Type.READY, False, Reason.INVALID, message)
    return None


def _unready(world: World, log: Log, ref: Ref) -> Said | None:
    del log
    what, part = f"{ref.kind} {ref.name}", world.sequencers.get(ref) or world.shards.get(ref)
    if part is None:
        return Said(Type.READY, False, Reason.INVALID, f"{what} has a spec that can't be read")
    told = conditions.as_before(part.status.conditions)
    ready = next((each for each in told if each.type is Type.READY), None)
    if ready is None:
        message = f"{what}: the operator hasn't seen its pods yet"
        return Said(Type.READY, False, Reason.SEQUENCERS_AWAY, message)
    if ready.status:
        return None
    return Said(Type.READY, False, ready.reason, f"{what}: {ready.message}")


def _of_the_view(parts: Parts) -> Iterator[Said]:
    """What the SequencerSet of an Erwin log says of its view."""
    if parts.sequencers is not None:
        for each in conditions.as_before(parts.sequencers.status.conditions):
            if each.type in (Type.SEALED, Type.RECONFIGURING):
                yield each


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
