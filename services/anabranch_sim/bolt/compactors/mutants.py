"""Ways to get compactors wrong."""

# Breaking what others keep to themselves is the purpose here.
# pyright: reportPrivateUsage=false

from collections.abc import Sequence
from typing import Any

from anabranch.core.bolt.broker import compactors as serving
from anabranch.core.bolt.broker.checked_copies import CheckedCopy, joined_extents
from anabranch.core.bolt.metadata import leader
from anabranch.core.bolt.protocol.compactors import RUNNING, AdoptCopy
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.bolt.state.scans import compactors
from anabranch.core.records.objects import split_id
from anabranch.core.types import ObjectId
from anabranch_sim.world.mutants import Function, Mutant


def _believed(_: Function) -> Function:
    """The sums are those that the compactor says."""

    def check_copy(cluster: str, message: AdoptCopy, content: Any) -> CheckedCopy:
        joined = [*joined_extents(message.extents, message.joined)]
        return CheckedCopy(message.extents, joined)

    return check_copy


def _at_once(_: Function) -> Function:
    def unusable(replica: Replica, before: int) -> Any:
        return [each.id for each in replica.compactors.values() if each.ended != RUNNING]

    return unusable


def _of_seats_only(original: Function) -> Function:
    """Epochs of compactors don't count as alive."""

    def orphans(replica: Replica, objects: Sequence[ObjectId]) -> Any:
        found = original(replica, objects)
        kept = {*found}
        for object in objects:
            held = object in replica.references.garbage or object in _referenced(replica)
            if split_id(object)[0] in replica.compactors and not held:
                kept.add(object)
        return sorted(kept)

    return orphans


def _referenced(replica: Replica) -> set[int]:
    return {each for log in replica.forest.logs.values() for each in log.index.object}


def _whoever(original: Function) -> Function:
    """A compactor that has ended goes on."""

    def alive(replica: Replica, id: Any) -> Any:
        found = replica.compactors.get(id)
        return found if found is not None else original(replica, id)

    return alive


COMPACTOR_MUTANTS = [
    Mutant("copies aren't read back", serving, "check_copy", _believed),
    Mutant("a compactor is forgotten at once", compactors, "unusable", _at_once),
    Mutant("a compactor's objects are orphans", leader, "orphans", _of_seats_only),
    Mutant("a compactor swaps after its end", compactors, "alive", _whoever),
]
