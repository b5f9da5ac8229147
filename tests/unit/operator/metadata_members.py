"""Metadata members of a StatefulSet whose controller is played by hand, and an operator."""

from typing import Any

from anabranch_operator.api import names
from anabranch_operator.plan.engine.actions import Action, Delete
from anabranch_operator.plan.engine.dependencies import MEMBERS
from anabranch_operator.plan.engine.events import Evicting, Measured, Vitals
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.world import Surroundings
from anabranch_operator.plan.log.services import is_ready
from anabranch_operator.plan.metadata.members import REVISION, plan_members
from anabranch_sim.kubernetes.sandbox import Sandbox

NAMESPACE = "demo"
OWNER = Ref("StatefulSet", NAMESPACE, "demo-metadata")


class MembersHarness:
    def __init__(self, replicas: int = 3, strategy: str = "OnDelete") -> None:
        surroundings = Surroundings(
            namespace=NAMESPACE, release="demo", metadata=OWNER.name, look_ms=10_000
        )
        self.office = Sandbox({MEMBERS: plan_members}, surroundings)
        self.office.crash = self._judge
        self.kube = self.office.kube
        self.replicas = replicas
        self.revision = "one"
        self.leader = "demo-metadata-0"
        self.behind = 0
        self.broken: dict[str, None] = {}
        """Members that don't get ready."""
        self._apply(OWNER, {"replicas": replicas, "updateStrategy": {"type": strategy}})
        self.roll("one")
        self.settle()
        self.office.done.clear()

    def roll(self, revision: str) -> None:
        self.revision = revision
        found = self.kube.get(OWNER)
        assert found is not None
        told = {"updateRevision": revision, "observedGeneration": found.generation}
        self.kube.report(OWNER, told)
        self.office.settle()

    def pods(self) -> list[Observed]:
        found = [each for each in self.kube.list() if each.ref.kind == "Pod"]
        return sorted(found, key=lambda pod: pod.ref)

    def pod(self, number: int) -> Observed:
        return self.pods()[number]

    def revisions(self) -> list[str]:
        return [pod.labels[REVISION] for pod in self.pods()]

    def deleted(self) -> list[str]:
        return [each.ref.name for each in self.office.done if isinstance(each, Delete)]

    def evict(self, pod: Observed) -> None:
        self.office.tell(Evicting(pod.uid))

    def step(self) -> None:
        """Controller, kubelets, the group's election, and a look at all members."""
        for pod in self.pods():
            if pod.deleting:
                self.kube.end(pod.ref)
        for number in range(self.replicas):
            ref = Ref("Pod", NAMESPACE, f"demo-metadata-{number}")
            if ref not in self.kube.documents:
                self._create(ref)
            elif ref.name not in self.broken:
                self.report(ref, ready=True)
        ready = [pod.ref.name for pod in self.pods() if is_ready(pod)]
        if self.leader not in ready and ready:
            self.leader = ready[-1]
        self.office.settle()
        self.measure()
        self.office.wait(11)

    def settle(self) -> None:
        for _ in range(50):
            version = self.kube.version
            self.step()
            if version == self.kube.version:
                return
        raise AssertionError("it never comes to rest")

    def measure(self) -> None:
        told = {
            pod.uid: Vitals(leading=pod.ref.name == self.leader, behind=self.behind)
            for pod in self.pods()
            if is_ready(pod)
        }
        self.office.tell(Measured(told))

    def report(self, ref: Ref, *, ready: bool, **status: Any) -> None:
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        self.kube.report(ref, {"phase": "Running", "conditions": [condition], **status})

    def crash(self, number: int) -> None:
        pod = self.pod(number)
        self.broken[pod.ref.name] = None
        waiting = {"name": "metadata", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
        self.report(pod.ref, ready=False, containerStatuses=[waiting])
        self.office.settle()

    def _create(self, ref: Ref) -> None:
        found = self.kube.get(OWNER)
        assert found is not None
        labels = {names.ROLE: names.METADATA, REVISION: self.revision}
        self._apply(
            ref,
            {"terminationGracePeriodSeconds": 30},
            labels=labels,
            ownerReferences=[{"uid": found.uid}],
        )

    def _apply(self, ref: Ref, spec: dict[str, Any], **meta: Any) -> None:
        named = {"name": ref.name, "namespace": ref.namespace, **meta}
        self.kube.apply(ref, {"kind": ref.kind, "metadata": named, "spec": spec})

    def _judge(self, action: Action) -> bool:
        """No member that serves is deleted beside one that doesn't."""
        if isinstance(action, Delete):
            pod = self.kube.get(action.ref)
            assert pod is not None
            assert pod.uid == action.uid
            others = [each for each in self.pods() if each.uid != action.uid]
            alone = all(is_ready(each) and not each.deleting for each in others)
            assert alone or not is_ready(pod), "two disruptions at once"
        return False
