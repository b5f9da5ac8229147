"""Deletion: what is done to the log, what may hold it up, and the way out of each (never a hang).

Our finalizer is the only thing that holds a resource. It goes once the log service has done what
the deletion policy asks; at once, if nothing was ever made; and whatever else, when the annotation
`anabranch.dev/forget` or the end of the whole namespace says so.
"""

from collections.abc import Sequence

from msgspec import Struct

from anabranch.core.bolt.commands import Description
from anabranch.core.errors import LogHasForks
from anabranch.core.types import LogId
from anabranch_operator.api import names
from anabranch_operator.api.conditions import Reason, Type
from anabranch_operator.api.fork import FINISHED, ForkDeletion, ForkType
from anabranch_operator.api.log import LogDeletion
from anabranch_operator.plan.actions import (
    Action,
    Adopt,
    DeleteRoot,
    Describe,
    Finalize,
    Squash,
)
from anabranch_operator.plan.faces import AnyLog
from anabranch_operator.plan.status import Said
from anabranch_operator.plan.trouble import Trouble, Troubles
from anabranch_operator.plan.world import Fork, Log, World

_NAMED_MAX = 5


class Leave(Struct, frozen=True):
    """What is to be done, and what stands in the way."""

    actions: tuple[Action, ...] = ()
    blocked: Said | None = None


def held(resource: AnyLog) -> bool:
    return names.FINALIZER in resource.object.finalizers


def hold(resource: AnyLog, *, held: bool, made_by: str | None = None) -> Finalize:
    """What the label says is kept, unless something else is to be said."""
    if made_by is None:
        made_by = resource.object.labels.get(names.MADE_BY, "")
    return Finalize(ref=resource.ref, uid=resource.object.uid, held=held, made_by=made_by)


def says(resource: AnyLog, annotation: str) -> bool:
    return resource.object.annotations.get(annotation) == "true"


def leave_fork(world: World, fork: Fork, troubles: Troubles) -> Leave:
    """A fork's resource was deleted."""
    ending = world.terminating(fork.ref.namespace)
    if not held(fork):
        return Leave()
    if says(fork, names.FORGET) or fork.status.phase in FINISHED:
        return _let_go(fork)
    keeps = fork.spec.deletion_policy is ForkDeletion.RETAIN or (ending and fork.spec.protected)
    if not ending and not keeps:
        stands = _stands_in_the_way(world, fork)
        if stands is not None:
            return Leave(blocked=stands)
    found = known(world, fork)
    if not isinstance(found, Description):
        return _without_log(world, fork, found)
    act = Adopt(log=found.id, owner="") if keeps else Squash(log=found.id)
    return _done_by_service(world, fork, act, troubles)


def leave_log(world: World, log: Log, troubles: Troubles) -> Leave:
    """A root log's resource was deleted."""
    if not held(log):
        return Leave()
    if says(log, names.FORGET):
        return _let_go(log)
    found = known(world, log)
    if not isinstance(found, Description):
        return _without_log(world, log, found)
    if log.spec.deletion_policy is LogDeletion.RETAIN:
        return _done_by_service(world, log, Adopt(log=found.id, owner=""), troubles)
    force = says(log, names.CASCADE) or world.terminating(log.ref.namespace)
    return _done_by_service(world, log, DeleteRoot(log=found.id, force=force), troubles)


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
    if by_id is not None:
        # Released, or somebody else's by now.
        return None
    return Describe(log=id)


def _let_go(resource: AnyLog) -> Leave:
    return Leave((hold(resource, held=False),))


def _without_log(world: World, resource: AnyLog, ask: Describe | None) -> Leave:
    """What was asked for it and not answered might still be done after it is gone, and be nobody's.

    So it is asked again, which gives one log at most, and that one is squashed; an earlier leader's
    requests end with the first of ours.
    """
    service = world.service
    if service.trouble is not None:
        if world.terminating(resource.ref.namespace):
            return _let_go(resource)
        return Leave((), _away(service.trouble))
    doubt = service.doubts.get(resource.owner)
    if doubt is not None:
        return Leave((doubt,))
    if not service.guarded:
        return Leave((_NOTHING,))
    return _let_go(resource) if ask is None else Leave((ask,))


_NOTHING = Adopt(log=LogId(0), owner="")
"""It is refused, for there is no such log, and makes our epoch known."""


def _done_by_service(
    world: World, resource: AnyLog, act: Adopt | Squash | DeleteRoot, troubles: Troubles
) -> Leave:
    trouble = troubles.with_action(type(act))
    if trouble is None:
        return Leave((act,))
    if world.terminating(resource.ref.namespace):
        # A namespace mustn't wait for us: the log stays, and its owner tells whose it was.
        return _let_go(resource)
    return Leave((act,), _refused(world, trouble))


def _stands_in_the_way(world: World, fork: Fork) -> Said | None:
    if fork.spec.protected:
        return Said(
            Type.DELETION_BLOCKED,
            True,
            Reason.PROTECTED,
            "it is protected: set spec.protected to false to have it squashed",
        )
    heirs = [
        heir.ref.name
        for heir in world.heirs(fork.ref)
        if heir.spec.type is ForkType.CONTINUOUS and heir.status.phase not in FINISHED
    ]
    if heirs and not says(fork, names.CASCADE):
        return Said(Type.DELETION_BLOCKED, True, Reason.HAS_FORKS, _has_forks(heirs))
    return None


def _has_forks(heirs: Sequence[str]) -> str:
    shown = ", ".join(sorted(heirs)[:_NAMED_MAX])
    more = f" and {len(heirs) - _NAMED_MAX} more" if len(heirs) > _NAMED_MAX else ""
    return (
        f"forks inherit from it and would be squashed with it: {shown}{more}; delete them first, "
        f"or annotate it {names.CASCADE}=true"
    )


def _away(why: str) -> Said:
    message = (
        f"the log service doesn't answer ({why}): its log is kept until it does; annotate it "
        f"{names.FORGET}=true to let it go without touching the log"
    )
    return Said(Type.DELETION_BLOCKED, True, Reason.SERVICE_AWAY, message)


def _refused(world: World, trouble: Trouble) -> Said:
    if world.service.trouble is not None:
        return _away(world.service.trouble)
    if trouble.refusal.code == LogHasForks.code:
        message = (
            f"{trouble.refusal.message}; or annotate it {names.CASCADE}=true to delete it with "
            "the forks that inherit from it"
        )
        return Said(Type.DELETION_BLOCKED, True, Reason.HAS_FORKS, message)
    message = f"{trouble.refusal.message}; annotate it {names.FORGET}=true to let it go as it is"
    return Said(Type.DELETION_BLOCKED, True, Reason.REFUSED, message)
