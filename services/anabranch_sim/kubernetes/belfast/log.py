"""All that there is of Belfast in one simulation of operators, or else nothing of it."""

from collections.abc import Callable

from anabranch_operator.api import names
from anabranch_operator.plan.belfast.named_pods import CLAIM
from anabranch_operator.plan.belfast.sequencers import plan_sequencers
from anabranch_operator.plan.belfast.shards import plan_shards
from anabranch_operator.plan.engine.reconciler import Planner
from anabranch_sim.kubernetes.belfast.faults import Squalls
from anabranch_sim.kubernetes.belfast.final_checks import Survey
from anabranch_sim.kubernetes.belfast.invariants import Wardens
from anabranch_sim.kubernetes.belfast.kubelets import Stevedores
from anabranch_sim.kubernetes.belfast.processes import Docks
from anabranch_sim.kubernetes.belfast.users import Shippers
from anabranch_sim.kubernetes.cluster.objects import Change, Kube
from anabranch_sim.world.events import World

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
