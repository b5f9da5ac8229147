"""Everybody else in a cluster: scheduler, kubelets, Jobs, StatefulSets, garbage, namespaces."""

from collections.abc import Callable
from functools import partial
from typing import Any

from anabranch.core.types import MS, Nanoseconds
from anabranch_operator.api import names
from anabranch_operator.plan.engine.dependencies import broker_name
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.status import stamp
from anabranch_operator.plan.log.services import is_ready
from anabranch_operator.plan.metadata.members import REVISION
from anabranch_sim.kubernetes.cluster.objects import Change, Kube
from anabranch_sim.kubernetes.cluster.plane import Plane
from anabranch_sim.world.events import SECOND, World

BAD = "bad"
"""An image that never comes up."""
_TRY: Nanoseconds = 5 * SECOND
_ENDED = ("Succeeded", "Failed")


class Controllers:
    """They react to changes, in their own time."""

    def __init__(self, world: World, kube: Kube, plane: Plane) -> None:
        self.world = world
        self.kube = kube
        self.plane = plane
        self.gc: Nanoseconds = 10 * SECOND
        self.failing_jobs = 0.3
        self.reporting_jobs = 0.4
        self.late_appends = 0.3
        """How often somebody appends to a fork after its gate has read it."""
        self.on_read: Callable[[Observed, int], None] = lambda _job, _own_records: None
        """Told how many own records of its fork a Job has read that is about to succeed."""
        self.stuck: dict[str, None] = {}
        """Nodes whose kubelets do nothing."""
        self.crashed: dict[str, None] = {}
        """Pods by UID whose containers wait before they begin anew."""
        self._begun: dict[str, None] = {}
        self._ending: dict[str, None] = {}
        self._judged: dict[str, None] = {}
        self._read: dict[str, int] = {}
        """How many own records of its fork a Job has read, by UID."""

    def start(self) -> None:
        self._collect()

    def on_change(self, change: Change) -> None:
        object, world = change.object, self.world
        if change.gone:
            if object.ref.kind == "Pod" and object.labels.get(names.ROLE) == names.METADATA:
                world.after(world.between(MS, SECOND), self._fill)
            return
        soon = world.between(10 * MS, 2 * SECOND)
        match object.ref.kind:
            case "Pod":
                world.after(soon, partial(self._tend, object.ref, object.uid))
            case "Job":
                world.after(soon, partial(self._run, object.ref, object.uid))
            case "StatefulSet":
                world.after(soon, self._fill)
            case "Namespace" if object.deleting:
                world.after(soon, partial(self._clear, object.ref))
            case _:
                pass

    def crash(self, pod: Observed) -> None:
        """Its container ends, and begins anew after a while."""
        if pod.uid not in self._begun or pod.uid in self.crashed or pod.deleting:
            return
        self.crashed[pod.uid] = None
        self.plane.crash(broker_name(pod))
        self._tell(pod, ready=False)
        self.world.after(
            self.world.between(SECOND, 20 * SECOND), partial(self._begin_anew, pod.ref, pod.uid)
        )

    # Kubelets.

    def _tend(self, ref: Ref, uid: str) -> None:
        pod = self.kube.get(ref)
        role = "" if pod is None else pod.labels.get(names.ROLE, "")
        if pod is None or pod.uid != uid or role not in (names.BROKER, names.METADATA):
            return
        node = pod.spec.get("nodeName", "")
        if node in self.stuck:
            self._again(pod)
        elif pod.deleting:
            self._end(pod, node)
        elif not node:
            self._place(pod)
        elif uid not in self._begun:
            self._begin(pod)

    def _again(self, pod: Observed) -> None:
        self.world.after(_TRY, partial(self._tend, pod.ref, pod.uid))

    def _place(self, pod: Observed) -> None:
        taken = [each.spec.get("nodeName") for each in self.kube.of_kind("Pod")]
        free = [
            each.ref.name
            for each in self.kube.of_kind("Node")
            if not each.spec.get("unschedulable")
        ]
        if free:
            node = min(free, key=lambda each: (taken.count(each), each))
            self.kube.edit(pod.ref, nodeName=node)
        else:
            self._again(pod)

    def _begin(self, pod: Observed) -> None:
        self._begun[pod.uid] = None
        if pod.spec["containers"][0]["image"] == BAD:
            waiting = {"name": "broker", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
            self._tell(pod, ready=False, containerStatuses=[waiting])
            return
        if pod.labels.get(names.ROLE) == names.BROKER:
            self.plane.begin(broker_name(pod))
        self._probe(pod.ref, pod.uid)

    def _begin_anew(self, ref: Ref, uid: str) -> None:
        self.crashed.pop(uid, None)
        pod = self.kube.get(ref)
        if pod is not None and pod.uid == uid and not pod.deleting:
            if pod.labels.get(names.ROLE) == names.BROKER:
                self.plane.begin(broker_name(pod))
            self._probe(ref, uid)

    def _probe(self, ref: Ref, uid: str) -> None:
        """Ready, once it serves."""
        pod = self.kube.get(ref)
        if pod is None or pod.uid != uid or uid in self.crashed or is_ready(pod):
            return
        serves = pod.labels.get(names.ROLE) != names.BROKER
        if serves or self.plane.is_serving(broker_name(pod)):
            self._tell(pod, ready=True)
            self._lead()
        elif not pod.deleting:
            self.world.after(SECOND, partial(self._probe, ref, uid))

    def _end(self, pod: Observed, node: str) -> None:
        """It hands over, for as long as it is given."""
        is_broker = pod.labels.get(names.ROLE) == names.BROKER
        if pod.uid not in self._ending:
            self._ending[pod.uid] = None
            if is_broker:
                self.plane.end(broker_name(pod))
        over = self.kube.time >= pod.ends_at or not node
        if over and is_broker:
            self.plane.crash(broker_name(pod))
        if not is_broker or over or self.plane.has_ended(broker_name(pod)):
            self.kube.end(pod.ref)
            self._lead()
        else:
            self.world.after(SECOND, partial(self._tend, pod.ref, pod.uid))

    def _tell(self, pod: Observed, *, ready: bool, **more: Any) -> None:
        condition = {
            "type": "Ready",
            "status": "True" if ready else "False",
            "lastTransitionTime": stamp(self.kube.time),
        }
        address = f"10.0.0.{int(pod.uid[-6:]) % 250}"
        status = {"phase": "Running", "podIP": address, "conditions": [condition], **more}
        self.kube.report(pod.ref, status)

    # Jobs.

    def _run(self, ref: Ref, uid: str) -> None:
        job = self.kube.get(ref)
        if job is None or job.uid != uid or job.deleting or uid in self._judged:
            return
        self._judged[uid] = None
        template = job.spec["template"]
        meta = {
            "name": f"{ref.name}-x",
            "namespace": ref.namespace,
            "labels": template["metadata"]["labels"],
            "ownerReferences": [{"kind": "Job", "name": ref.name, "uid": uid}],
        }
        pod = Ref("Pod", ref.namespace, f"{ref.name}-x")
        self.kube.apply(pod, {"kind": "Pod", "metadata": meta, "spec": template["spec"]})
        fails = self.world.chance(self.failing_jobs)
        duration = self.world.between(2 * SECOND, 40 * SECOND)
        self.world.after(self.world.between(0, duration), partial(self._judge, job, fails=fails))
        self.world.after(duration, partial(self._finish, ref, uid, pod, fails=fails))

    def _judge(self, job: Observed, *, fails: bool) -> None:
        """The gate reads the fork, and somebody may append to it soon afterwards."""
        env = job.spec["template"]["spec"]["containers"][0]["env"]
        name = next(each["value"] for each in env if each["name"] == "ANABRANCH_LOG")
        found = self.plane.found(name)
        if found is None:
            return
        self._read[job.uid] = found.own_records
        if not fails:
            self.on_read(job, found.own_records)
        if self.world.chance(self.late_appends):
            late = self.world.between(0, 20 * SECOND)
            self.world.after(late, partial(self._append_late, name))

    def _append_late(self, name: str) -> None:
        found = self.plane.found(name)
        if found is not None:
            self.plane.append(found.id, 1)

    def _finish(self, ref: Ref, uid: str, pod: Ref, *, fails: bool) -> None:
        job = self.kube.get(ref)
        if self.kube.get(pod) is not None:
            message = "it ended"
            if uid in self._read and self.world.chance(self.reporting_jobs):
                message = f'{{"ownRecords": {self._read[uid]}}}'
            ended = {"name": "gate", "state": {"terminated": {"message": message}}}
            phase = "Failed" if fails else "Succeeded"
            self.kube.report(pod, {"phase": phase, "containerStatuses": [ended]})
        if job is None or job.uid != uid:
            return
        kind = "Failed" if fails else "Complete"
        condition = {"type": kind, "status": "True", "message": "it has ended"}
        counts = {"failed": int(fails), "succeeded": int(not fails)}
        self.kube.report(ref, {**counts, "conditions": [condition]})

    # Members, garbage, namespaces.

    def _fill(self) -> None:
        """Members that are missing are made, of the newest revision."""
        for owner in self.kube.of_kind("StatefulSet"):
            revision = f"r{owner.spec['revision']}"
            status = {"updateRevision": revision, "observedGeneration": owner.generation}
            if dict(owner.status) != status:
                self.kube.report(owner.ref, status)
            for number in range(owner.spec["replicas"]):
                ref = Ref("Pod", owner.ref.namespace, f"{owner.ref.name}-{number}")
                if self.kube.get(ref) is None:
                    self.kube.apply(ref, _member(owner, ref, revision))

    def _lead(self) -> None:
        """Of the members that are ready one leads, for as long as it is."""
        ready = [
            each
            for each in self.kube.of_kind("Pod")
            if each.labels.get(names.ROLE) == names.METADATA and is_ready(each)
        ]
        if self.plane.leading not in [each.uid for each in ready]:
            self.plane.leading = ready[0].uid if ready else ""

    def _collect(self) -> None:
        self.kube.collect()
        for pod in self.kube.of_kind("Pod"):
            if pod.deleting and pod.labels.get(names.ROLE) == names.GATE:
                self.kube.end(pod.ref)
        self.world.after(self.gc, self._collect)

    def _clear(self, namespace: Ref) -> None:
        """All that lies in it is deleted; it goes when nothing is left."""
        inside = [each for each in self.kube.list() if each.ref.namespace == namespace.name]
        if not inside:
            self.kube.hold(namespace, "kubernetes", held=False)
            return
        for each in inside:
            if not each.deleting:
                self.kube.delete(each.ref)
        self.world.after(_TRY, partial(self._clear, namespace))


def _member(owner: Observed, ref: Ref, revision: str) -> dict[str, Any]:
    labels = {names.ROLE: names.METADATA, REVISION: revision}
    reference = {"kind": "StatefulSet", "name": owner.ref.name, "uid": owner.uid}
    meta = {
        "name": ref.name,
        "namespace": ref.namespace,
        "labels": labels,
        "ownerReferences": [reference],
    }
    containers = [{"name": "metadata", "image": "good"}]
    return {"kind": "Pod", "metadata": meta, "spec": {"containers": containers}}
