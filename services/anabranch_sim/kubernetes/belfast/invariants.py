"""What must never come to a Belfast log by its operator's doing, held against all that is done.

8. Of sequencers, and of the replicas of a shard that is counted on, one is away at a time; and
   only while all others are known to be there and to count. Who leads is rolled last.
9. A shard has left, and nobody can ask for what it holds, before its pods go; only those leave
   that aren't wanted.
10. No shard fails because all of its replicas were ended.
11. No volume goes that a seat counts on, or that holds what can still be asked for.
12. Sequencers of a lazy front don't go before the front has ended.

What an operator can't know isn't held against it: others' deeds, and processes that have just
died. Its own it knows, whatever it was told since.
"""

from collections.abc import Callable, Iterator

from msgspec import Struct

from anabranch.core.types import Nanoseconds
from anabranch_operator.api import names
from anabranch_operator.api.shards import WaitFor
from anabranch_operator.plan.engine.actions import Action, Delete, JoinShard, LeaveShard
from anabranch_operator.plan.engine.events import Outcome, Refusal
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.operator import Operator
from anabranch_operator.plan.engine.world import Sequencers, Shards
from anabranch_operator.plan.engine.world import World as Known
from anabranch_operator.plan.groups import sequencer_pod, shard_pod
from anabranch_operator.plan.groups.report import Report, ShardReport, Standing
from anabranch_operator.plan.log.conditions import is_paused
from anabranch_operator.plan.log.services import is_ready
from anabranch_operator.plan.metadata.evictions import deadline
from anabranch_sim.kubernetes.belfast.processes import BelfastProcesses
from anabranch_sim.kubernetes.cluster.objects import Change
from anabranch_sim.kubernetes.lazy.log import LazyFront
from anabranch_sim.kubernetes.log_model import Failure
from anabranch_sim.kubernetes.sandbox import BEGIN
from anabranch_sim.world.events import World

_OVER = (Standing.LEFT, Standing.FAILED)


class Removal(Struct):
    """An operator ends a pod that serves, or lets it go."""

    by: tuple[str, int | None]
    """A life of an operator, and the epoch that it leads in."""
    uid: str
    name: str
    address: str
    shard: str
    """Empty: it is a sequencer's."""
    forced: bool
    """By an eviction that was put off for long enough."""
    pending: bool = True
    """It is on its way, and may be done."""
    done: bool = False


