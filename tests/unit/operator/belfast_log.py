"""A Belfast log whose pods are started, broken and ended by hand, and an operator that tends it:
every pod that it ends is held against what the log counts on at that moment.
"""

from typing import Any, TypeVar

from anabranch.core.types import MS
from anabranch_operator.api import names
from anabranch_operator.api.conditions import Condition
from anabranch_operator.plan.engine.actions import Act, Action, Delete
from anabranch_operator.plan.engine.events import Evicting, Measured, Vitals
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.planners import PLANNERS
from anabranch_operator.plan.engine.status import stamp
from anabranch_operator.plan.engine.world import Sequencers, Shards, Surroundings
from anabranch_operator.plan.groups.report import Standing
from anabranch_operator.plan.log.services import is_ready
from anabranch_operator.plan.metadata.evictions import deadline
from anabranch_sim.kubernetes.belfast.ledger import BelfastLog
from anabranch_sim.kubernetes.erwin.log import ErwinLog
from anabranch_sim.kubernetes.lazy.log import LazyFront
from anabranch_sim.kubernetes.log_model import Replica
from anabranch_sim.kubernetes.sandbox import Sandbox

NAMESPACE = "demo"
LOG = Ref(names.SEQUENCERS, NAMESPACE, "orders")
GROUP = Ref(names.SHARDS, NAMESPACE, "orders")
VOLUME = {"volumeClaim": {"size": "1Gi"}}
BAD = "bad"
LOOK_S = 10

A = TypeVar("A", bound=Act)


