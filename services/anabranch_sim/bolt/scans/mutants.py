"""Ways to get scan plans wrong."""

# Breaking what others keep to themselves is the purpose here.
# pyright: reportPrivateUsage=false

from typing import Any

from msgspec.structs import replace

from anabranch.core.bolt.broker import scans
from anabranch.core.bolt.metadata.garbage import Garbage
from anabranch.core.bolt.protocol.scans import RenewPlan
from anabranch.core.bolt.state import state
from anabranch.core.bolt.state.replica import Replica
from anabranch_sim.world.mutants import Function, Mutant, returning


def _whatever_is_planned(_: Function) -> Function:
    def deleted_before(self: Garbage, now: int) -> int:
        return now - self._limits.grace_ms

    return deleted_before


def _from_its_renewal(original: Function) -> Function:
    def renew(replica: Replica, command: RenewPlan) -> Any:
        plan = original(replica, command)
        held = replica.plans.live[command.plan]
        held.plan = replace(held.plan, began=replica.at)
        return plan

    return renew


SCAN_MUTANTS = [
    Mutant("garbage goes while plans name it", Garbage, "_deleted_before", _whatever_is_planned),
    Mutant("a renewed plan holds from then on", state._DO, RenewPlan, _from_its_renewal),
    Mutant("what no page named is signed", scans, "_unsealed", returning(None)),
]