class BelfastInvariants:
    """They see everything, also what no operator can."""

    def __init__(
        self, world: World, processes: BelfastProcesses, fail: Callable[[str], None]
    ) -> None:
        self._world = world
        self._processes = processes
        self._fail = fail
        self._removals: dict[str, Removal] = {}
        """By the pods' UIDs."""
        self._allowed: dict[str, tuple[Nanoseconds, Removal]] = {}
        self._claims: dict[str, None] = {}
        """Volumes that operators have deleted, by UID."""
        self._log, self._failed = processes.log, dict[str, int]()
        self._replicas: dict[str, tuple[str, ...]] = {}
        """Of each shard, as its processes were told."""
        processes.stepped.append(self._look)

    def decided(self, operator: str, machine: Operator, action: Action) -> None:
        world = machine.world
        match action:
            case Delete(ref=Ref(kind="Pod"), uid=uid):
                pod = world.by_uid(uid)
                if pod is not None:
                    self._judge_end(operator, machine, pod)
            case Delete(ref=Ref(kind="PersistentVolumeClaim") as ref, uid=uid):
                self._claims[uid] = None
                self._judge_volume(operator, world, ref)
            case Delete(ref=Ref(kind=names.SEQUENCERS) as ref):
                self._judge_front(operator, world, ref)
            case LeaveShard() | JoinShard():
                self._judge_move(operator, world, action)
            case _:
                pass

    def answered(self, action: Action, outcome: Outcome) -> None:
        if isinstance(action, Delete) and isinstance(outcome, Refusal):
            removal = self._removals.get(action.uid)
            if removal is not None:
                removal.pending = False

    def allowed(self, operator: str, machine: Operator, uid: str) -> None:
        """An eviction is let go; whoever asked may do it at once, or has given up."""
        pod = machine.world.by_uid(uid)
        removal = None if pod is None else self._removal(operator, machine, pod)
        if pod is None or removal is None or _is_left_alone(machine.world, pod):
            return
        if not removal.forced and not self._is_over(machine.world, pod, removal):
            self._judge_alone(removal, machine, pod)
        self._allowed[uid] = self._world.now, removal

    def changed(self, change: Change) -> None:
        object = change.object
        match object.ref.kind:
            case "Pod" if object.deleting or change.gone:
                at, allowed = self._allowed.pop(object.uid, (0, None))
                if allowed is not None and at == self._world.now:
                    self._removals.setdefault(object.uid, allowed)
                if object.uid in self._removals:
                    self._removals[object.uid].done = True
            case "PersistentVolumeClaim" if change.gone and object.uid in self._claims:
                self._judge_loss(object)
            case _:
                pass

    # What is decided about pods, as far as whoever decides can know.

    def _judge_end(self, operator: str, machine: Operator, pod: Observed) -> None:
        removal = self._removal(operator, machine, pod)
        if removal is None:
            return
        world, group = machine.world, _group(machine.world, pod)
        self._removals[pod.uid] = removal
        if self._is_over(world, pod, removal):
            return
        self._judge_order(operator, world, pod, removal)
        surplus = group is not None and _surplus(group, removal.shard)
        if surplus and not _is_outdated(world, pod):
            self._fail(f"9 leaving: {operator} ends {removal.name} before its shard has left")
        self._judge_alone(removal, machine, pod)

    def _judge_front(self, operator: str, world: Known, ref: Ref) -> None:
        group, model = world.sequencers.get(ref), self._processes.log
        log = None if group is None else sequencer_pod.log_id(group)
        if log is not None and isinstance(model, LazyFront) and model.takes_appends_of(log):
            self._fail(f"12 fronts: {operator} deletes {ref}, which takes the appends of log {log}")

    def _removal(self, operator: str, machine: Operator, pod: Observed) -> Removal | None:
        """None: nothing is lost with it, as far as anybody knows."""
        world, role = machine.world, pod.labels.get(names.ROLE)
        if role not in (names.SEQUENCER, names.SHARD) or pod.deleting or not is_ready(pod):
            return None
        eviction = world.evicting.get(pod.uid)
        now = BEGIN + self._world.now
        address = _address(world, pod)
        if address is None:
            return None
        return Removal(
            by=(operator, machine.epoch),
            uid=pod.uid,
            name=pod.ref.name,
            address=address,
            shard=pod.labels.get(names.SHARD_LABEL, ""),
            forced=eviction is not None and deadline(world, eviction) <= now,
        )

    def _is_over(self, world: Known, pod: Observed, removal: Removal) -> bool:
        """Nobody counts on its shard, as the log has said."""
        group = _group(world, pod)
        if group is None or not _surplus(group, removal.shard):
            return False
        status, told = _told(world, group, removal.shard)
        if status is None:
            return False
        return told is None or (told.standing in _OVER and _given_up(group, status, told))

    def _judge_order(self, operator: str, world: Known, pod: Observed, removal: Removal) -> None:
        if not _leads(world, pod, removal) or not _is_outdated(world, pod):
            return
        mates = [each for each in _mates(world, pod) if not each.deleting]
        old = [each.ref.name for each in mates if _is_outdated(world, each)]
        if old:
            self._fail(f"8 leader: {operator} rolls {removal.name}, which leads, before {old}")

    def _judge_alone(self, removal: Removal, machine: Operator, pod: Observed) -> None:
        world = machine.world
        operator, what = removal.by[0], "replicas" if removal.shard else "sequencers"
        away = [
            each.name
            for each in self._removals.values()
            if each.by == removal.by and each.shard == removal.shard and each.uid != removal.uid
            if (each.pending or each.done) and not removal.forced and self._counts(each)
        ]
        if away:
            self._fail(f"8 two {what}: {operator} ends {removal.name}, and {away} by now")
        missing = list(_missing(world, pod, removal))
        if missing and not removal.forced:
            self._fail(f"8 {what}: {operator} ends {removal.name}, and {missing} aren't there")

    def _counts(self, removal: Removal) -> bool:
        """Is it missed, where the log still counts on its shard?"""
        if not removal.shard:
            return True
        return self._processes.log.standing(removal.shard) not in (None, *_OVER)

    # What becomes of them.

    def _look(self) -> None:
        log = self._processes.log
        if log is not self._log:
            self._log, self._failed = log, {}
        for replica in log.replicas.values():
            self._replicas[replica.shard] = replica.replicas
        for each in log.failures():
            if each.number > self._failed.get(each.shard, 0):
                self._failed[each.shard] = each.number
                self._judge_failure(each)
        for removal in [each for each in self._removals.values() if self._is_made_good(each)]:
            del self._removals[removal.uid]

    def _judge_failure(self, failure: Failure) -> None:
        replicas = self._replicas_of(failure)
        done = {each.address: each for each in self._removals.values() if each.done}
        ended = [done[each] for each in replicas if each in done]
        if len(replicas) < 2 or len(ended) < len(replicas) or any(each.forced for each in ended):
            return
        by = sorted({each.by[0] for each in ended})
        self._fail(f"10 view: {failure.shard} failed: {by} ended {[each.name for each in ended]}")

    def _replicas_of(self, failure: Failure) -> tuple[str, ...]:
        """Also those that it goes on without."""
        known = self._replicas.get(failure.shard, ())
        return known if len(known) > len(failure.replicas) else failure.replicas

    def _is_made_good(self, removal: Removal) -> bool:
        """Somebody is there in its place, and counts."""
        log = self._processes.log
        life = self._processes.lives.get(removal.address)
        if not removal.done:
            return not removal.pending
        if life is None or life == removal.uid:
            return bool(removal.shard) and log.standing(removal.shard) in (None, *_OVER)
        return not removal.shard or log.serves(removal.address)

    # Shards that come and go, and volumes.

    def _judge_move(self, operator: str, world: Known, action: LeaveShard | JoinShard) -> None:
        joins = isinstance(action, JoinShard)
        for group in world.shards_of(action.log):
            number = shard_pod.number_of(group.ref.name, action.shard)
            if number is not None and joins != (number < group.spec.shards):
                does = "asks back" if joins else "lets go"
                self._fail(f"9 move: {operator} {does} {action.shard} of {group.spec.shards}")

    def _judge_volume(self, operator: str, world: Known, ref: Ref) -> None:
        claim = world.objects.get(ref)
        shard = "" if claim is None else claim.labels.get(names.SHARD_LABEL, "")
        group = None if claim is None else _group(world, claim)
        if group is None:
            self._fail(f"11 volume: {operator} deletes {ref.name}, which is no shard's")
            return
        status, told = _told(world, group, shard)
        over = status is not None and told is not None and told.standing in _OVER
        if status is None or told is None or not over or not _given_up(group, status, told):
            self._fail(f"11 volume: {operator} deletes {ref.name}, whose shard hasn't left")
        if Ref("Pod", ref.namespace, ref.name.removeprefix("data-")) in world.objects:
            self._fail(f"11 volume: {operator} deletes {ref.name} before its pod")

    def _judge_loss(self, claim: Observed) -> None:
        shard = claim.labels.get(names.SHARD_LABEL, "")
        if self._processes.log.counts_on(shard):
            self._fail(f"11 volume: {claim.ref.name} is gone, and a window counts on its shard")


