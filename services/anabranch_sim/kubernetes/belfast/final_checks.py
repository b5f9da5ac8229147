"""After the healing: has every shard that is wanted its seat, is every other one gone, and do the
statuses of SequencerSets and ShardGroups tell the truth?
"""

from collections.abc import Iterator
from typing import Any

from msgspec import convert

from anabranch.core.errors.refused import Refused
from anabranch_operator.api import names
from anabranch_operator.api.common import GroupEngineName
from anabranch_operator.api.conditions import Condition
from anabranch_operator.api.sequencers import SequencerSetSpec, SequencerSetStatus
from anabranch_operator.api.shards import ShardGroupSpec, ShardGroupStatus
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.world import Resource
from anabranch_operator.plan.groups import sequencer_pod, shard_pod
from anabranch_operator.plan.groups.named_pods import CLAIM
from anabranch_operator.plan.groups.report import ShardReport, Standing
from anabranch_operator.plan.log.services import is_ready
from anabranch_sim.kubernetes.belfast.processes import BelfastProcesses
from anabranch_sim.kubernetes.cluster.objects import Kube

_SEATED = (Standing.SEATED, Standing.LEAVING)
_WELL = {"Progressing": "False", "Degraded": "False", "RolloutBlocked": "False"}


class BelfastChecks:
    def __init__(self, kube: Kube, processes: BelfastProcesses) -> None:
        self.kube = kube
        self.log = processes.log
        true = processes.log.report()
        shards = () if isinstance(true, Refused) else true.shards
        self._members = {each.name: each for each in shards}

    def wrong(self) -> list[str]:
        found: list[str] = []
        for each in self.kube.of_kind(names.SEQUENCERS):
            found += () if _is_excused(each) else self._of_sequencers(each)
        for each in self.kube.of_kind(names.SHARDS):
            found += () if _is_excused(each) else self._of_shards(each)
        return found

    def _of_sequencers(self, object: Observed) -> Iterator[str]:
        spec = convert(object.spec, SequencerSetSpec)
        status = convert(object.status, SequencerSetStatus)
        group = Resource(object, spec, status)
        if spec.engine is GroupEngineName.LAZY and sequencer_pod.log_id(group) is None:
            yield from self._of_pods(object, (), sequencer_pod.template(spec))
            return
        yield from _of_conditions(object, status.conditions, {"Ready": "True", **_WELL})
        wanted = sequencer_pod.pod_names(group)
        yield from self._of_pods(object, wanted, sequencer_pod.template(spec))
        true = self.log.report()
        if isinstance(true, Refused):
            yield f"{object.ref}: nobody leads, and all is healed"
            return
        nodes = {sequencer_pod.node(group, each): each for each in wanted}
        counts = (status.members, status.ready, status.updated)
        if counts != (len(wanted),) * 3:
            yield f"{object.ref} shows {counts} of {len(wanted)} sequencers"
        shown = (status.leader, status.view, status.confirmed)
        is_so = (nodes.get(true.leader), true.view, true.settled)
        if true.cutting is None:
            # Appends never end, and a status of which only numbers moved waits for its turn.
            shown, is_so = shown[:2], is_so[:2]
        else:
            shown += (status.term, status.window)
            is_so += (true.cutting.term, true.cutting.window)
        if shown != is_so:
            yield f"{object.ref} shows {shown}, and is {is_so}"
        seated = sum(each.standing in _SEATED for each in self._members.values())
        if status.seated != seated:
            yield f"{object.ref} shows {status.seated} shards with seats, not {seated}"
        states = {each.pod: each.state for each in status.sequencers}
        leads = {each: "leading" if each == shown[0] else "following" for each in wanted}
        if states != leads:
            yield f"{object.ref} shows {states}"

    def _of_shards(self, object: Observed) -> Iterator[str]:
        spec = convert(object.spec, ShardGroupSpec)
        status = convert(object.status, ShardGroupStatus)
        well = {"Ready": "True", "Joining": "False", "Leaving": "False", **_WELL}
        if spec.engine is GroupEngineName.BELFAST:
            well["WindowOpen"] = "True" if spec.shards else "False"
        else:
            well["Reconfiguring"] = "False"
        yield from _of_conditions(object, status.conditions, well)
        group = Resource(object, spec, status)
        shards = {each: shard_pod.shard_name(object.ref.name, each) for each in range(spec.shards)}
        wanted = tuple(pod for each in shards for pod in shard_pod.pod_names(group, each))
        yield from self._of_pods(object, wanted, shard_pod.template(spec))
        for name in shards.values():
            member = self._members.get(name)
            if member is None or member.standing is not Standing.SEATED:
                yield f"{object.ref}: {name} is wanted, and is {_standing(member)}"
        for name, member in self._members.items():
            number = shard_pod.number_of(object.ref.name, name)
            if number is None or name in shards.values():
                continue
            if member.standing not in (Standing.LEFT, Standing.FAILED):
                yield f"{object.ref}: {name} isn't wanted, and is {_standing(member)}"
            volumes = [each.ref.name for each in self._of_shard(CLAIM, object, name)]
            if volumes and not self.log.holds(name):
                yield f"{object.ref}: {name} is over, and {volumes} are kept"
        yield from self._of_numbers(object, status, len(shards), len(wanted))

    def _of_numbers(
        self, object: Observed, status: ShardGroupStatus, shards: int, pods: int
    ) -> Iterator[str]:
        shown = (status.shards, status.desired, status.seated, status.pods, status.updated)
        if shown != (shards, shards, shards, pods, pods):
            yield f"{object.ref} shows {shown}, and wants {shards} shards of {pods} pods"
        for seat in status.seats:
            member = self._members.get(seat.name)
            told = (seat.standing, seat.epoch, seat.copies)
            true = None if member is None else (_standing(member), member.epoch, self._here(member))
            if told != true:
                yield f"{object.ref} shows {told} of {seat.name}, and is {true}"

    def _here(self, member: ShardReport) -> int:
        return sum(each in self.log.replicas for each in member.replicas)

    def _of_pods(self, object: Observed, wanted: tuple[str, ...], template: str) -> Iterator[str]:
        pods = {
            each.ref.name: each for each in self.kube.of_kind("Pod") if object.uid in each.owners
        }
        if sorted(pods) != sorted(wanted):
            yield f"{object.ref} has {sorted(pods)}, and wants {sorted(wanted)}"
        unready = [name for name, each in pods.items() if not is_ready(each) or each.deleting]
        old = [name for name, each in pods.items() if each.labels.get(names.TEMPLATE) != template]
        if unready or old:
            yield f"{object.ref}: {unready} aren't ready, {old} are of an older spec"
        for name in wanted:
            if self.kube.get(Ref(CLAIM, object.ref.namespace, f"data-{name}")) is None:
                yield f"{object.ref}: {name} has no volume"

    def _of_shard(self, kind: str, group: Observed, shard: str) -> list[Observed]:
        return [
            each
            for each in self.kube.of_kind(kind)
            if each.ref.namespace == group.ref.namespace
            and each.labels.get(names.SHARD_LABEL) == shard
        ]


def _of_conditions(
    object: Observed, conditions: list[Condition], well: dict[str, Any]
) -> Iterator[str]:
    said = {each.type: each for each in conditions}
    for name, status in well.items():
        found = said.get(name)
        if found is None or found.status != status:
            why = "" if found is None else f"{found.status}, {found.reason}: {found.message}"
            yield f"{object.ref} says {name} {why or 'nothing'}"
        elif found.observed_generation != object.generation:
            yield f"{object.ref} tells of generation {found.observed_generation}"


def _standing(member: ShardReport | None) -> str:
    return "unknown" if member is None else member.standing.value


def _is_excused(object: Observed) -> bool:
    return object.annotations.get(names.PAUSED) == "true"
