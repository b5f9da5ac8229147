"""After the healing: do statuses tell the truth, is everything gone that was deleted, is all else
as it was declared?
"""

from collections.abc import Iterator
from typing import Any

from msgspec import convert

from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.queries import BrokerSeat
from anabranch.core.bolt.state import placement
from anabranch.core.errors import Promoted, Squashed
from anabranch.core.errors.refused import Refused
from anabranch.core.types import Kind
from anabranch_operator.api import names
from anabranch_operator.api.conditions import Condition
from anabranch_operator.api.fork import ForkPhase, ForkSpec, ForkState, ForkStatus, Policy
from anabranch_operator.api.log import LogPhase, LogStatus
from anabranch_operator.api.pool import PoolSpec, PoolStatus
from anabranch_operator.plan.engine.dependencies import broker_name
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.log.forks import EXPIRED
from anabranch_operator.plan.log.services import is_ready
from anabranch_operator.plan.metadata.members import REVISION
from anabranch_operator.plan.pool.broker_pod import template
from anabranch_sim.kubernetes.cluster.controllers import BAD
from anabranch_sim.kubernetes.cluster.objects import Kube
from anabranch_sim.kubernetes.cluster.plane import Plane
from anabranch_sim.kubernetes.invariants import Invariants

_FRONTLESS = ("Refused", "NameTaken")
"""A log whose front has ended can't have another one."""
_PARENTLESS = ("ParentMissing", "ParentNotReady")
_LIVE = (ForkPhase.READY, ForkPhase.GATING, ForkPhase.AWAITING_APPROVAL, ForkPhase.PROMOTING)


