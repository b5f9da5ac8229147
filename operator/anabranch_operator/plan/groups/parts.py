"""The SequencerSet and ShardGroups of a Log: made from its templates, or named, and looked at.

A Log with lazy appends has a SequencerSet alone.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from anabranch_operator.api import names
from anabranch_operator.api.common import GroupEngineName
from anabranch_operator.api.conditions import Reason, Type
from anabranch_operator.api.log import Engine
from anabranch_operator.plan.engine.actions import (
    Act,
    Action,
    Adopt,
    Apply,
    CreateRoot,
    SetQuota,
    SetSettings,
)
from anabranch_operator.plan.engine.objects import NOTHING, Document, Observed, Ref
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.status import Said
from anabranch_operator.plan.engine.world import Log, Sequencers, Shards, World, ends, parts_of
from anabranch_operator.plan.log import conditions
from anabranch_operator.plan.log.services import missing, owner_reference
from anabranch_operator.plan.manifests.pod_parts import digest

ENGINES = {
    Engine.BOLT: GroupEngineName.LAZY,
    Engine.BELFAST: GroupEngineName.BELFAST,
    Engine.ERWIN: GroupEngineName.ERWIN,
}
"""Of the parts of a Log, by its own."""


class Parts(Struct, frozen=True):
    """What serves a log, as far as it is there."""

    sequencers: Sequencers | None
    groups: tuple[Shards, ...]


def look(world: World, log: Log) -> Parts:
    sequencers, *groups = parts_of(log)
    there = (world.shards.get(each) for each in groups)
    return Parts(
        world.sequencers.get(sequencers), tuple(each for each in there if each is not None)
    )


def make(world: World, log: Log, labels: Document = NOTHING) -> Iterator[Action]:
    """The parts that are made from templates, as they should be; `labels`: more of them."""
    for ref, spec in _templates(log):
        there = world.objects.get(ref)
        if there is None or (is_ours(there, log) and not there.deleting):
            yield from missing(world, _manifest(world, log, ref, spec, labels))


def _templates(log: Log) -> Iterator[tuple[Ref, Document]]:
    """Specs as they stand in the Log, so that the API server's defaults in it count."""
    sequencers, *groups = parts_of(log)
    spec, shards = log.object.spec, log.spec.shards
    template = spec["sequencers"].get("template")
    engine = _engine(log)
    if template is not None:
        yield sequencers, {**template, **engine}
    template = None if shards is None else spec["shards"].get("template")
    if shards is not None and template is not None:
        (group,) = groups
        yield (
            group,
            {**template, **engine, "sequencers": sequencers.name, "shards": shards.wanted},
        )


def _engine(log: Log) -> Document:
    """Left out where the API server's default says the same: parts of earlier releases lack it."""
    if log.spec.engine is Engine.BELFAST:
        return {}
    return {"engine": ENGINES[log.spec.engine].value}


def _manifest(world: World, log: Log, ref: Ref, spec: Document, more: Document) -> Document:
    labels = {
        **more,
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
        if group is not None and is_ours(group, log) and not group.deleting:
            # The garbage collector waits until all owners are gone: sequencers go after shards.
            second = {"controller": False, "blockOwnerDeletion": False}
            yield {**owner_reference(group), **second}


def is_ours(object: Observed, log: Log) -> bool:
    """Was it made for this Log, or for an earlier one of its name?"""
    labels = object.labels
    ours = labels.get(names.MANAGED_BY) == names.FIELD_MANAGER
    return ours and labels.get(names.MADE_FOR) == log.ref.name


_ACTIONS: Final = (Apply, CreateRoot, Adopt, SetSettings, SetQuota)


def failed(troubles: Troubles, kinds: tuple[type[Act], ...] = _ACTIONS) -> Said | None:
    """Why the log isn't as declared: an action of one of these kinds was refused."""
    for kind in kinds:
        held = troubles.with_action(kind)
        if held is None:
            continue
        if isinstance(held.action, Apply):
            message = f"{held.action.ref}: {held.refusal.message}"
            return Said(Type.READY, False, Reason.WRITE_FAILED, message)
        return conditions.refused(held)
    return None


def obstacle(world: World, log: Log, ref: Ref) -> Said | None:
    """Why this part can't serve the log as long as nobody changes what is declared."""
    what, made = f"{ref.kind} {ref.name}", dict(_templates(log)).keys()
    object = world.objects.get(ref)
    if object is None:
        reason = (
            Reason.SEQUENCERS_MISSING if ref.kind == names.SEQUENCERS else Reason.SHARDS_MISSING
        )
        why = "is being made" if ref in made else "isn't in this namespace: make it"
        return Said(Type.READY, False, reason, f"{what} {why}")
    if ref in made and not is_ours(object, log):
        message = (
            f"{what} is there already, and wasn't made for this Log: name it in the spec of "
            "another Log, or delete it"
        )
        return Said(Type.READY, False, Reason.NAME_TAKEN, message)
    part = world.sequencers.get(ref) or world.shards.get(ref)
    wanted = ENGINES[log.spec.engine]
    if part is not None and part.spec.engine is not wanted:
        message = (
            f"{what} is of engine {part.spec.engine}, and this Log needs engine {wanted}: make "
            "another Log, with the engine of its parts"
        )
        return Said(Type.READY, False, Reason.INVALID, message)
    group = world.shards.get(ref)
    ours = parts_of(log)[0].name
    if group is not None and group.spec.sequencers != ours:
        other = group.spec.sequencers
        message = f"{what} belongs to SequencerSet {other}, not to {ours}: name other groups"
        return Said(Type.READY, False, Reason.INVALID, message)
    return None


def unready(world: World, log: Log, ref: Ref) -> Said | None:
    """Why this part doesn't serve yet."""
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


def of_the_view(parts: Parts) -> Iterator[Said]:
    """What the SequencerSet of an Erwin log, or of a lazy front, says of its view."""
    if parts.sequencers is not None:
        for each in conditions.as_before(parts.sequencers.status.conditions):
            if each.type in (Type.SEALED, Type.RECONFIGURING):
                yield each
