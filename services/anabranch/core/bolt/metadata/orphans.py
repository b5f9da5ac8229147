"""Objects that nothing refers to and that were never garbage: written, and never committed."""

from collections.abc import Sequence

from anabranch.core.bolt.state.replica import Replica
from anabranch.core.bolt.state.retention import referenced
from anabranch.core.machine import Effect, Effects, PurgeQuarantine, ReturnObjects
from anabranch.core.records.objects import split_id
from anabranch.core.types import Milliseconds, ObjectId


def orphans(replica: Replica, objects: Sequence[ObjectId]) -> list[ObjectId]:
    """Objects of broker lives that are over, which nothing refers to: their commits can't come any
    more.

    They are not deleted at once: if this journal isn't all that was journaled, they may hold the
    only copy of records that were acknowledged.
    """
    alive = {broker.epoch for broker in replica.brokers.values()}
    assert len(alive) == len(replica.brokers), "each life of a broker has an epoch of its own"
    kept = referenced(replica)
    return [
        object
        for object in objects
        if object not in kept
        and object not in replica.references.garbage
        and (epoch := split_id(object)[0]) not in alive
        and epoch <= replica.broker_epochs
    ]


def sort_quarantine(
    replica: Replica, before: Milliseconds, objects: Sequence[tuple[ObjectId, Milliseconds]]
) -> Effects:
    """Bring back what some log refers to, and delete the rest that came before a time.

    Whoever moved an object there may have known an older journal. Nothing of a broker life that
    this one doesn't know is deleted: it may be the older one itself.
    """
    if not objects:
        return ()
    kept = referenced(replica)
    returning = [object for object, _ in objects if object in kept]
    purged = [
        object
        for object, since in objects
        if object not in kept and since < before and split_id(object)[0] <= replica.broker_epochs
    ]
    effects: list[Effect] = [ReturnObjects(returning)] if returning else []
    if purged:
        effects.append(PurgeQuarantine(purged))
    return tuple(effects)