class FinalChecks:
    def __init__(self, kube: Kube, plane: Plane, invariants: Invariants) -> None:
        self.kube = kube
        self.service = service = plane.service
        self.invariants = invariants
        self._owned = {names.plain(each.owner): each for each in service.owned()}

    def wrong(self) -> list[str]:
        return [
            *self._of_logs(),
            *self._of_forks(),
            *self._of_ownership(),
            *self._of_pools(),
            *self._of_members(),
            *self._of_garbage(),
        ]

    def _of_logs(self) -> Iterator[str]:
        for log in self.kube.of_kind(names.LOG):
            status = convert(log.status, LogStatus)
            if self._is_excused(log):
                continue
            yield from self._of_conditions(log, status.conditions)
            if log.deleting:
                yield from self._of_deletion(log)
                continue
            found = self._owned.get(_owner(log))
            if log.spec.get("engine") in ("belfast", "erwin"):
                yield from self._of_group_log(log, status, found)
                continue
            if found is None:
                if status.phase not in (LogPhase.PENDING, LogPhase.LOST):
                    yield f"{log.ref} is {status.phase}, and has no log"
                continue
            shown = (status.log_id, status.log_name, status.tail, status.settled, status.forks)
            true = (found.id, found.name, found.tail, found.settled, found.forks)
            if status.phase is not LogPhase.READY or shown != true:
                yield f"{log.ref} shows {status.phase} {shown}, and is {true}"
            if not self._said(status.conditions, *_FRONTLESS):
                yield from self._of_face(log, status.conditions, found)
            yield from self._of_front(log, found)

    def _of_front(self, log: Observed, found: Description) -> Iterator[str]:
        """Its sequencers are there as long as it has them, and no longer."""
        if (found.front is not None) != (log.spec.get("appends") == "Lazy"):
            had = self.service.state.replica.forest.logs[found.id].front
            if had is None or not had.ended:
                yield f"{log.ref} is {log.spec.get('appends')}, and has the front {found.front}"
        set_ = self.kube.get(Ref(names.SEQUENCERS, log.ref.namespace, log.ref.name))
        if found.front is None and set_ is not None and names.LOG_ID in set_.labels:
            yield f"{log.ref} has no front, and {set_.ref} is there"

    def _of_group_log(
        self, log: Observed, status: LogStatus, found: Description | None
    ) -> Iterator[str]:
        """It is in the catalogue with its sequencers' addresses, and is ready if its parts are."""
        set_ = self.kube.get(Ref(names.SEQUENCERS, log.ref.namespace, "orders"))
        group = self.kube.get(Ref(names.SHARDS, log.ref.namespace, "orders"))
        parts = [each for each in (set_, group) if each is not None]
        ready = [
            self._is_ready(convert(each.status.get("conditions") or (), list[Condition]))
            for each in parts
        ]
        usable = found is not None and len(parts) == 2 and all(ready)
        shards = 0 if group is None else group.spec["shards"]
        if self._is_ready(status.conditions) != (usable and shards > 0):
            yield f"{log.ref} says {status.conditions}, and its parts say {ready}"
        if found is None or set_ is None:
            return
        if found.engine != log.spec["engine"] or found.settings is None:
            yield f"{log.ref} has {found}"
        elif len(found.settings.addresses) != set_.spec["members"]:
            yield f"{log.ref} is found at {found.settings.addresses}"
        if (status.log_id, status.log_name) != (found.id, found.name):
            yield f"{log.ref} shows {status.log_id} {status.log_name}, and is {found}"

    def _is_ready(self, conditions: list[Condition]) -> bool:
        return any((each.type, each.status) == ("Ready", "True") for each in conditions)

    def _of_forks(self) -> Iterator[str]:
        for fork in self.kube.of_kind(names.FORK):
            status = convert(fork.status, ForkStatus)
            if self._is_excused(fork):
                continue
            yield from self._of_conditions(fork, status.conditions)
            if fork.deleting:
                yield from self._of_deletion(fork)
                continue
            found = self._owned.get(_owner(fork))
            if found is not None:
                yield from self._of_live(fork, status, found)
            else:
                yield from self._of_dead(fork, status)

    def _of_live(self, fork: Observed, status: ForkStatus, found: Description) -> Iterator[str]:
        shown = (status.log_id, status.log_name, status.parent, status.fork_point)
        true = (found.id, found.name, found.parent, found.fork_point)
        counts = (status.tail, status.own_records)
        if shown != true or counts != (found.tail, found.own_records):
            yield f"{fork.ref} shows {shown} {counts}, and is {found}"
        if status.phase not in _LIVE:
            yield f"{fork.ref} is {status.phase}, and its log lives"
        yield from self._of_face(fork, status.conditions, found)
        spec, jobs = convert(fork.spec, ForkSpec), self.invariants.jobs.get(fork.uid, {})
        if spec.state is not ForkState.PROMOTED or self._said(status.conditions, "Refused"):
            return
        gated = spec.promotion.gate is not None and spec.promotion.policy is not Policy.MANUAL
        if gated and not jobs:
            yield f"{fork.ref} waits for a Job that there isn't"
        passed = not gated or (
            "Complete" in jobs and not self._said(status.conditions, "GateFailed")
        )
        if passed and (spec.approved or spec.promotion.policy is not Policy.APPROVAL):
            yield f"{fork.ref} isn't promoted, and nothing stands in the way"

    def _of_dead(self, fork: Observed, status: ForkStatus) -> Iterator[str]:
        log = self.invariants.log_of(fork.uid)
        if log is None:
            if status.phase is not ForkPhase.PENDING:
                yield f"{fork.ref} is {status.phase}, and never had a log"
            return
        if status.log_id is None and self._said(status.conditions, *_PARENTLESS):
            return
        fate = self.service.describe(log)
        if status.phase is not _phase_of(fate):
            yield f"{fork.ref} is {status.phase}, and its log {fate}"

    def _of_conditions(self, object: Observed, conditions: list[Condition]) -> Iterator[str]:
        ready = [each for each in conditions if each.type == "Ready"]
        if not ready:
            yield f"{object.ref} says nothing of being ready"
        elif ready[0].observed_generation != object.generation:
            yield f"{object.ref} tells of generation {ready[0].observed_generation}"
        away = [each for each in conditions if each.type == "ServiceReachable"]
        if away and away[0].status != "True":
            yield f"{object.ref} says that the log service isn't reached"

    def _of_deletion(self, object: Observed) -> Iterator[str]:
        if names.FINALIZER in object.finalizers:
            yield f"{object.ref} was deleted, and is held by the operator"

    def _of_face(
        self, object: Observed, conditions: list[Condition], found: Description
    ) -> Iterator[str]:
        """Clients are led to the pod of the broker that serves it."""
        pod = next((each for each in self._brokers() if broker_name(each) == found.broker), None)
        leads = pod is not None and is_ready(pod) and not pod.deleting
        ready = next(each for each in conditions if each.type == "Ready")
        if leads != (ready.status == "True"):
            says = f"{ready.status} ({ready.message})"
            yield f"{object.ref} is ready: {says}, served by {found.broker}"
        name = names.service_name(object.ref.kind, object.ref.name)
        slice_ = self.kube.get(Ref("EndpointSlice", object.ref.namespace, name))
        shown: list[dict[str, Any]] = [] if slice_ is None else slice_.body["endpoints"]
        addresses: list[str] = [address for each in shown for address in each["addresses"]]
        wanted = [pod.status["podIP"]] if pod is not None and leads else []
        if addresses != wanted:
            yield f"{object.ref} leads to {addresses}, and is at {wanted}"

    def _of_ownership(self) -> Iterator[str]:
        """Every log that somebody declared has its resource, or was left on purpose."""
        uids = {each.uid for kind in (names.LOG, names.FORK) for each in self.kube.of_kind(kind)}
        for owner, log in self._owned.items():
            facts = self.invariants.facts.get(owner.rpartition("/")[2])
            if facts is None:
                yield f"{log.name} is {owner}'s, who never was"
            elif owner.rpartition("/")[2] not in uids and not self._has_heirs(log, uids):
                yield f"{log.name} is {owner}'s, who is no more"

    def _has_heirs(self, log: Description, uids: set[str]) -> bool:
        """It goes once they have gone; a root log waits for forks of any kind."""
        if log.kind is Kind.ROOT:
            return log.forks > 0
        return any(
            each.parent == log.name and owner.rpartition("/")[2] in uids
            for owner, each in self._owned.items()
        )

    def _of_pools(self) -> Iterator[str]:
        seats = {each.name: each for each in self.service.brokers()}
        pods = {broker_name(each): each for each in self._brokers()}
        for name in seats.keys() - pods.keys():
            yield f"the log service still knows {name}, which has no pod"
        for pool in self.kube.of_kind(names.POOL):
            if not self._is_excused(pool):
                yield from self._of_pool(pool, seats)

    def _of_pool(self, pool: Observed, seats: dict[str, BrokerSeat]) -> Iterator[str]:
        spec, status = convert(pool.spec, PoolSpec), convert(pool.status, PoolStatus)
        yield from self._of_conditions(pool, status.conditions)
        pods = [each for each in self._brokers() if pool.uid in each.owners]
        ready = [
            each
            for each in pods
            if is_ready(each)
            and (seat := seats.get(broker_name(each))) is not None
            and seat.state == placement.READY
        ]
        if (status.ready, status.replicas) != (len(ready), len(pods)):
            shown = f"{status.ready} of {status.replicas}"
            yield f"{pool.ref} shows {shown}, not {len(ready)} of {len(pods)}"
        if spec.replicas is not None:
            wanted = max(spec.min, min(spec.max, spec.replicas))
            if status.desired != wanted:
                yield f"{pool.ref} wants {status.desired}, and should want {wanted}"
        if spec.image != BAD and not len(pods) == len(ready) == status.desired:
            yield f"{pool.ref} has {len(ready)} of {len(pods)} ready, and wants {status.desired}"
        old = [each for each in pods if each.labels.get(names.TEMPLATE) != template(spec)]
        if spec.image != BAD and old:
            yield f"{pool.ref}: {[each.ref.name for each in old]} are of an older spec"

    def _of_members(self) -> Iterator[str]:
        for owner in self.kube.of_kind("StatefulSet"):
            members = [each for each in self.kube.of_kind("Pod") if owner.uid in each.owners]
            old = [
                each.ref.name
                for each in members
                if each.labels[REVISION] != owner.status["updateRevision"]
            ]
            if old or len(members) != owner.spec["replicas"]:
                yield f"members: of {len(members)}, {old} are of an older revision"

    def troubled(self) -> int:
        """How many wait for what must be asked for again and again."""
        objects = [
            object
            for kind in (names.LOG, names.FORK, names.POOL, names.SEQUENCERS, names.SHARDS)
            for object in self.kube.of_kind(kind)
        ]
        uids = {object.uid for object in objects}
        return sum(owner.rpartition("/")[2] not in uids for owner in self._owned) + sum(
            any(
                (each["type"], each["status"]) == ("Ready", "False")
                for each in object.status.get("conditions") or ()
            )
            for object in objects
        )

    def _of_garbage(self) -> Iterator[str]:
        uids = {each.uid for each in self.kube.list()}
        for each in self.kube.list():
            if each.owners and not any(owner in uids for owner in each.owners):
                yield f"{each.ref} has lost its owner"

    def _brokers(self) -> list[Observed]:
        pods = self.kube.of_kind("Pod")
        return [each for each in pods if each.labels.get(names.ROLE) == names.BROKER]

    def _is_excused(self, object: Observed) -> bool:
        return object.annotations.get(names.PAUSED) == "true"

    def _said(self, conditions: list[Condition], *reasons: str) -> bool:
        return any(each.reason in reasons for each in conditions)


def _owner(object: Observed) -> str:
    return names.owner(object.ref.namespace, object.ref.kind, object.ref.name, object.uid)


def _phase_of(fate: Description | Refused) -> ForkPhase:
    if isinstance(fate, Description):
        return ForkPhase.LOST
    if fate.code == Promoted.code:
        return ForkPhase.PROMOTED
    if fate.code == Squashed.code:
        expired = fate.facts.get("reason") == EXPIRED
        return ForkPhase.EXPIRED if expired else ForkPhase.SQUASHED
    return ForkPhase.LOST
