"""A log of SequencerSets and ShardGroups in one simulation of operators, and all around it."""

from collections.abc import Callable

from anabranch_operator.api import names
from anabranch_operator.plan.engine.reconciler import Planner
from anabranch_operator.plan.groups.named_pods import CLAIM
from anabranch_operator.plan.groups.quota import CONFIG_MAP
from anabranch_operator.plan.groups.sequencers import plan_sequencers
from anabranch_operator.plan.groups.shards import plan_shards
from anabranch_sim.kubernetes.belfast.faults import BelfastFaults
from anabranch_sim.kubernetes.belfast.final_checks import BelfastChecks
from anabranch_sim.kubernetes.belfast.invariants import BelfastInvariants
from anabranch_sim.kubernetes.belfast.kubelets import BelfastKubelets
from anabranch_sim.kubernetes.belfast.processes import BelfastProcesses
from anabranch_sim.kubernetes.belfast.users import BelfastUsers
from anabranch_sim.kubernetes.cluster.objects import Change, Kube
from anabranch_sim.kubernetes.lazy.users import LazyUsers
from anabranch_sim.kubernetes.log_model import LogModel
from anabranch_sim.world.events import World

KINDS = (names.SEQUENCERS, names.SHARDS, CLAIM, CONFIG_MAP)
PLANNERS: dict[str, Planner] = {
    names.SEQUENCERS: plan_sequencers,
    names.SHARDS: plan_shards,
}


class BelfastPart:
    def __init__(
        self,
        world: World,
        kube: Kube,
        fail: Callable[[str], None],
        stuck: dict[str, None],
        namespace: str,
        made: Callable[[], LogModel],
        users: type[BelfastUsers | LazyUsers],
    ) -> None:
        """`made`: a log that begins."""
        self.kube = kube
        self.processes = BelfastProcesses(world, made)
        self.belfast_invariants = BelfastInvariants(world, self.processes, fail)
        self.kubelets = BelfastKubelets(world, kube, self.processes, stuck)
        engine = self.processes.log.engine
        self.belfast_users = users(world, kube, self.processes, self.kubelets, namespace, engine)
        self.belfast_faults = BelfastFaults(world, self.processes, self.kubelets)

    def on_change(self, change: Change) -> None:
        self.belfast_invariants.changed(change)
        self.kubelets.on_change(change)

    def wrong(self) -> list[str]:
        return BelfastChecks(self.kube, self.processes).wrong()
