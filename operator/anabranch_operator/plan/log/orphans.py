"""Logs whose resources are gone: found in the log service, confirmed with the API server, ended.

No resource has a finalizer: one that can be deleted together with the operator would hang for ever.
A log's owner, kept by the log service, says instead whether the log ends with its resource. The
operator compares owners with resources after every look at the log service.
"""

from collections.abc import Iterator

from anabranch_operator.api import names
from anabranch_operator.api.anabranch_names import Description, Kind, LogId, Nanoseconds
from anabranch_operator.api.fork import FINISHED, ForkType
from anabranch_operator.plan.engine.actions import (
    Action,
    Adopt,
    Confirm,
    DeleteRoot,
    Describe,
    Mark,
    Plan,
    Squash,
)
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.world import Departed, World, ends
from anabranch_operator.plan.log.services import AnyLog


def known(world: World, resource: AnyLog) -> Description | Describe | None:
    """The resource's log; what to ask to learn about it; or None: there is none."""
    found = world.service.of(resource.owner)
    if found is not None:
        return found
    if resource.status.log_id is None:
        return None
    id = LogId(resource.status.log_id)
    if id in world.service.fates or resource.owner in world.service.fates:
        return None
    by_id = world.service.logs.get(id)
    if by_id is None:
        return Describe(log=id)
    # Earlier versions released a log before they adopted it under its other owner. A log that has
    # another's owner is somebody else's by now.
    return None if by_id.owner else by_id


def declare(resource: AnyLog, found: Description) -> tuple[Adopt, ...]:
    """Have the owner say whether the log ends with the resource."""
    wanted = owner_of(resource)
    return () if found.owner == wanted else (Adopt(log=found.id, owner=wanted),)


def owner_of(resource: AnyLog) -> str:
    """The owner of the resource's log from its first moment: an operator that begins after the
    resource was deleted knows nothing else about the log's end.
    """
    return names.ending(resource.owner) if ends(resource) else resource.owner


def unhold(world: World, resource: AnyLog) -> tuple[Action, ...]:
    """Take away the finalizer that earlier versions of the operator put on it; of one that was
    deleted already only after the log's owner says what is to become of the log.
    """
    object = resource.object
    if names.FINALIZER not in object.finalizers:
        return ()
    if object.deleting and world.service.trouble is None:
        found = known(world, resource)
        first = (found,) if isinstance(found, Describe) else found and declare(resource, found)
        if first:
            return first
    return (mark(resource, object.labels.get(names.MADE_BY, "")),)


def mark(resource: AnyLog, made_by: str) -> Mark:
    return Mark(ref=resource.ref, uid=resource.object.uid, made_by=made_by)


def plan_orphan(world: World, ref: Ref, now: Nanoseconds, troubles: Troubles) -> Plan:
    """`ref` names the owner. Nothing is ended before the API server itself says that the resource
    is gone: watches may be late, or blind.
    """
    del now, troubles
    declares = names.declares(ref.name)
    found = world.service.of(ref.name)
    if declares is None or found is None or world.service.trouble is not None:
        return Plan()
    resource = Ref(declares.kind, declares.namespace, declares.name)
    if declares.uid not in world.absent:
        return Plan((Confirm(ref=resource, uid=declares.uid),))
    return Plan(tuple(_end(world, resource, declares.uid, found)))


def _end(world: World, ref: Ref, uid: str, found: Description) -> Iterator[Action]:
    """It ends if the owner says so, and the resource did when it was last seen: a log that is kept
    by mistake can still be squashed, but not the other way round.
    """
    last = world.departed.get(uid, Departed(ends=not world.newcomer))
    cascade = last.cascade
    if not (last.ends and names.is_ending(found.owner)):
        yield Adopt(log=found.id, owner="")
    elif any(_parts(world, uid)):
        return  # the garbage collector deletes the shards, then the sequencers; the entry goes last
    elif found.kind is Kind.ROOT:
        yield DeleteRoot(log=found.id, force=cascade or world.terminating(ref.namespace))
    elif cascade or not any(_inherits(world, ref, found)):
        yield Squash(log=found.id)


def _parts(world: World, uid: str) -> Iterator[Observed]:
    """The SequencerSet and ShardGroup that were made for a log and are deleted with it."""
    for kind in (names.SHARDS, names.SEQUENCERS):
        yield from world.children(uid, kind)


def _inherits(world: World, ref: Ref, found: Description) -> Iterator[bool]:
    """Forks that would be squashed with it, and whose resources are still there."""
    for heir in world.heirs(ref):
        log = world.service.of(heir.owner)
        same = log is not None and log.parent == found.name
        yield same and heir.spec.type is ForkType.CONTINUOUS and heir.status.phase not in FINISHED