class BelfastHarness:
    def __init__(
        self,
        *,
        empty: bool = False,
        erwin: bool = False,
        front: bool = False,
        shards: dict[str, Any] | None = None,
        **sequencers: Any,
    ) -> None:
        """`empty`: without a SequencerSet and a ShardGroup. `erwin`: of that engine. `front`: the
        lazy front of a Bolt log, which is declared by its Log.
        """
        around = Surroundings(
            namespace=NAMESPACE, release="demo", look_ms=LOOK_S * 1_000, resync_ms=3_600_000
        )
        kinds = (names.LOG, names.ORPHAN, names.SEQUENCERS, names.SHARDS)
        planners = {kind: PLANNERS[kind] for kind in kinds}
        model = ErwinLog() if erwin else LazyFront() if front else None
        self.office = Sandbox(planners, around, log=model)
        self._engine = {} if model is None else {"engine": model.engine}
        self.office.crash = self._judge
        self.kube = self.office.kube
        self.frozen: dict[str, None] = {}
        """Pods by UID whose kubelet does nothing."""
        self._disks: dict[str, int] = {}
        """By the UID of what they are, a volume or the pod itself."""
        if isinstance(model, LazyFront):
            model.service = self.office.service
        elif not empty:
            self.declare_log(**sequencers)
            self.declare(**(shards or {}))

    @property
    def belfast(self) -> BelfastLog:
        assert isinstance(self.office.log, BelfastLog)
        return self.office.log

    @property
    def erwin(self) -> ErwinLog:
        assert isinstance(self.office.log, ErwinLog)
        return self.office.log

    @property
    def front(self) -> LazyFront:
        assert isinstance(self.office.log, LazyFront)
        return self.office.log

    @property
    def log(self) -> Sequencers:
        return self.office.operator.world.sequencers[LOG]

    @property
    def group(self) -> Shards:
        return self.office.operator.world.shards[GROUP]

    def condition(self, name: str, of: Ref = GROUP) -> tuple[str, str, str]:
        world = self.office.operator.world
        every: list[Condition] = (
            world.shards[of] if of.kind == names.SHARDS else world.sequencers[of]
        ).status.conditions
        found = next(each for each in every if each.type == name)
        return found.status, found.reason, found.message

    def pods(self, role: str = "") -> list[Observed]:
        found = [
            each
            for each in self.kube.of_kind("Pod")
            if not role or each.labels.get(names.ROLE) == role
        ]
        return sorted(found, key=lambda pod: pod.ref.name)

    def names(self, role: str = names.SHARD) -> list[str]:
        return [pod.ref.name for pod in self.pods(role)]

    def volumes(self) -> list[str]:
        return sorted(each.ref.name for each in self.kube.of_kind("PersistentVolumeClaim"))

    def pod(self, name: str) -> Observed:
        found = self.kube.get(Ref("Pod", NAMESPACE, name))
        assert found is not None, self.names("")
        return found

    def standing(self, shard: str) -> Standing | None:
        return self.office.log.standing(shard)

    def done(self, *kinds: type[A]) -> list[A]:
        """What was done since the last question, of these kinds."""
        found = [each for each in self.office.done if isinstance(each, kinds)]
        self.office.done.clear()
        return found

    def ended(self) -> list[str]:
        """Pods that were deleted since the last question, in their order."""
        return [each.ref.name for each in self.done(Delete) if each.ref.kind == "Pod"]

    # What kubelets, processes and people do.

    def step(self) -> None:
        """Every kubelet and process goes one step on, and the log a little while."""
        self.tend()
        self.run()
        self.office.wait(LOOK_S + 1)

    def tend(self) -> None:
        """Every kubelet and process alone."""
        for pod in self.pods():
            if pod.uid not in self.frozen:
                self._tend(pod)
        self.office.settle()

    def run(self) -> None:
        """The log alone."""
        sequencers = {setting(each, "ADDRESS"): None for each in self._sequencers() if _runs(each)}
        replicas = {
            setting(each, "ADDRESS"): Replica(
                each.uid,
                setting(each, "SHARD"),
                tuple(setting(each, "REPLICAS").split(",")),
                self._disk(each),
            )
            for each in self.pods(names.SHARD)
            if _runs(each)
        }
        self.office.log.members = tuple(setting(each, "ADDRESS") for each in self._sequencers())
        self.office.log.step(sequencers, replicas)

    def settle(self, rounds: int = 80) -> None:
        """Until pods neither come nor go, and nothing is told but numbers that move with time."""
        quiet = 0
        for _ in range(rounds):
            before = self._written()
            self.step()
            quiet = quiet + 1 if before == self._written() else 0
            if quiet == 10:
                return
        raise AssertionError(f"it never comes to rest: {self.office.done[-12:]}")

    def declare_log(self, **sequencers: Any) -> None:
        """The set of sequencers."""
        self._apply(LOG, {"image": "good", "storage": VOLUME} | self._engine | sequencers)
        self.office.settle()

    def declare(self, **shards: Any) -> None:
        """The group of shards."""
        spec = {"image": "good", "sequencers": "orders", "storage": VOLUME, "shards": 2}
        self._apply(GROUP, spec | self._engine | shards)
        self.office.settle()

    def edit(self, ref: Ref, **spec: Any) -> None:
        self.kube.edit(ref, **spec)
        self.office.settle()

    def vanish(self, name: str) -> None:
        """With its node, and at once."""
        self.kube.end(self.pod(name).ref)
        self.office.settle()

    def evict(self, name: str) -> bool:
        """Somebody asks once; is it let go?"""
        uid = self.pod(name).uid
        self.office.evicted.clear()
        self.office.tell(Evicting(uid))
        return uid in self.office.evicted

    def crash(self, name: str) -> None:
        waiting = {"name": "shard", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
        self._report(self.pod(name), ready=False, containerStatuses=[waiting])
        self.office.settle()

    def fail(self, shard: str) -> None:
        """A shard as a whole; its pods stay as they are."""
        for pod in self.pods(names.SHARD):
            if pod.labels[names.SHARD_LABEL] == shard:
                self.frozen[pod.uid] = None
                self.crash(pod.ref.name)
        self.step()
        self.step()
        assert self.standing(shard) is Standing.FAILED

    def measure(self, **vitals: Vitals) -> None:
        """By the pods' names."""
        told = {self.pod(name.replace("_", "-")).uid: each for name, each in vitals.items()}
        self.office.tell(Measured(told))

    def _sequencers(self) -> list[Observed]:
        return self.pods(names.SEQUENCER)

    def _written(self) -> list[tuple[object, ...]]:
        return [
            (each.ref, each.uid, each.generation, each.deleting, _steady(each))
            for each in self.kube.list()
        ]

    def _tend(self, pod: Observed) -> None:
        if pod.deleting:
            self.kube.end(pod.ref)
        elif not pod.spec.get("nodeName"):
            self.kube.edit(pod.ref, nodeName="node-0")
        elif pod.spec["containers"][0]["image"] == BAD:
            if not pod.status.get("containerStatuses"):
                self.crash(pod.ref.name)
        elif not _runs(pod):
            self._report(pod, ready=self._begins_ready(pod))
        elif is_ready(pod) != self._serves(pod):
            self._report(pod, ready=not is_ready(pod))

    def _begins_ready(self, pod: Observed) -> bool:
        """Sequencers of Belfast follow at once; all others wait to be counted on."""
        return not self._engine and pod.labels[names.ROLE] == names.SEQUENCER

    def _serves(self, pod: Observed) -> bool:
        """As it says itself; while no sequencer leads, a replica goes by what it heard last."""
        log, address = self.office.log, setting(pod, "ADDRESS")
        if pod.labels[names.ROLE] == names.SEQUENCER:
            return log.engine == "belfast" or log.orders(address)
        if log.engine == "belfast" and not log.leader:
            return is_ready(pod)
        return log.serves(address)

    def _disk(self, pod: Observed) -> int:
        """Whoever finds a volume of before has all that was on it."""
        claim = Ref("PersistentVolumeClaim", NAMESPACE, f"data-{pod.ref.name}")
        volume = self.kube.get(claim)
        return self._disks.setdefault((volume or pod).uid, len(self._disks))

    def _report(self, pod: Observed, *, ready: bool, **more: Any) -> None:
        condition = {
            "type": "Ready",
            "status": "True" if ready else "False",
            "lastTransitionTime": stamp(self.office.now // MS),
        }
        self.kube.report(pod.ref, {"phase": "Running", "conditions": [condition], **more})

    def _apply(self, ref: Ref, spec: dict[str, Any]) -> None:
        meta = {"name": ref.name, "namespace": ref.namespace}
        self.kube.apply(ref, {"kind": ref.kind, "metadata": meta, "spec": spec})

    # What the operator mustn't do.

    def _judge(self, action: Action) -> bool:
        """Never ends the operator: it only looks at what is about to be done."""
        if isinstance(action, Delete) and action.ref.kind == "Pod":
            pod = self.kube.get(action.ref)
            if pod is not None and pod.uid == action.uid and is_ready(pod):
                self._judge_end(pod)
        if isinstance(action, Delete) and action.ref.kind == "PersistentVolumeClaim":
            self._judge_loss(action.ref.name)
        return False

    def _judge_end(self, pod: Observed) -> None:
        world = self.office.operator.world
        eviction = world.evicting.get(pod.uid)
        assert eviction is None or deadline(world, eviction) > self.office.now
        if pod.labels[names.ROLE] == names.SEQUENCER:
            others = [each for each in self._sequencers() if each.uid != pod.uid]
            assert all(map(is_ready, others)), "two sequencers at once"
            return
        shard = pod.labels[names.SHARD_LABEL]
        here = [each for each in self.pods(names.SHARD) if each.labels[names.SHARD_LABEL] == shard]
        missing = [each for each in here if not is_ready(each) or each.deleting]
        if self.office.log.counts_on(shard):
            assert not missing, "two copies of a shard at once"
            assert len(here) == self.group.spec.copies, "two copies of a shard at once"

    def _judge_loss(self, name: str) -> None:
        shard = name.removeprefix("data-").rpartition("-")[0]
        assert not self.office.log.counts_on(shard), "a window counts on it"
        gone = {Standing.LEFT, Standing.FAILED}
        assert self.standing(shard) in gone, "its records are lost"


def _runs(pod: Observed) -> bool:
    return pod.status.get("phase") == "Running" and not pod.status.get("containerStatuses")


def _steady(object: Observed) -> object:
    """Without what moves with every window."""
    moving = ("window", "confirmed", "seats", "settled", "speculation", "tail", "backlog")
    return {key: each for key, each in object.status.items() if key not in moving}


def environment(pod: Observed) -> dict[str, str]:
    """Of its process, with what the Secret of the chart adds."""
    told = {each["name"]: str(each["value"]) for each in pod.spec["containers"][0]["env"]}
    return {**told, "ANABRANCH_TOKEN": "a", "ANABRANCH_PEER_TOKEN": "b"}


def setting(pod: Observed, name: str) -> str:
    """What its process is told."""
    told = {each["name"]: each.get("value") for each in pod.spec["containers"][0]["env"]}
    return str(told[f"ANABRANCH_{name}"])
