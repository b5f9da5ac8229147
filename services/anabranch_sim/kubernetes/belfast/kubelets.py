"""Kubelets of Belfast's pods, and what keeps volumes: pods start once their volumes are there, are
probed, crash, are lost with their nodes, and end.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from anabranch.core.types import MS, Nanoseconds
from anabranch_operator.api import names
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.status import stamp
from anabranch_operator.plan.groups.named_pods import CLAIM
from anabranch_sim.kubernetes.belfast.processes import BelfastProcesses
from anabranch_sim.kubernetes.cluster.controllers import BAD
from anabranch_sim.kubernetes.cluster.objects import Change, Kube
from anabranch_sim.world.events import SECOND, World

ROLES = (names.SEQUENCER, names.SHARD)
PROTECTION = "kubernetes.io/pvc-protection"
UNREACHABLE: Nanoseconds = 40 * SECOND
"""After so long the pods of a node that isn't heard of count as unready."""
_TRY: Nanoseconds = 5 * SECOND


class BelfastKubelets:
    """They react to changes, in their own time."""

    def __init__(
        self, world: World, kube: Kube, processes: BelfastProcesses, stuck: dict[str, None]
    ) -> None:
        """`stuck`: nodes whose kubelets do nothing."""
        self.world = world
        self.kube = kube
        self.processes = processes
        self._stuck = stuck
        self._begun: dict[str, None] = {}
        self._ending: dict[str, None] = {}
        self._told: dict[str, bool] = {}
        """What was said last of pods that are probed."""
        processes.stepped.append(self._probe)

    def on_change(self, change: Change) -> None:
        object, world = change.object, self.world
        if object.ref.kind == CLAIM and not change.gone:
            world.after(world.between(MS, 20 * MS), partial(self._keep, object.ref))
        elif object.ref.kind != "Pod" or object.labels.get(names.ROLE) not in ROLES:
            return
        elif change.gone:
            self.processes.end(object.uid)
            self._told.pop(object.uid, None)
            for claim in self._claims(object):
                world.after(world.between(MS, 20 * MS), partial(self._keep, claim))
        else:
            soon = world.between(10 * MS, 2 * SECOND)
            world.after(soon, partial(self._tend, object.ref, object.uid))

    def pods(self) -> list[Observed]:
        return [each for each in self.kube.of_kind("Pod") if each.labels.get(names.ROLE) in ROLES]

    def crash(self, pod: Observed) -> None:
        """Its container ends, and begins anew after a while."""
        if pod.uid not in self.processes.by_uid or pod.deleting:
            return
        self.processes.end(pod.uid)
        self._told.pop(pod.uid, None)
        self._tell(pod, ready=False)
        pause = self.world.between(SECOND, 20 * SECOND)
        self.world.after(pause, partial(self._begin_anew, pod.ref, pod.uid))

    def lose(self, node: str, duration: Nanoseconds, *, dead: bool) -> None:
        """Nothing is heard of it for a while. `dead`: and in the end somebody says that it is."""
        if node in self.processes.lost:
            return
        self.processes.lost[node] = None
        self.world.note(node, "is lost, and dead" if dead else "is lost")
        self.world.after(UNREACHABLE, partial(self._mark, node))
        self.world.after(duration, partial(self._find, node, dead=dead))

    def _mark(self, node: str) -> None:
        if node in self.processes.lost:
            for pod in self._on(node):
                self._told[pod.uid] = False
                self._tell(pod, ready=False)

    def _find(self, node: str, *, dead: bool) -> None:
        for pod in self._on(node) if dead else ():
            self.kube.end(pod.ref)
        self.processes.lost.pop(node, None)

    def _on(self, node: str) -> list[Observed]:
        return [each for each in self.pods() if each.spec.get("nodeName") == node]

    # Kubelets.

    def _tend(self, ref: Ref, uid: str) -> None:
        pod = self.kube.get(ref)
        if pod is None or pod.uid != uid:
            return
        node = pod.spec.get("nodeName", "")
        if node in self._stuck or node in self.processes.lost:
            self._again(pod)
        elif pod.deleting:
            self._end(pod)
        elif not node:
            self._place(pod)
        elif uid not in self._begun:
            self._begun[uid] = None
            self._begin(pod)

    def _again(self, pod: Observed) -> None:
        self.world.after(_TRY, partial(self._tend, pod.ref, pod.uid))

    def _end(self, pod: Observed) -> None:
        """It hands over, or stores what is left to store, which takes a moment."""
        if pod.uid in self._ending or not pod.spec.get("nodeName"):
            self.kube.end(pod.ref)
            return
        self._ending[pod.uid] = None
        pause = self.world.between(10 * MS, 5 * SECOND)
        self.world.after(pause, partial(self._tend, pod.ref, pod.uid))

    def _place(self, pod: Observed) -> None:
        """Where fewest of its own kind are; and never before its volumes."""
        volumes = [self.kube.get(each) for each in self._claims(pod)]
        if any(each is None or each.deleting for each in volumes):
            self._again(pod)
            return
        mates = [
            each.spec.get("nodeName")
            for each in self.pods()
            if _crew(each) == _crew(pod) and each.uid != pod.uid
        ]
        free = [
            each.ref.name
            for each in self.kube.of_kind("Node")
            if not each.spec.get("unschedulable") and each.ref.name not in self.processes.lost
        ]
        if free:
            node = min(free, key=lambda each: (mates.count(each), self.world.rng.random()))
            self.kube.edit(pod.ref, nodeName=node)
        else:
            self._again(pod)

    def _begin(self, pod: Observed) -> None:
        if pod.spec["containers"][0]["image"] == BAD:
            waiting = {"name": "belfast", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
            self._tell(pod, ready=False, containerStatuses=[waiting])
            return
        self.processes.begin(pod, self._disk(pod))

    def _begin_anew(self, ref: Ref, uid: str) -> None:
        pod = self.kube.get(ref)
        if pod is None or pod.uid != uid or pod.deleting:
            return
        node = pod.spec["nodeName"]
        if node in self._stuck or node in self.processes.lost:
            self.world.after(_TRY, partial(self._begin_anew, ref, uid))
        else:
            self._begin(pod)

    def _probe(self) -> None:
        """A kubelet tells only what is new."""
        for process in list(self.processes.by_uid.values()):
            serves = self.processes.serves(process)
            if serves is None or process.node in self._stuck:
                continue
            if self._told.get(process.uid, False) != serves:
                self._told[process.uid] = serves
                pod = next(each for each in self.pods() if each.uid == process.uid)
                self._tell(pod, ready=serves)

    def _tell(self, pod: Observed, *, ready: bool, **more: Any) -> None:
        condition = {
            "type": "Ready",
            "status": "True" if ready else "False",
            "lastTransitionTime": stamp(self.kube.time),
        }
        address = f"10.0.1.{int(pod.uid[-6:]) % 250}"
        status = {"phase": "Running", "podIP": address, "conditions": [condition], **more}
        self.kube.report(pod.ref, status)

    # Volumes.

    def _keep(self, ref: Ref) -> None:
        """One that is used stays, though somebody has deleted it, until it isn't any more."""
        claim = self.kube.get(ref)
        if claim is None:
            return
        held = PROTECTION in claim.finalizers
        if not claim.deleting and not held:
            self.kube.hold(ref, PROTECTION, held=True)
        used = any(ref in self._claims(pod) for pod in self.pods())
        if claim.deleting and held and not used:
            self.kube.hold(ref, PROTECTION, held=False)

    def _claims(self, pod: Observed) -> Iterator[Ref]:
        for volume in pod.spec["volumes"]:
            claim = volume.get("persistentVolumeClaim")
            if claim is not None:
                yield Ref(CLAIM, pod.ref.namespace, claim["claimName"])

    def _disk(self, pod: Observed) -> int:
        """What is on a volume is told apart by the volume, and else by the pod."""
        found = (self.kube.get(each) for each in self._claims(pod))
        uid = next((each.uid for each in found if each is not None), pod.uid)
        return int(uid[-12:])


def _crew(pod: Observed) -> str:
    """Who shouldn't be on one node."""
    return pod.labels.get(names.SHARD_LABEL, names.SEQUENCER)
