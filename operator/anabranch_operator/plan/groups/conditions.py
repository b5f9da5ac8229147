"""What SequencerSets and ShardGroups have in common in what is told about them."""

from collections.abc import Iterable

from msgspec import Struct

from anabranch_operator.api.conditions import Condition, Reason, Type
from anabranch_operator.api.pods import RolloutPolicy
from anabranch_operator.plan.certificates.schedule import findings
from anabranch_operator.plan.engine.actions import (
    Announce,
    Apply,
    Create,
    Delete,
    JoinShard,
    LeaveShard,
)
from anabranch_operator.plan.engine.objects import Observed
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.status import Said
from anabranch_operator.plan.engine.world import World


class Obstacle(Struct, frozen=True):
    """Why a pod can't be replaced now, though it should be."""

    pod: str
    reason: Reason
    message: str


_WARNINGS = (Type.READY, Type.DEGRADED, Type.ROLLOUT_BLOCKED)
_TOLD = (*_WARNINGS, Type.JOINING, Type.LEAVING)


def unwritten(troubles: Troubles) -> Said | None:
    """What the API server, or the log, has refused."""
    for kind in (Create, Apply, Delete):
        held = troubles.with_action(kind)
        if held is not None and isinstance(held.action, kind):
            message = f"{held.action.ref}: {held.refusal.message}"
            return Said(Type.READY, False, Reason.WRITE_FAILED, message)
    for kind, what in ((JoinShard, "join"), (LeaveShard, "leave")):
        held = troubles.with_action(kind)
        if held is not None and isinstance(held.action, kind):
            message = f"{held.action.shard} can't {what}: {held.refusal.message}"
            return Said(Type.READY, False, Reason.REFUSED, message)
    return None


def degraded(world: World, flaws: Iterable[tuple[Reason, str]]) -> Said:
    found = list(flaws)
    if found:
        message = "; ".join(message for _, message in found)
        return Said(Type.DEGRADED, True, found[0][0], message)
    certificates = [f"{each.object} {each.says}" for each in findings(world)]
    if certificates:
        return Said(Type.DEGRADED, True, Reason.CERTIFICATES_FLAWED, "; ".join(certificates))
    return Said(Type.DEGRADED, False, Reason.PODS_HEALTHY)


def blocked(obstacle: Obstacle | None, old: int, policy: RolloutPolicy) -> Said:
    if obstacle is not None:
        message = f"{obstacle.pod} can't be replaced yet: {obstacle.message}"
        return Said(Type.ROLLOUT_BLOCKED, True, obstacle.reason, message)
    if old and policy is not RolloutPolicy.AUTO:
        message = f"{old} pods run an older spec, and policy {policy} leaves them"
        return Said(Type.ROLLOUT_BLOCKED, False, Reason.UP_TO_DATE, message)
    return Said(Type.ROLLOUT_BLOCKED, False, Reason.UP_TO_DATE)


def announce(
    object: Observed, before: Iterable[Condition], said: Iterable[Said]
) -> tuple[Announce, ...]:
    """Events, for what has just come to be so, or has just ended."""
    known = {each.type: each for each in before}
    found: list[Announce] = []
    for each in said:
        old = known.get(each.type.value)
        now = {True: "True", False: "False", None: "Unknown"}[each.status]
        good = each.status is (each.type is Type.READY)
        news = old is None or old.status != now
        # A resource begins unready, and without anything that joins or leaves.
        if each.type not in _TOLD or not news or (old is None and each.status is False):
            continue
        found.append(
            Announce(
                ref=object.ref,
                uid=object.uid,
                warning=each.type in _WARNINGS and not good,
                reason=each.reason.value,
                message=each.message or each.reason.value,
            )
        )
    return tuple(found)
