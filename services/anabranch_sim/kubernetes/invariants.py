"""What must never happen, each rule written once: held against everything that is done.

1. One resource never has two logs, and whatever the operator makes names the resource it is for.
2. Two operators never act at once; whoever was deposed changes nothing in the log service once its
   successor has.
3. No fork is promoted without the wish and what its policy demands, nor with more records of its
   own than a gate has read that succeeded.
4. No log is squashed or deleted but by its resource's end, its gate, its time, or its parent; and
   none is released that was to end with its resource.
5. The operator puts no finalizer on anything, and takes away none but its own.
6. Never are two brokers disturbed at once, nor too few left, nor one ended that wasn't drained.
7. No storm: an object isn't written more than so often in a minute; a fork has few events.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, convert

from anabranch.core.bolt.protocol.commands import (
    Adopt,
    CreateLog,
    DeleteLog,
    Description,
    ForkLog,
    Guarded,
    Promote,
    Promotion,
    Squash,
)
from anabranch.core.bolt.state import placement
from anabranch.core.errors.refused import Refused
from anabranch.core.types import MS, LogId, Nanoseconds
from anabranch_operator.api import names
from anabranch_operator.api.fork import ForkDeletion, ForkSpec, ForkState, OnFailure, Policy
from anabranch_operator.api.log import LogDeletion, LogSpec
from anabranch_operator.plan.election.leadership import FIRST_EPOCH
from anabranch_operator.plan.engine import actions
from anabranch_operator.plan.engine.actions import Action
from anabranch_operator.plan.engine.dependencies import broker_name
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.operator import Operator
from anabranch_operator.plan.engine.world import Pool
from anabranch_operator.plan.engine.world import World as Known
from anabranch_operator.plan.log.services import is_ready
from anabranch_operator.plan.metadata.evictions import deadline
from anabranch_sim.kubernetes.cluster.objects import Change
from anabranch_sim.kubernetes.cluster.service import LogService
from anabranch_sim.kubernetes.sandbox import BEGIN
from anabranch_sim.world.events import SECOND, World

WRITES_A_MINUTE_MAX = 120
"""Where pods are made and end in seconds, and somebody deletes them all the time."""
ANSWERED: Nanoseconds = 12 * SECOND
"""So long after a drain was asked for it was done, or will be by another request only."""
EVENTS_MAX = 12
OTHERS = "example.com/others"
"""A finalizer of somebody else's."""


class Facts(Struct):
    """What was ever so of one resource, at any version of it."""

    ref: Ref
    wished: bool = False
    approved: bool = False
    policy: Policy = Policy.MANUAL
    gated: bool = False
    may_end: bool = False
    """When it is gone its log may end: so it says, or said when the log service took note."""
    may_stay: bool = True
    gone: bool = False
    ends_when_failed: bool = False
    held: bool = False
    """By the finalizer of an earlier version of the operator."""


