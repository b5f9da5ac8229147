"""A pool of brokers whose pods are started, broken and ended by hand, and an operator that tends
it: every action of it is held against what it may do.
"""

from typing import Any, TypeVar

from anabranch.core.bolt.protocol.commands import CreateLog, LoseBroker, RegisterBroker
from anabranch.core.bolt.protocol.commands import DrainBroker as Drained
from anabranch.core.bolt.protocol.queries import BrokerSeat
from anabranch.core.bolt.state import placement
from anabranch.core.types import MS
from anabranch_operator.api import names
from anabranch_operator.api.pool import PoolStatus
from anabranch_operator.plan.engine.actions import (
    Act,
    Action,
    Create,
    Delete,
    DrainBroker,
    ForgetBroker,
)
from anabranch_operator.plan.engine.dependencies import broker_name
from anabranch_operator.plan.engine.events import Evicting, Measured, Vitals
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.status import stamp
from anabranch_operator.plan.engine.world import Pool, Surroundings
from anabranch_operator.plan.log.services import is_ready
from anabranch_operator.plan.metadata.evictions import deadline
from anabranch_operator.plan.pool.pools import plan_pool
from anabranch_sim.kubernetes.cluster.objects import Check, Kube
from anabranch_sim.kubernetes.sandbox import Sandbox

NAMESPACE = "demo"
POOL = Ref(names.POOL, NAMESPACE, "demo")
BAD = "bad"
LOOK_S = 10
NODES = 4

A = TypeVar("A", bound=Act)


