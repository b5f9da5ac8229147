"""Ways to get Erwin wrong as its operator: each breaks one rule, where one function holds it."""

# Breaking what others keep to themselves is the purpose here.
# pyright: reportPrivateUsage=false

from anabranch_operator.api.anabranch_names import ShardPlace
from anabranch_operator.plan.erwin import report
from anabranch_operator.plan.groups.report import Standing
from anabranch_sim.world.mutants import Function, Mutant


def _once_closed(original: Function) -> Function:
    def standing(place: ShardPlace) -> Standing:
        found: Standing = original(place)
        return Standing.LEFT if found is Standing.LEAVING else found

    return standing


MUTANTS = [
    Mutant("a closed shard's pods and volumes go", report, "_standing", _once_closed),
]