class Invariants:
    """It sees everything, also what no operator can."""

    def __init__(self, world: World, service: LogService) -> None:
        self.violations: list[str] = []
        self.facts: dict[str, Facts] = {}
        """By UID."""
        self.jobs: dict[str, dict[str, None]] = {}
        """What Jobs were ever said to have come to, by their owners."""
        self.reads: dict[str, list[int]] = {}
        """How many own records of a fork its gates have read that succeed, by the Fork's UID."""
        self.terminated: dict[str, None] = {}
        """Namespaces that ever were on their way out."""
        self.writes = 0
        self.last = ""
        """Which write was the last."""
        self._world = world
        self._service = service
        self._owned: dict[str, dict[LogId, None]] = {}
        self._owner_of: dict[LogId, str] = {}
        self._others: dict[str, bool] = {}
        self._guards: dict[str, int] = {}
        self._standing: list[Any] = []
        self._writes: dict[tuple[str, Ref], list[Nanoseconds]] = {}
        self._events: dict[str, int] = {}
        self._drained: dict[str, Nanoseconds] = {}

    def fail(self, says: str) -> None:
        if says not in self.violations:
            self._world.note("VIOLATION", says)
            self.violations.append(says)

    def watch(self, operators: list[Any]) -> None:
        self._standing = operators

    # What is done to objects.

    def sent(self, operator: str, verb: str, ref: Ref) -> None:
        """A write leaves an operator, by whose clock its lease is good."""
        now = self._world.now
        self.writes, self.last = self.writes + 1, f"{verb} of {ref}"
        standing = [each.name for each in self._standing if each.standing]
        if standing != [operator]:
            self.fail(f"2 leaders: {operator} writes while {standing} may")
        times = self._writes.setdefault((verb, ref), [])
        times.append(now)
        if len(times) > WRITES_A_MINUTE_MAX:
            first = times.pop(0)
            if now - first < 60 * SECOND:
                self.fail(
                    f"7 storm: {verb} of {ref} more than {WRITES_A_MINUTE_MAX} times a minute"
                )

    def changed(self, change: Change) -> None:
        object = change.object
        match object.ref.kind:
            case names.FORK | names.LOG:
                self._resource(change)
            case "Job":
                for each in object.status.get("conditions") or ():
                    for owner in object.owners:
                        self.jobs.setdefault(owner, {})[each["type"]] = None
            case "Namespace":
                if object.deleting:
                    self.terminated[object.ref.name] = None
            case "Event":
                self._event(object)
            case "Pod":
                if change.gone:
                    self._drained.pop(broker_name(object), None)
            case _:
                pass

    def read(self, job: Observed, own_records: int) -> None:
        """A gate that is about to succeed has read so many records of its fork's own."""
        for owner in job.owners:
            self.reads.setdefault(owner, []).append(own_records)

    def others(self, object: Observed, *, held: bool) -> None:
        """Somebody else holds this, or lets it go."""
        self._others[object.uid] = held

    def _resource(self, change: Change) -> None:
        object = change.object
        facts = self.facts.setdefault(object.uid, Facts(object.ref))
        if object.ref.kind == names.FORK:
            self._fork(object, facts)
        else:
            deletes = convert(object.spec, LogSpec).deletion_policy is LogDeletion.DELETE
            self._policy(object, facts, ends=deletes)
        facts.gone |= change.gone
        if names.FINALIZER in object.finalizers and not facts.held:
            self.fail(f"5 finalizers: {object.ref} has got one of the operator's")
        theirs = OTHERS in object.finalizers and not change.gone
        if theirs != self._others.get(object.uid, False):
            self.fail(f"5 finalizers: {object.ref} has lost or got another's")

    def _fork(self, object: Observed, facts: Facts) -> None:
        spec = convert(object.spec, ForkSpec)
        squashes = spec.deletion_policy is ForkDeletion.SQUASH and not spec.protected
        facts.wished |= spec.state is ForkState.PROMOTED
        facts.approved |= spec.approved
        facts.policy = spec.promotion.policy
        facts.gated = spec.promotion.gate is not None
        self._policy(object, facts, ends=squashes)
        if spec.promotion.gate is not None:
            facts.ends_when_failed |= spec.promotion.gate.on_failure is OnFailure.SQUASH

    def _policy(self, object: Observed, facts: Facts, *, ends: bool) -> None:
        """What was said last counts for sure once the log service has taken note of it."""
        ends = ends and object.annotations.get(names.FORGET) != "true"
        found = self._alive(_owner(object))
        if found is not None and names.is_ending(found.owner) == ends:
            facts.may_end, facts.may_stay = ends, not ends
        else:
            facts.may_end |= ends
            facts.may_stay |= not ends or found is None or not names.is_ending(found.owner)

    def _event(self, event: Observed) -> None:
        about = event.body["regarding"]
        if about["kind"] != names.FORK:
            return
        count = self._events[about["uid"]] = self._events.get(about["uid"], 0) + 1
        if count > EVENTS_MAX:
            self.fail(f"7 events: more than {EVENTS_MAX} about {about['name']}")

    # What is done in the log service.

    def commanded(self, command: Any, outcome: Any) -> None:
        if isinstance(outcome, Description) and outcome.owner:
            owner = self._owner_of[outcome.id] = names.plain(outcome.owner)
            logs = self._owned.setdefault(owner, {})
            logs[outcome.id] = None
            if len(logs) > 1:
                self.fail(f"1 two logs: {owner} has had {list(logs)}")
        if not isinstance(command, Guarded) or isinstance(outcome, Refused):
            return
        if command.epoch < self._guards.get(command.scope, 0):
            self.fail(f"2 deposed: {command} was done in epoch {command.epoch}")
        self._guards[command.scope] = max(command.epoch, self._guards.get(command.scope, 0))
        match command.command:
            case CreateLog(owner=owner) | ForkLog(owner=owner) if _uid(owner) not in self.facts:
                self.fail(f"1 owner: {command.command.name} is made for {owner or 'nobody'}")
            case Promote(log):
                assert isinstance(outcome, Promotion)
                self._judge_promotion(log, outcome.records)
            case Squash(log) | DeleteLog(log):
                self._judge_end(log)
            case Adopt(log, "") if command.epoch > FIRST_EPOCH:
                self._judge_release(log)
            case _:
                pass

    def _judge_promotion(self, log: LogId, records: int) -> None:
        facts = self._facts_of(log)
        if facts is None:
            self.fail(f"3 promotion: of {log}, which nobody declares")
            return
        jobs = self.jobs.get(self._uid_of(log), {})
        if not facts.wished:
            self.fail(f"3 promotion: of {facts.ref}, which nobody wished")
        if facts.policy is not Policy.MANUAL and facts.gated and "Complete" not in jobs:
            self.fail(f"3 promotion: of {facts.ref}, though no Job has succeeded")
        read = self.reads.get(self._uid_of(log), [])
        if facts.policy is not Policy.MANUAL and facts.gated and records > max(read, default=0):
            self.fail(
                f"3 judged: {facts.ref} has {records} own records, its gates have read {read}"
            )
        if facts.policy is Policy.APPROVAL and not facts.approved:
            self.fail(f"3 promotion: of {facts.ref}, which nobody has approved")

    def _judge_end(self, log: LogId) -> None:
        facts = self._facts_of(log)
        if facts is None:
            self.fail(f"4 end: of {log}, which nobody declares")
            return
        failed = facts.ends_when_failed and "Failed" in self.jobs.get(self._uid_of(log), {})
        if not (facts.gone and facts.may_end) and not failed:
            self.fail(f"4 end: of the log of {facts.ref}, which isn't to go")

    def _judge_release(self, log: LogId) -> None:
        facts = self._facts_of(log)
        if facts is not None and facts.gone and not facts.may_stay:
            self.fail(f"4 release: of the log of {facts.ref}, which was to go")

    def log_of(self, uid: str) -> LogId | None:
        """The one that was made for a resource, whatever became of it."""
        found = [logs for owner, logs in self._owned.items() if _uid(owner) == uid]
        return next(iter(found[0])) if found else None

    def _facts_of(self, log: LogId) -> Facts | None:
        return self.facts.get(self._uid_of(log))

    def _uid_of(self, log: LogId) -> str:
        """Whose it was when it was last described."""
        return _uid(self._owner_of.get(log, ""))

    def _alive(self, owner: str) -> Description | None:
        owned = self._service.owned()
        return next((each for each in owned if names.plain(each.owner) == owner), None)

    # What is decided about brokers, as far as whoever decides can know.

    def decided(self, operator: str, machine: Operator, action: Action) -> None:
        world = machine.world
        match action:
            case actions.DrainBroker():
                self._judge_drain(operator, world, action)
            case actions.Delete(ref=Ref(kind="Pod"), uid=uid):
                pod = world.by_uid(uid)
                if pod is not None and pod.labels.get(names.ROLE) == names.BROKER:
                    self._judge_deletion(operator, world, pod)
                elif pod is not None and pod.labels.get(names.ROLE) == names.METADATA:
                    self._judge_member(operator, world, pod)
            case _:
                pass

    def _judge_drain(self, operator: str, world: Known, action: actions.DrainBroker) -> None:
        pod = next((each for each in _brokers(world) if broker_name(each) == action.broker), None)
        if pod is None:
            self.fail(f"6 drain: {operator} drains {action.broker}, whose pod it doesn't know")
            return
        if self._is_forced(world, pod):
            return
        now = self._now()
        for name, since in self._drained.items():
            if not self._is_handing_over(world, name, since):
                continue
            other = world.by_uid(name.rpartition(".")[2])
            stuck = other is not None and other.deleting and other.ends_at * MS <= now
            if other is not None and other.uid != pod.uid and not stuck:
                self.fail(f"6 disruption: {operator} drains {pod.ref.name} beside {name}")
        for pool in _pools(world, pod):
            others = [
                each
                for each in _brokers(world)
                if each.uid != pod.uid and each.ref.namespace == pool.ref.namespace
                if _serves(world, each)
            ]
            if len(others) < pool.spec.min:
                self.fail(f"6 too few: {operator} drains {pod.ref.name} and leaves {len(others)}")
        self._drained[action.broker] = now

    def _is_handing_over(self, world: Known, broker: str, since: Nanoseconds) -> bool:
        """As whoever decides has been told, or must fear."""
        told = world.service.brokers.get(broker)
        if told is not None and told.state == placement.DRAINING:
            return True
        true = {each.name: each.state for each in self._service.brokers()}
        return self._now() - since < ANSWERED and true.get(broker) == placement.DRAINING

    def _judge_deletion(self, operator: str, world: Known, pod: Observed) -> None:
        if self._is_forced(world, pod) or not _serves(world, pod):
            return
        self.fail(f"6 deletion: {operator} deletes {pod.ref.name}, which serves")

    def _judge_member(self, operator: str, world: Known, pod: Observed) -> None:
        siblings = [
            each
            for owner in pod.owners
            for each in world.children(owner, "Pod")
            if each.uid != pod.uid
        ]
        if is_ready(pod) and not all(is_ready(each) and not each.deleting for each in siblings):
            self.fail(f"6 members: {operator} deletes {pod.ref.name} while others aren't ready")

    def _is_forced(self, world: Known, pod: Observed) -> bool:
        eviction = world.evicting.get(pod.uid)
        return eviction is not None and deadline(world, eviction) <= self._now()

    def _now(self) -> Nanoseconds:
        return BEGIN + self._world.now


def _uid(owner: str) -> str:
    return names.plain(owner).rpartition("/")[2]


def _owner(object: Observed) -> str:
    ref = object.ref
    return names.owner(ref.namespace, ref.kind, ref.name, object.uid)


def _brokers(world: Known) -> Iterator[Observed]:
    return (each for each in world.of_kind("Pod") if each.labels.get(names.ROLE) == names.BROKER)


def _pools(world: Known, pod: Observed) -> Iterator[Pool]:
    return (each for each in world.pools.values() if each.object.uid in pod.owners)


def _serves(world: Known, pod: Observed) -> bool:
    seat = world.service.brokers.get(broker_name(pod))
    ready = seat is not None and seat.state == placement.READY
    return ready and is_ready(pod) and not pod.deleting
