"""People who have a Belfast log: they declare it, scale it, roll it, trim it, and take it away."""

from collections.abc import Callable
from functools import partial
from typing import Any

from anabranch_operator.api import names
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.log.services import is_ready
from anabranch_sim.kubernetes.belfast.kubelets import ROLES, BelfastKubelets
from anabranch_sim.kubernetes.belfast.processes import BelfastProcesses
from anabranch_sim.kubernetes.cluster.controllers import BAD
from anabranch_sim.kubernetes.cluster.objects import Kube
from anabranch_sim.world.events import SECOND, World

_SEEN_TO = 30 * SECOND


class BelfastUsers:
    def __init__(
        self,
        world: World,
        kube: Kube,
        processes: BelfastProcesses,
        kubelets: BelfastKubelets,
        namespace: str,
        engine: str,
    ) -> None:
        rng = self.rng = world.rng
        self.world = world
        self.kube = kube
        self.processes = processes
        self.kubelets = kubelets
        self.set = Ref(names.SEQUENCERS, namespace, "orders")
        self.groups = [Ref(names.SHARDS, namespace, each) for each in ("orders", "late")]
        self.log = Ref(names.LOG, namespace, "ticks")
        """Names the set and the first group, and puts them into the catalogue of logs."""
        self._copies = {each: rng.choice((1, 2, 2, 3)) for each in self.groups}
        self._members = rng.choice((1, 3, 3, 3))
        self._engine = engine
        self._is_erwin = engine == "erwin"
        self.ways: list[tuple[int, Callable[[], None]]] = [
            (12, self._scale),
            (9, self._roll),
            (5, self._trim),
            (4, self._append),
            (4, self._declare),
            (2, self._declare_log),
            # An Erwin log can't do without a shard that holds records: whoever takes one away by
            # force has taken the log away.
            *(() if self._is_erwin else ((3, self._delete), (2, self._wait_for))),
            (2, self._hold_back),
            (2, self._pause),
            (5, self._kill),
        ]

    def begin(self) -> None:
        self._declare_set()
        self._declare_group(self.groups[0])

    def rest(self) -> None:
        """What would keep things from coming right is put right, and everything is trimmed."""
        for each in self._there():
            spec: dict[str, Any] = {"rollout": {"policy": "Auto"}}
            if each.spec["image"] == BAD:
                spec["image"] = "good"
            self._edit(each.ref, **spec)
        self._see_to_it()

    def _declare(self) -> None:
        if self.kube.get(self.set) is None:
            self._declare_set()
        else:
            self._declare_group(self.rng.choice(self.groups))

    def _declare_set(self) -> None:
        self._apply(self.set, {"image": "good", "members": self._members})

    def _declare_group(self, ref: Ref) -> None:
        shards = self.rng.choice((1, 2, 3))
        spec: dict[str, Any] = {"sequencers": self.set.name, "shards": shards}
        spec["copies"] = self._copies[ref]
        if self._is_erwin and self._copies[ref] == 1:
            spec["blackBox"] = {"url": f"kafka://kafka:9092/{ref.name}"}
        self._apply(ref, {"image": "good", **spec})

    def _declare_log(self) -> None:
        parts: dict[str, Any] = {
            "sequencers": {"name": self.set.name},
            "shards": {"names": [self.groups[0].name]},
        }
        deletion = self.rng.choice(("Retain", "Delete"))
        spec = {"engine": self._engine, "adopt": True, "deletionPolicy": deletion, **parts}
        self._make(self.log, spec)

    def _scale(self) -> None:
        group = self._any([each for each in self._there() if each.ref.kind == names.SHARDS])
        if group is not None:
            fewest = 1 if self._is_erwin else 0
            self._edit(group.ref, shards=self.rng.choice((fewest, 1, 1, 2, 2, 3, 4)))

    def _roll(self) -> None:
        found = self._any(self._there())
        if found is not None:
            self._edit(found.ref, image=self.rng.choice(("good", "better", "best", BAD)))

    def _trim(self) -> None:
        log = self.processes.log
        if log.leader:
            self.world.note("somebody trims the log")
            log.trim()

    def _append(self) -> None:
        self.processes.busy_until = self.world.now + self.world.between(SECOND, 40 * SECOND)

    def _see_to_it(self) -> None:
        """Groups that are left have their sequencers again, and what can be trimmed is."""
        if any(each.ref.kind == names.SHARDS for each in self._there()):
            self._declare_set()
        self._trim()
        self.world.after(_SEEN_TO, self._see_to_it)

    def _delete(self) -> None:
        """As the admission policy has it: seats first, or what they hold is given up."""
        found = self._any(self._there())
        if found is None or found.deleting:
            return
        if found.status.get("seated", 0):
            if self.rng.random() < 0.6:
                return
            self.kube.annotate(found.ref, forget="true")
        self.world.note("somebody deletes", found.ref)
        self.kube.delete(found.ref)

    def _wait_for(self) -> None:
        group = self._any([each for each in self._there() if each.ref.kind == names.SHARDS])
        if group is not None:
            wait_for = self.rng.choice(("Trimmed", "Nothing"))
            self._edit(group.ref, leaving={"waitFor": wait_for})

    def _hold_back(self) -> None:
        found = self._any(self._there())
        if found is not None:
            policy = self.rng.choice(("Auto", "Auto", "OnDelete", "Paused"))
            self._edit(found.ref, rollout={"policy": policy})

    def _pause(self) -> None:
        found = self._any(self._there())
        if found is not None:
            self.kube.annotate(found.ref, paused="true")
            again = partial(self._go_on, found.ref, found.uid)
            self.world.after(self.world.between(SECOND, 60 * SECOND), again)

    def _go_on(self, ref: Ref, uid: str) -> None:
        found = self.kube.get(ref)
        if found is not None and found.uid == uid:
            self.kube.annotate(ref, paused="false")

    def _kill(self) -> None:
        """It is gone at once, as with a node that somebody says is dead."""
        pod = self._any(self.kubelets.pods())
        if pod is not None:
            self.world.note("somebody kills", pod.ref)
            self.kube.end(pod.ref)

    def _there(self) -> list[Observed]:
        found = (self.kube.get(each) for each in (self.set, *self.groups))
        return [each for each in found if each is not None]

    def _any(self, among: list[Observed]) -> Observed | None:
        return self.rng.choice(among) if among else None

    def _edit(self, ref: Ref, **spec: Any) -> None:
        self.world.note("somebody edits", ref, spec)
        self.kube.edit(ref, **spec)

    def _apply(self, ref: Ref, spec: dict[str, Any]) -> None:
        on_delete = self.rng.choice(("Retain", "Retain", "Delete"))
        storage = {"volumeClaim": {"size": "1Gi"}, "onDelete": on_delete}
        engine = {"engine": self._engine} if self._is_erwin else {}
        self._make(ref, {**spec, **engine, "storage": storage})

    def _make(self, ref: Ref, spec: dict[str, Any]) -> None:
        """Only what isn't there: most of it can't be changed."""
        namespace = self.kube.get(Ref("Namespace", "", ref.namespace))
        if self.kube.get(ref) is not None or namespace is None or namespace.deleting:
            return
        self.world.note("somebody applies", ref, spec)
        meta = {"name": ref.name, "namespace": ref.namespace}
        manifest = {"kind": ref.kind, "metadata": meta, "spec": spec}
        self.kube.apply(ref, manifest)


def has_budget(kube: Kube, pod: Observed) -> bool:
    """Nobody answers: the API server lets it go by what the disruption budget says."""
    label, stem = names.SHARDS_LABEL, "shards"
    if label not in pod.labels:
        label, stem = names.SEQUENCERS_LABEL, "sequencers"
    name = pod.labels[label]
    mates = [
        each
        for each in kube.of_kind("Pod")
        if each.labels.get(names.ROLE) in ROLES and each.labels.get(label) == name
    ]
    budget = kube.get(Ref("PodDisruptionBudget", pod.ref.namespace, f"{name}-{stem}"))
    least = 0 if budget is None else budget.spec["minAvailable"]
    return sum(is_ready(each) and not each.deleting for each in mates) > least
