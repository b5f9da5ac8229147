"""What goes wrong between a Belfast log, its pods, and whoever asks it."""

from collections.abc import Callable

from anabranch.core.types import Nanoseconds
from anabranch_operator.plan.engine.objects import Observed
from anabranch_sim.kubernetes.belfast.kubelets import BelfastKubelets
from anabranch_sim.kubernetes.belfast.processes import BelfastProcesses
from anabranch_sim.kubernetes.cluster.plane import ServiceFaults
from anabranch_sim.world.events import SECOND, World


class BelfastFaults:
    """They go by the names of the faults that others have as well."""

    def __init__(
        self, world: World, processes: BelfastProcesses, kubelets: BelfastKubelets
    ) -> None:
        self.world = world
        self.processes = processes
        self.kubelets = kubelets
        self.ways: dict[str, Callable[[], None]] = {
            "crashes": self._crash,
            "nodes": self._lose,
            "service": self._away,
            "silence": self._silence,
        }

    def start(self, service_faults: ServiceFaults) -> None:
        self.processes.service_faults = service_faults

    def heal(self) -> None:
        self.processes.service_faults = ServiceFaults()
        self.processes.away_until = 0

    def _crash(self) -> None:
        pod = self._pod()
        if pod is not None:
            self.kubelets.crash(pod)

    def _silence(self) -> None:
        pod = self._pod()
        if pod is not None:
            self.processes.silence(pod.uid, self._while())

    def _lose(self) -> None:
        node = self.world.rng.choice(self.kubelets.kube.of_kind("Node")).ref.name
        duration = self.world.between(SECOND, 120 * SECOND)
        self.kubelets.lose(node, duration, dead=self.world.chance(0.4))

    def _away(self) -> None:
        self.processes.away_until = self.world.now + self._while()

    def _pod(self) -> Observed | None:
        pods = self.kubelets.pods()
        return self.world.rng.choice(pods) if pods else None

    def _while(self) -> Nanoseconds:
        longest = self.world.rng.choice((2 * SECOND, 20 * SECOND, 60 * SECOND))
        return self.world.between(SECOND // 10, longest)