class PoolHarness:
    def __init__(self, check: Check | None = None, **spec: Any) -> None:
        surroundings = Surroundings(
            namespace=NAMESPACE, release="demo", look_ms=LOOK_S * 1_000, resync_ms=3_600_000
        )
        self.office = Sandbox({names.POOL: plan_pool}, surroundings, Kube(check))
        self.office.crash = self._judge
        self.kube = self.office.kube
        self.frozen: dict[str, None] = {}
        """Pods by UID whose kubelet does nothing."""
        self._handing_over: list[str] = []
        for number in range(NODES):
            self._apply(Ref("Node", "", f"node-{number}"), {})
        self._apply(POOL, {"image": "good", "min": 2, "max": 4, "spare": 1} | spec)
        self.office.settle()

    @property
    def pool(self) -> Pool:
        return self.office.operator.world.pools[POOL]

    @property
    def status(self) -> PoolStatus:
        return self.pool.status

    def condition(self, name: str) -> tuple[str, str, str]:
        found = next(each for each in self.status.conditions if each.type == name)
        return found.status, found.reason, found.message

    def pods(self) -> list[Observed]:
        """By number; also those that are ending."""
        found = [each for each in self.kube.list() if each.ref.kind == "Pod"]
        return sorted(found, key=lambda pod: (len(pod.ref.name), pod.ref.name))

    def names(self) -> list[str]:
        return [pod.ref.name for pod in self.pods()]

    def pod(self, name: str) -> Observed:
        found = self.kube.get(Ref("Pod", NAMESPACE, name))
        assert found is not None, self.names()
        return found

    def seat(self, pod: Observed) -> BrokerSeat | None:
        found = {seat.name: seat for seat in self.office.service.brokers()}
        return found.get(broker_name(pod))

    def busiest(self) -> Observed:
        """The pod that serves the only root, which is made if there is none."""
        service = self.office.service
        if not any(each.roots for each in service.brokers()):
            service.command(CreateLog("orders"))
            self.settle()
        seat = next(each for each in service.brokers() if each.roots)
        return self.pod(seat.name.partition(".")[0])

    def done(self, *kinds: type[A]) -> list[A]:
        """What was done since the last question, of these kinds."""
        found = [each for each in self.office.done if isinstance(each, kinds)]
        self.office.done.clear()
        return found

    # What kubelets, brokers and people do.

    def tend(self) -> bool:
        """Every kubelet and broker goes one step on; False if nobody had anything to do."""
        moved = [self._tend(pod) for pod in self.pods() if pod.uid not in self.frozen]
        self.office.settle()
        return any(moved)

    def settle(self, rounds: int = 100) -> None:
        """Until nothing is left to be done; waiting for less than a look isn't doing."""
        for _ in range(rounds):
            before = self.kube.version, len(self.office.done)
            moved = self.tend()
            self.office.wait(LOOK_S + 1)
            if not moved and before == (self.kube.version, len(self.office.done)):
                return
        raise AssertionError(f"it never comes to rest: {self.office.done[-12:]}")

    def step(self) -> None:
        self.tend()
        self.office.wait(LOOK_S + 1)

    def crash(self, pod: Observed) -> None:
        """Its container ends, and ends again."""
        waiting = {"name": "broker", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
        self._report(pod, ready=False, containerStatuses=[waiting])
        self.lose(pod)

    def lose(self, pod: Observed) -> None:
        seat = self.seat(pod)
        if seat is not None:
            self.office.service.command(LoseBroker(seat.name, seat.epoch))

    def start(self, pod: Observed) -> None:
        self._report(pod, ready=True)
        self.office.service.command(RegisterBroker(broker_name(pod), f"{pod.ref.name}:7420"))

    def evict(self, pod: Observed) -> None:
        self.office.tell(Evicting(pod.uid))

    def cordon(self, node: str, *, on: bool) -> None:
        self.kube.edit(Ref("Node", "", node), unschedulable=on)

    def edit(self, **spec: Any) -> None:
        self.kube.edit(POOL, **spec)
        self.office.settle()

    def measure(self, **bytes_per_s: float) -> None:
        """By the pods' names."""
        told = {
            pod.uid: Vitals(append_bytes_per_s=bytes_per_s.get(pod.ref.name.replace("-", "_"), 0.0))
            for pod in self.pods()
        }
        self.office.tell(Measured(told))

    def _tend(self, pod: Observed) -> bool:
        if pod.deleting:
            seat = self.seat(pod)
            if seat is not None and seat.state == placement.READY:
                self.office.service.command(Drained(seat.name, seat.epoch))
                return True
            self.kube.end(pod.ref)
            return True
        if not pod.spec.get("nodeName"):
            return self._place(pod)
        if is_ready(pod):
            return False
        if pod.spec["containers"][0]["image"] != BAD:
            self.start(pod)
            return True
        known = bool(pod.status.get("containerStatuses"))
        if not known:
            self.crash(pod)
        return not known

    def _place(self, pod: Observed) -> bool:
        """On the emptiest node that takes it."""
        taken = [each.spec.get("nodeName") for each in self.pods()]
        free = [
            each.ref.name
            for each in self.kube.list()
            if each.ref.kind == "Node" and not each.spec.get("unschedulable")
        ]
        if not free:
            return False
        self.kube.edit(pod.ref, nodeName=min(free, key=lambda node: (taken.count(node), node)))
        return True

    def _report(self, pod: Observed, *, ready: bool, **more: Any) -> None:
        at = stamp(self.office.now // MS)
        condition = {
            "type": "Ready",
            "status": "True" if ready else "False",
            "lastTransitionTime": at,
        }
        self.kube.report(pod.ref, {"phase": "Running", "conditions": [condition], **more})

    def _apply(self, ref: Ref, spec: dict[str, Any]) -> None:
        meta = {"name": ref.name, "namespace": ref.namespace}
        self.kube.apply(ref, {"kind": ref.kind, "metadata": meta, "spec": spec})

    # What the operator mustn't do.

    def _judge(self, action: Action) -> bool:
        """Never ends the operator: it only looks at what is about to be done."""
        match action:
            case DrainBroker():
                self._judge_drain(action)
            case Delete(ref=Ref(kind="Pod")):
                self._judge_delete(action)
            case ForgetBroker():
                uid = action.broker.rpartition(".")[2]
                assert all(pod.uid != uid for pod in self.pods()), "a life is taken for another"
            case Create():
                staying = [pod for pod in self._known() if not self._is_leaving(pod)]
                assert len(staying) <= self.pool.spec.max, "more than one beyond the bounds"
            case _:
                pass
        return False

    def _judge_drain(self, action: DrainBroker) -> None:
        pod = next(each for each in self._known() if broker_name(each) == action.broker)
        if self._is_forced(pod):
            return
        for uid in self._handing_over:
            known = self.office.operator.world.by_uid(uid)
            stuck = known is not None and known.deleting and known.ends_at * MS <= self.office.now
            assert known is None or stuck or uid == pod.uid, "two disruptions at once"
        others = [each for each in self._known() if each.uid != pod.uid and self._serves(each)]
        assert len(others) >= self.pool.spec.min, "fewer than the least are left"
        self._handing_over.append(pod.uid)

    def _judge_delete(self, action: Delete) -> None:
        pod = self.office.operator.world.objects.get(action.ref)
        assert pod is not None
        assert pod.uid == action.uid, "a life is taken for another"
        assert self._is_forced(pod) or not self._serves(pod), "it wasn't drained"

    def _is_forced(self, pod: Observed) -> bool:
        world = self.office.operator.world
        eviction = world.evicting.get(pod.uid)
        return eviction is not None and deadline(world, eviction) <= self.office.now

    def _is_leaving(self, pod: Observed) -> bool:
        seat = self.office.operator.world.service.brokers.get(broker_name(pod))
        return pod.deleting or (
            seat is not None and seat.state == placement.DRAINING and is_ready(pod)
        )

    def _serves(self, pod: Observed) -> bool:
        """As far as the operator can know."""
        seat = self.office.operator.world.service.brokers.get(broker_name(pod))
        ready = seat is not None and seat.state == placement.READY
        return ready and is_ready(pod) and not pod.deleting

    def _known(self) -> list[Observed]:
        return [
            each
            for each in self.office.operator.world.of_kind("Pod")
            if each.labels.get(names.ROLE) == names.BROKER
        ]
