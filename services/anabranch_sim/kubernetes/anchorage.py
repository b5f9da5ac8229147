"""All that there is of Belfast in one simulation of operators, or else nothing of it."""

from collections.abc import Callable

from anabranch_operator.api import names
from anabranch_operator.plan.posts import CLAIM
from anabranch_operator.plan.reconciler import Planner
from anabranch_operator.plan.sequencers import plan_sequencers
from anabranch_operator.plan.shards import plan_shards
from anabranch_sim.kubernetes.docks import Docks
from anabranch_sim.kubernetes.kube import Change, Kube
from anabranch_sim.kubernetes.shippers import Shippers
from anabranch_sim.kubernetes.squalls import Squalls
from anabranch_sim.kubernetes.stevedores import Stevedores
from anabranch_sim.kubernetes.survey import Survey
from anabranch_sim.kubernetes.wardens import Wardens
from anabranch_sim.world import World

KINDS = (names.SEQUENCERS, names.SHARDS, CLAIM)
PLANNERS: dict[str, Planner] = {
    names.SEQUENCERS: plan_sequencers,
    names.SHARDS: plan_shards,
}


class Anchorage:
    def __init__(
        self,
        world: World,
        kube: Kube,
        fail: Callable[[str], None],
        stuck: dict[str, None],
        namespace: str,
    ) -> None:
        self.kube = kube
        self.docks = Docks(world)
        self.wardens = Wardens(world, self.docks, fail)
        self.stevedores = Stevedores(world, kube, self.docks, stuck)
        self.shippers = Shippers(world, kube, self.docks, self.stevedores, namespace)
        self.squalls = Squalls(world, self.docks, self.stevedores)

    def heed(self, change: Change) -> None:
        self.wardens.changed(change)
        self.stevedores.heed(change)

    def wrong(self) -> list[str]:
        return Survey(self.kube, self.docks).wrong()
