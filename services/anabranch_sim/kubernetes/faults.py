"""What goes wrong between operators, API server, log service and brokers; and its end."""

from collections.abc import Callable
from functools import partial

from anabranch.core.types import Nanoseconds
from anabranch_operator.api import names
from anabranch_operator.plan.engine.dependencies import broker_name
from anabranch_operator.plan.engine.objects import Observed
from anabranch_sim.kubernetes.belfast.faults import BelfastFaults
from anabranch_sim.kubernetes.cluster.apiserver import ApiFaults
from anabranch_sim.kubernetes.cluster.controllers import Controllers
from anabranch_sim.kubernetes.cluster.plane import ServiceFaults
from anabranch_sim.kubernetes.cluster.watches import WatchFaults
from anabranch_sim.kubernetes.operators import Around, SimOperator
from anabranch_sim.world.events import SECOND
from anabranch_sim.world.faults import Faults


class OperatorFaults(Faults):
    def __init__(
        self,
        around: Around,
        controllers: Controllers,
        operators: list[SimOperator],
        faults: tuple[str, ...],
        belfast_faults: BelfastFaults | None = None,
    ) -> None:
        super().__init__(around.world, (SECOND // 2, 15 * SECOND))
        self.around = around
        self.controllers = controllers
        self.operators = operators
        self._faults = faults
        self._belfast_faults = belfast_faults
        ways: dict[str, Callable[[], None]] = {
            "api": self._stop_api,
            "crashes": self._crash,
            "kills": self._kill,
            "leaves": self._leave,
            "nodes": self._stop_node,
            "pauses": self._pause,
            "service": self._stop_service,
            "silence": self._silence,
            "watches": self._cut,
        }
        self.allow(ways, faults)
        if belfast_faults is not None:
            self.allow(belfast_faults.ways, faults)

    def start(self) -> None:
        rng, around = self.world.rng, self.around
        if "weather" in self._faults:
            around.api.faults = ApiFaults(
                tail=rng.choice((0, 0.05, 0.2)),
                lost=rng.choice((0, 0.02, 0.1)),
                unanswered=rng.choice((0, 0.02, 0.1)),
                throttled=rng.choice((0, 0.02, 0.1)),
                failing=rng.choice((0, 0.02, 0.1)),
            )
        if "requests" in self._faults:
            around.plane.service_faults = ServiceFaults(
                tail=rng.choice((0, 0.05, 0.3)),
                lost=rng.choice((0, 0.05, 0.2)),
                unanswered=rng.choice((0, 0.05, 0.2)),
                twice=rng.choice((0, 0.05, 0.2)),
            )
            if self._belfast_faults is not None:
                self._belfast_faults.start(around.plane.service_faults)
        if {"stale", "lost"} & set(self._faults):
            blurs = "stale" in self._faults
            around.watch_faults = WatchFaults(
                late=rng.choice((0.02, 0.2)) * blurs,
                twice=rng.choice((0.02, 0.2)) * blurs,
                stale=rng.choice((0.1, 0.5)) * blurs,
                lost=0.03 * ("lost" in self._faults),
            )
        super().start()

    def heal(self) -> None:
        super().heal()
        around = self.around
        around.api.faults, around.watch_faults = ApiFaults(), WatchFaults()
        around.plane.service_faults = ServiceFaults()
        around.api.away_until = around.plane.away_until = 0
        self.controllers.stuck.clear()
        if self._belfast_faults is not None:
            self._belfast_faults.heal()
        for operator in self.operators:
            operator.watches.watch_faults = WatchFaults()

    def _while(self) -> Nanoseconds:
        longest = self.world.rng.choice((2 * SECOND, 20 * SECOND, 60 * SECOND))
        return self.world.between(SECOND // 10, longest)

    def _operator(self) -> SimOperator:
        """Rather the one that leads."""
        leading = [each for each in self.operators if each.leads]
        if leading and self.world.chance(0.7):
            return leading[0]
        return self.world.rng.choice(self.operators)

    def _stop_api(self) -> None:
        self.around.api.away_until = self.world.now + self._while()

    def _stop_service(self) -> None:
        self.around.plane.away_until = self.world.now + self._while()

    def _kill(self) -> None:
        self._operator().die(self._while())

    def _leave(self) -> None:
        self._operator().leave(self._while())

    def _pause(self) -> None:
        self._operator().pause(self._while())

    def _cut(self) -> None:
        forgotten = self.world.chance(0.5)
        operator, rng = self._operator(), self.world.rng
        kinds = rng.sample(self.around.kinds, rng.choice((1, 3, len(self.around.kinds))))
        duration = self._while()
        for kind in kinds if operator.alive else ():
            operator.watches.cut(kind, duration, forgotten=forgotten)

    def _broker(self) -> Observed | None:
        pods = [
            each
            for each in self.around.api.kube.of_kind("Pod")
            if each.labels.get(names.ROLE) == names.BROKER
        ]
        return self.world.rng.choice(pods) if pods else None

    def _crash(self) -> None:
        pod = self._broker()
        if pod is not None:
            self.controllers.crash(pod)

    def _silence(self) -> None:
        pod = self._broker()
        if pod is not None:
            self.around.plane.lose(broker_name(pod))

    def _stop_node(self) -> None:
        node = self.world.rng.choice(self.around.api.kube.of_kind("Node")).ref.name
        self.controllers.stuck[node] = None
        self.world.after(self._while(), partial(self.controllers.stuck.pop, node, None))
