"""People, who declare, change, annotate, evict and delete at random, and ask the log service
themselves.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from anabranch.core.bolt.protocol.commands import Description, ForkLog, Promote, Squash
from anabranch.core.types import Kind, Nanoseconds
from anabranch_operator.api import names
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.log.services import is_ready
from anabranch_sim.kubernetes.belfast.kubelets import ROLES
from anabranch_sim.kubernetes.belfast.users import BelfastUsers, has_budget
from anabranch_sim.kubernetes.cluster.controllers import BAD
from anabranch_sim.kubernetes.cluster.objects import Kube
from anabranch_sim.kubernetes.cluster.plane import Plane
from anabranch_sim.kubernetes.invariants import OTHERS, Invariants
from anabranch_sim.kubernetes.lazy.users import LazyUsers
from anabranch_sim.kubernetes.operators import SimOperator
from anabranch_sim.world.events import SECOND, World

HOME, TEAM = "demo", "team"
POOL = Ref(names.POOL, HOME, "demo")
MEMBERS = Ref("StatefulSet", HOME, "demo-metadata")
_ASKS_AGAIN: Nanoseconds = 5 * SECOND
_ASKS_MAX = 40
_FILLED = 0.6
"""So many forks that are declared for a gate have records before anybody wishes that it judges."""
_FILLS_MAX = 30
_OLD = 0.15
"""So many resources have the finalizer that earlier versions of the operator put on them."""
_JOB: dict[str, Any] = {
    "spec": {"template": {"spec": {"containers": [{"name": "gate", "image": "judge"}]}}}
}


class Users:
    def __init__(
        self,
        world: World,
        kube: Kube,
        plane: Plane,
        invariants: Invariants,
        operators: list[SimOperator],
        belfast_users: BelfastUsers | LazyUsers | None = None,
        *,
        gated: bool = False,
    ) -> None:
        self.world = world
        self.rng = world.rng
        self.kube = kube
        self.plane = plane
        self.invariants = invariants
        self.operators = operators
        self.belfast_users = belfast_users
        self.acts = 0
        self._ways: list[tuple[int, Callable[[], None]]] = [
            (3, self._declare_log),
            (9, self._declare_fork),
            (5, self._wish),
            (4, self._approve),
            (5, self._delete),
            (2, self._protect),
            (2, self._annotate),
            (2, self._hold),
            (2, self._limit),
            (3, self._scale),
            (2, self._roll),
            (3, self._evict_one),
            (2, self._cordon),
            (2, self._delete_pod),
            (1, self._delete_namespace),
            (6, self._append),
            (2, self._squash_directly),
            (1, self._promote_directly),
            (2, self._fork_directly),
            (1, self._roll_members),
            *(() if belfast_users is None else belfast_users.ways),
            *(((12, self._declare_gated_fork),) if gated else ()),
        ]

    def begin(self) -> None:
        """What somebody has installed."""
        for name in (HOME, TEAM):
            self._open(name)
        for number in range(3):
            self._apply(Ref("Node", "", f"node-{number}"), {})
        spec = {"replicas": 3, "updateStrategy": {"type": "OnDelete"}, "revision": 1}
        self._apply(MEMBERS, spec)
        self._apply(POOL, {"image": "good", "min": 1, "max": 4, "spare": 1, "replicas": 2})
        self._declare_log()
        if self.belfast_users is not None:
            self.belfast_users.begin()

    def act(self) -> None:
        self.acts += 1
        weights = [weight for weight, _ in self._ways]
        [(_, way)] = self.rng.choices(self._ways, weights)
        way()

    def rest(self) -> None:
        """What would keep things from coming right is put right."""
        for node in self.kube.of_kind("Node"):
            self.kube.edit(node.ref, unschedulable=False)
        pool = self.kube.get(POOL)
        if pool is not None and pool.spec["image"] == BAD:
            self._edit(POOL, image="good")
        if self.belfast_users is not None:
            self.belfast_users.rest()

    def _open(self, name: str) -> None:
        ref = Ref("Namespace", "", name)
        if self.kube.get(ref) is None:
            self._apply(ref, {})
            self.kube.hold(ref, "kubernetes", held=True)

    def _declare_log(self) -> None:
        rng = self.rng
        ref = Ref(names.LOG, rng.choice((HOME, HOME, TEAM)), f"l{rng.randrange(3)}")
        spec: dict[str, Any] = {"deletionPolicy": rng.choice(("Retain", "Delete"))}
        if rng.random() < 0.5:
            spec["adopt"] = True
        if rng.random() < 0.2:
            spec["retention"] = {"records": 3}
        self._declare(ref, spec)

    def _declare_fork(self) -> None:
        rng = self.rng
        namespace = rng.choice((HOME, HOME, TEAM))
        ref = Ref(names.FORK, namespace, f"f{rng.randrange(8)}")
        parents = [each.ref for each in self._resources() if each.ref.namespace == namespace]
        parent = rng.choice(parents) if parents and rng.random() < 0.95 else None
        kind, name = (names.LOG, "nobody") if parent is None else (parent.kind, parent.name)
        spec: dict[str, Any] = {
            "parent": {"kind": kind, "name": name},
            "deletionPolicy": rng.choice(("Squash", "Squash", "Retain")),
            "adopt": rng.random() < 0.3,
        }
        if rng.random() < 0.5:
            spec["promotable"] = True
            spec["promotion"] = self._promotion()
            if rng.random() < 0.3:
                spec["state"] = "Promoted"
        elif rng.random() < 0.6:
            spec["type"] = "Severed"
            spec["onParentDelete"] = rng.choice(("Orphan", "Cascade"))
        extras: tuple[tuple[float, str, Any], ...] = (
            (0.15, "ttl", f"{rng.randrange(20, 120)}s"),
            (0.2, "ttlAfterFinished", f"{rng.randrange(0, 40)}s"),
            (0.1, "protected", True),
            (0.15, "isolation", "Exclusive"),
            (0.1, "quota", {"appendRecordsPerSecond": 100}),
        )
        spec |= {key: value for chance, key, value in extras if rng.random() < chance}
        self._declare(ref, spec)

    def _declare_gated_fork(self) -> None:
        """A log of its own, and a fork of it that is promoted as soon as a gate has judged it."""
        rng, number = self.rng, self.rng.randrange(6)
        filled = rng.random() < _FILLED
        parent = Ref(names.LOG, HOME, f"parent-{number}")
        self._declare(parent, {"deletionPolicy": "Delete"})
        spec: dict[str, Any] = {
            "parent": {"kind": names.LOG, "name": parent.name},
            "promotable": True,
            "promotion": self._gated_promotion(rng.choice(("Gate", "Approval"))),
            "approved": rng.random() < 0.5,
            **({} if filled else {"state": "Promoted"}),
        }
        fork = Ref(names.FORK, HOME, f"gated-{number}")
        self._declare(fork, spec)
        made = self.kube.get(fork)
        if filled and made is not None:
            self._fill(fork, made.uid, _FILLS_MAX)

    def _fill(self, ref: Ref, uid: str, tries: int) -> None:
        """Append to a fork once it is there, then wish for its promotion."""
        fork = self.kube.get(ref)
        if fork is None or fork.uid != uid or fork.deleting or not tries:
            return
        log = self.invariants.log_of(uid)
        if log is not None and any(each.id == log for each in self.plane.service.owned()):
            self.plane.append(log, self.rng.randrange(1, 5))
            self._edit(ref, state="Promoted")
        else:
            self.world.after(2 * SECOND, partial(self._fill, ref, uid, tries - 1))

    def _promotion(self) -> dict[str, Any]:
        policy = self.rng.choice(("Manual", "Gate", "Approval", "Approval"))
        if policy == "Gate" or (policy == "Approval" and self.rng.random() < 0.5):
            return self._gated_promotion(policy)
        return {"policy": policy}

    def _gated_promotion(self, policy: str) -> dict[str, Any]:
        on_failure = self.rng.choice(("Squash", "Hold"))
        return {"policy": policy, "gate": {"jobTemplate": _JOB, "onFailure": on_failure}}

    def _wish(self) -> None:
        fork = self._any([each for each in self._forks() if each.spec.get("promotable")])
        if fork is not None:
            self._edit(fork.ref, state="Promoted")

    def _approve(self) -> None:
        waiting = [
            each
            for each in self._forks()
            if each.spec.get("promotion", {}).get("policy") == "Approval"
        ]
        fork = self._any(waiting)
        if fork is not None:
            self._edit(fork.ref, approved=True)

    def _protect(self) -> None:
        fork = self._any(self._forks())
        if fork is not None:
            self._edit(fork.ref, protected=not fork.spec.get("protected", False))

    def _limit(self) -> None:
        found = self._any(self._resources())
        if found is not None:
            self._edit(found.ref, quota={"appendRecordsPerSecond": self.rng.randrange(50, 53)})

    def _delete(self) -> None:
        found = self._any(self._resources())
        if found is not None:
            self.kube.delete(found.ref)

    def _annotate(self) -> None:
        found = self._any([*self._resources(), *self.kube.of_kind(names.POOL)])
        if found is None:
            return
        key = self.rng.choice(("paused", "forget", "cascade"))
        self.kube.annotate(found.ref, **{key: "true"})
        if key == "paused":
            again = partial(self._unpause, found.ref, found.uid)
            self.world.after(self.world.between(SECOND, 60 * SECOND), again)

    def _unpause(self, ref: Ref, uid: str) -> None:
        found = self.kube.get(ref)
        if found is not None and found.uid == uid:
            self.kube.annotate(ref, paused="false")

    def _hold(self) -> None:
        """Somebody else's finalizer, for a while."""
        found = self._any([each for each in self._resources() if not each.deleting])
        if found is None or OTHERS in found.finalizers:
            return
        self.invariants.others(found, held=True)
        self.kube.hold(found.ref, OTHERS, held=True)
        again = partial(self._release, found.ref, found.uid)
        self.world.after(self.world.between(SECOND, 120 * SECOND), again)

    def _release(self, ref: Ref, uid: str) -> None:
        found = self.kube.get(ref)
        if found is not None and found.uid == uid:
            self.invariants.others(found, held=False)
            self.kube.hold(ref, OTHERS, held=False)

    def _scale(self) -> None:
        if self.kube.get(POOL) is None:
            return
        rng = self.rng
        if rng.random() < 0.7:
            self._edit(POOL, replicas=rng.choice((None, 1, 2, 3, 4)))
        else:
            self._edit(POOL, min=rng.choice((1, 2)), max=rng.choice((2, 3, 4)))

    def _roll(self) -> None:
        if self.kube.get(POOL) is not None:
            self._edit(POOL, image=self.rng.choice(("good", "better", "best", BAD)))

    def _roll_members(self) -> None:
        found = self.kube.get(MEMBERS)
        if found is not None:
            self._edit(MEMBERS, revision=found.spec["revision"] + 1)

    def _cordon(self) -> None:
        """A node is drained, as `kubectl drain` does it."""
        node = self.rng.choice(self.kube.of_kind("Node"))
        on = not node.spec.get("unschedulable", False)
        self.kube.edit(node.ref, unschedulable=on)
        if on and self.rng.random() < 0.7:
            for pod in self._pods():
                if pod.spec.get("nodeName") == node.ref.name:
                    self._evict(pod.ref, pod.uid, 0)

    def _evict_one(self) -> None:
        pod = self._any(self._pods())
        if pod is not None:
            self._evict(pod.ref, pod.uid, 0)

    def _evict(self, ref: Ref, uid: str, times: int) -> None:
        pod = self.kube.get(ref)
        if pod is None or pod.uid != uid or pod.deleting or times > _ASKS_MAX:
            return
        answer = self.rng.choice(self.operators).evict(ref, uid)
        if answer or (answer is None and self._has_budget(pod)):
            self.kube.delete(ref)
        else:
            self.world.after(_ASKS_AGAIN, partial(self._evict, ref, uid, times + 1))

    def _has_budget(self, pod: Observed) -> bool:
        """Nobody answers: the API server lets it go by what the disruption budget says."""
        if not is_ready(pod):
            return True
        if pod.labels[names.ROLE] in ROLES:
            return has_budget(self.kube, pod)
        label = pod.labels.get(names.POOL_LABEL)
        mates = [each for each in self._pods() if each.labels.get(names.POOL_LABEL) == label]
        budget = self.kube.get(Ref("PodDisruptionBudget", HOME, "demo-brokers"))
        least = 2 if label is None or budget is None else budget.spec["minAvailable"]
        return sum(is_ready(each) and not each.deleting for each in mates) > least

    def _delete_pod(self) -> None:
        pod = self._any(self._pods())
        if pod is not None:
            self.kube.delete(pod.ref)

    def _delete_namespace(self) -> None:
        ref = Ref("Namespace", "", TEAM)
        found = self.kube.get(ref)
        if found is None:
            self._open(TEAM)
        else:
            self.kube.delete(ref)

    def _append(self) -> None:
        found = self._any_log()
        if found is not None:
            self.plane.append(found.id, self.rng.randrange(1, 5))

    def _squash_directly(self) -> None:
        found = self._any_log()
        if found is not None and found.parent is not None:
            self.plane.order(Squash(found.id, "somebody"))

    def _promote_directly(self) -> None:
        found = self._any_log()
        if found is not None and found.promotable:
            self.plane.order(Promote(found.id))

    def _fork_directly(self) -> None:
        found = self._any_log()
        if found is not None:
            name = f"f{self.rng.randrange(8)}"
            kind = self.rng.choice((Kind.CONTINUOUS, Kind.SEVERED))
            self.plane.order(ForkLog(found.id, kind, name))

    def _any_log(self) -> Description | None:
        """One that Bolt serves: whatever is asked of others directly is refused."""
        logs = [each for each in self.plane.service.owned() if each.settings is None]
        return self.rng.choice(logs) if logs else None

    def _any(self, among: list[Observed]) -> Observed | None:
        return self.rng.choice(among) if among else None

    def _forks(self) -> list[Observed]:
        return self.kube.of_kind(names.FORK)

    def _resources(self) -> list[Observed]:
        return [*self.kube.of_kind(names.LOG), *self._forks()]

    def _pods(self) -> list[Observed]:
        roles = (names.BROKER, names.METADATA, *ROLES)
        return [each for each in self.kube.of_kind("Pod") if each.labels.get(names.ROLE) in roles]

    def _declare(self, ref: Ref, spec: dict[str, Any]) -> None:
        """Only what isn't there: most of a fork can't be changed."""
        namespace = self.kube.get(Ref("Namespace", "", ref.namespace))
        if self.kube.get(ref) is None and namespace is not None and not namespace.deleting:
            self._apply(ref, spec)
            if self.rng.random() < _OLD:
                self.invariants.facts[self.kube.documents[ref]["metadata"]["uid"]].held = True
                self.kube.hold(ref, names.FINALIZER, held=True)

    def _edit(self, ref: Ref, **spec: Any) -> None:
        self.world.note("somebody edits", ref, spec)
        self.kube.edit(ref, **spec)

    def _apply(self, ref: Ref, spec: dict[str, Any]) -> None:
        self.world.note("somebody applies", ref, spec)
        meta = {"name": ref.name, "namespace": ref.namespace}
        self.kube.apply(ref, {"kind": ref.kind, "metadata": meta, "spec": spec})
