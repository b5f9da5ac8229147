"""The metadata rebuilt from a snapshot and the entries behind it, when the journal is gone."""

from collections.abc import Sequence

import msgspec

from anabranch.core.bolt.metadata.leader import replayed
from anabranch.core.bolt.state import snapshot
from anabranch.core.bolt.state.retention import referenced
from anabranch.core.limits import Limits
from anabranch.core.records.objects import split_id
from anabranch.core.types import ObjectId


class Rebuilt(msgspec.Struct, frozen=True):
    """The state's image, and what the bucket says about how complete it is."""

    image: bytes
    logs: int
    forks: int
    missing: list[ObjectId]
    """Objects that are referred to and aren't in the bucket: damage."""
    unnamed: list[ObjectId]
    """Objects of the last lives of brokers that nothing refers to: written, and perhaps
    acknowledged, behind the last entry that is known.
    """
    returning: list[ObjectId]
    """Objects in quarantine that are referred to: whoever moved them there knew too little."""


def rebuild(
    cluster: str,
    limits: Limits,
    image: bytes | None,
    entries: Sequence[bytes],
    objects: Sequence[ObjectId],
    quarantined: Sequence[ObjectId] = (),
) -> Rebuilt:
    """`objects` and `quarantined` are all that the bucket holds. Lives of brokers are counted on
    from the latest that left one there, so that no name is given twice.
    """
    replica = replayed(cluster, limits, image, entries).replica
    named = referenced(replica)
    held: set[int] = {*objects, *quarantined}
    alive = {broker.epoch for broker in replica.brokers.values()}
    unnamed = [
        object
        for object in objects
        if object not in named
        and object not in replica.references.garbage
        and ((epoch := split_id(object)[0]) in alive or epoch > replica.broker_epochs)
    ]
    latest = max((split_id(object)[0] for object in (*objects, *quarantined)), default=0)
    replica.broker_epochs = max(replica.broker_epochs, latest)
    roots = sum(log.parent is None for log in replica.forest.logs.values())
    assert 0 <= roots <= len(replica.forest.logs)
    return Rebuilt(
        snapshot.save(replica),
        logs=roots,
        forks=len(replica.forest.logs) - roots,
        missing=[ObjectId(object) for object in sorted(named - held)],
        unnamed=unnamed,
        returning=[ObjectId(each) for each in sorted(named.intersection(quarantined) - {*objects})],
    )
