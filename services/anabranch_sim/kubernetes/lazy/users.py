"""People who have a Bolt log with lazy appends: they declare it, roll its sequencers, and make its
appends direct again.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from anabranch_operator.api import names
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_sim.kubernetes.belfast.kubelets import BelfastKubelets
from anabranch_sim.kubernetes.belfast.processes import BelfastProcesses
from anabranch_sim.kubernetes.cluster.controllers import BAD
from anabranch_sim.kubernetes.cluster.objects import Kube
from anabranch_sim.world.events import SECOND, World


class LazyUsers:
    def __init__(
        self,
        world: World,
        kube: Kube,
        processes: BelfastProcesses,
        kubelets: BelfastKubelets,
        namespace: str,
        engine: str,
    ) -> None:
        assert engine == "lazy", "others have shards as well"
        rng = self.rng = world.rng
        self.world = world
        self.kube = kube
        self.processes = processes
        self.kubelets = kubelets
        self.log = Ref(names.LOG, namespace, "clicks")
        self.set = Ref(names.SEQUENCERS, namespace, "clicks")
        self._template: dict[str, Any] = {
            "image": "good",
            "members": rng.choice((1, 3, 3, 3)),
            "storage": {
                "volumeClaim": {"size": "1Gi"},
                "onDelete": rng.choice(("Retain", "Retain", "Delete")),
            },
        }
        self.ways: list[tuple[int, Callable[[], None]]] = [
            (9, self._roll),
            (4, self._append),
            (4, self._declare),
            (2, self._make_direct),
            (2, self._hold_back),
            (2, self._pause),
            (5, self._kill),
        ]

    def begin(self) -> None:
        self._declare()

    def rest(self) -> None:
        """What would keep things from coming right is put right."""
        self._template |= {"rollout": {"policy": "Auto"}}
        if self._template["image"] == BAD:
            self._template["image"] = "good"
        self._template_changed()
        there = self.kube.get(self.set)
        if there is not None:  # its Log may be gone, or name it no more
            self._edit(self.set, image=self._template["image"], rollout={"policy": "Auto"})

    def _declare(self) -> None:
        """A log that is there already may get lazy appends, unless it had some before."""
        namespace = self.kube.get(Ref("Namespace", "", self.log.namespace))
        if self.kube.get(self.log) is not None or namespace is None or namespace.deleting:
            return
        deletion = self.rng.choice(("Retain", "Delete"))
        spec = {"adopt": True, "deletionPolicy": deletion, **self._lazy()}
        self.world.note("somebody applies", self.log, spec)
        meta = {"name": self.log.name, "namespace": self.log.namespace}
        self.kube.apply(self.log, {"kind": self.log.kind, "metadata": meta, "spec": spec})

    def _lazy(self) -> dict[str, Any]:
        return {"appends": "Lazy", "sequencers": {"template": dict(self._template)}}

    def _roll(self) -> None:
        self._template["image"] = self.rng.choice(("good", "better", "best", BAD))
        self._template_changed()

    def _hold_back(self) -> None:
        policy = self.rng.choice(("Auto", "Auto", "OnDelete", "Paused"))
        self._template["rollout"] = {"policy": policy}
        self._template_changed()

    def _make_direct(self) -> None:
        if self._is_lazy():
            self._edit(self.log, appends="Direct", sequencers=None)

    def _append(self) -> None:
        self.processes.busy_until = self.world.now + self.world.between(SECOND, 40 * SECOND)

    def _pause(self) -> None:
        found = self.kube.get(self.set)
        if found is not None:
            self.kube.annotate(found.ref, paused="true")
            again = partial(self._go_on, found)
            self.world.after(self.world.between(SECOND, 60 * SECOND), again)

    def _go_on(self, paused: Observed) -> None:
        found = self.kube.get(paused.ref)
        if found is not None and found.uid == paused.uid:
            self.kube.annotate(found.ref, paused="false")

    def _kill(self) -> None:
        """It is gone at once, as with a node that somebody says is dead."""
        pods = self.kubelets.pods()
        if pods:
            pod = self.rng.choice(pods)
            self.world.note("somebody kills", pod.ref)
            self.kube.end(pod.ref)

    def _template_changed(self) -> None:
        if self._is_lazy():
            self._edit(self.log, sequencers={"template": dict(self._template)})

    def _is_lazy(self) -> bool:
        found = self.kube.get(self.log)
        return found is not None and found.spec.get("appends") == "Lazy"

    def _edit(self, ref: Ref, **spec: Any) -> None:
        self.world.note("somebody edits", ref, spec)
        self.kube.edit(ref, **spec)