def _missing(world: Known, pod: Observed, removal: Removal) -> Iterator[str]:
    """Whom it can't be spared beside, by what is known."""
    mates = _mates(world, pod)
    if removal.shard:
        group = _group(world, pod)
        if group is None:
            return
        status, told = _told(world, group, removal.shard)
        if status is None:
            yield "sequencers"
        counts = told is not None and told.standing is not Standing.FAILED
        wanted = group.spec.copies
        here = () if told is None else tuple(e for e in told.replicas if e not in told.silent)
    else:
        owner = _set(world, pod)
        if owner is None:
            return
        status, counts, wanted = _status(world, owner.ref), True, owner.spec.members
        here = () if status is None else status.reached
    for each in mates:
        ready = is_ready(each) and not each.deleting
        if not ready or (counts and _address(world, each) not in here):
            yield each.ref.name
    if len(mates) < wanted - 1:
        yield f"{wanted - 1 - len(mates)} more"


def _mates(world: Known, pod: Observed) -> list[Observed]:
    """The others of its shard, or of its set."""
    label = names.SHARD_LABEL if names.SHARD_LABEL in pod.labels else names.SEQUENCERS_LABEL
    return [
        each
        for owner in pod.owners
        for each in world.children(owner, "Pod")
        if each.uid != pod.uid and each.labels.get(label) == pod.labels.get(label)
    ]


