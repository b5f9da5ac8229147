"""Ways to get a lazy front wrong as its operator: each breaks a rule where a function holds it."""

# Breaking what others keep to themselves is the purpose here.
# pyright: reportPrivateUsage=false

from typing import Any

from anabranch_operator.api.anabranch_names import Description
from anabranch_operator.plan.engine.world import Log, World
from anabranch_operator.plan.lazy import fronts
from anabranch_operator.plan.lazy.fronts import FrontPlan
from anabranch_sim.world.mutants import Function, Mutant


def _at_once(original: Function) -> Function:
    def made_direct(world: World, log: Log, found: Description, troubles: Any) -> FrontPlan:
        plan: FrontPlan = original(world, log, found, troubles)
        return FrontPlan(
            actions=(*plan.actions, *fronts._removed(world, log, found)), obstacle=plan.obstacle
        )

    return made_direct


MUTANTS = [
    Mutant("a set goes before its front has ended", fronts, "_made_direct", _at_once),
]