def _is_left_alone(world: Known, pod: Observed) -> bool:
    owner = _group(world, pod) or _set(world, pod)
    return owner is None or owner.object.deleting or is_paused(owner.object)


def _group(world: Known, object: Observed) -> Shards | None:
    name = object.labels.get(names.SHARDS_LABEL, "")
    return world.shards.get(Ref(names.SHARDS, object.ref.namespace, name))


def _set(world: Known, pod: Observed) -> Sequencers | None:
    name = pod.labels.get(names.SEQUENCERS_LABEL, "")
    return world.sequencers.get(Ref(names.SEQUENCERS, pod.ref.namespace, name))


def _address(world: Known, pod: Observed) -> str | None:
    if pod.labels.get(names.ROLE) == names.SHARD:
        group = _group(world, pod)
        return None if group is None else shard_pod.node(group, pod.ref.name)
    owner = _set(world, pod)
    return None if owner is None else sequencer_pod.node(owner, pod.ref.name)


def _status(world: Known, sequencers: Ref) -> Report | None:
    found = world.visits.get(sequencers)
    return None if found is None else found.report


def _told(world: Known, group: Shards, shard: str) -> tuple[Report | None, ShardReport | None]:
    ref = Ref(names.SEQUENCERS, group.ref.namespace, group.spec.sequencers)
    status = _status(world, ref)
    shards = () if status is None else status.shards
    return status, next((each for each in shards if each.name == shard), None)


def _given_up(group: Shards, status: Report, told: ShardReport) -> bool:
    return status.trimmed >= told.last or group.spec.leaving.wait_for is WaitFor.NOTHING


def _surplus(group: Shards, shard: str) -> bool:
    number = shard_pod.number_of(group.ref.name, shard)
    return number is not None and number >= group.spec.shards


def _leads(world: Known, pod: Observed, removal: Removal) -> bool:
    """The sequencers, or its shard."""
    group, owner = _group(world, pod), _set(world, pod)
    if group is not None:
        _, told = _told(world, group, removal.shard)
        return told is not None and told.primary == removal.address
    status = None if owner is None else _status(world, owner.ref)
    return status is not None and status.leader == removal.address


def _is_outdated(world: Known, pod: Observed) -> bool:
    group, owner = _group(world, pod), _set(world, pod)
    if group is not None:
        return pod.labels.get(names.TEMPLATE) != shard_pod.template(group.spec)
    return owner is not None and pod.labels.get(names.TEMPLATE) != sequencer_pod.template(
        owner.spec
    )
