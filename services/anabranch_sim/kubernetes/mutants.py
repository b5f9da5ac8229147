"""Ways to get the operator wrong: each breaks one rule, where one function holds it."""

# Breaking what others keep to themselves is the purpose here.
# pyright: reportPrivateUsage=false

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from anabranch.core.bolt.state import forks as bolt_forks
from anabranch.core.types import MS
from anabranch_operator.api import names
from anabranch_operator.api.fork import ForkState
from anabranch_operator.plan.election.candidate import Candidate
from anabranch_operator.plan.election.watch_health import Roll
from anabranch_operator.plan.engine import world
from anabranch_operator.plan.engine.actions import Action, Adopt, ApplyStatus, ForgetBroker
from anabranch_operator.plan.engine.events import Refusal
from anabranch_operator.plan.engine.object_state import ObjectState
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.operator import Operator
from anabranch_operator.plan.engine.retries import Trouble, Troubles, key_of
from anabranch_operator.plan.engine.status import document
from anabranch_operator.plan.engine.world import Fork, Pool, Resource, World
from anabranch_operator.plan.log import conditions, forks, gates, orphans
from anabranch_operator.plan.metadata import members
from anabranch_operator.plan.pool import departures, pools
from anabranch_operator.plan.pool.brokers import Broker
from anabranch_sim.kubernetes import plugin
from anabranch_sim.kubernetes.belfast.mutants import MUTANTS as BELFAST_MUTANTS
from anabranch_sim.kubernetes.erwin.mutants import MUTANTS as ERWIN_MUTANTS
from anabranch_sim.kubernetes.lazy.mutants import MUTANTS as LAZY_MUTANTS
from anabranch_sim.kubernetes.operators import SimOperator
from anabranch_sim.world.mutants import Function, Mutant, returning


def _unconfirmed(original: Function) -> Function:
    def plan(world: World, ref: Ref, *more: Any) -> Any:
        declares = names.declares(ref.name)
        assert declares is not None
        world.confirm_gone(declares.uid)
        return original(world, ref, *more)

    return plan


def _released(_: Function) -> Function:
    def end(_world: Any, _ref: Any, _uid: Any, found: Any) -> Iterator[Action]:
        yield Adopt(log=found.id, owner="")

    return end


def _for_nobody(original: Function) -> Function:
    return lambda *args: replace(original(*args), owner="")


def _all_of_it(_: Function) -> Function:
    return lambda *args: tuple(args[1])


def _also_the_dead(original: Function) -> Function:
    def observe(self: World, object: Observed) -> bool:
        self._ended.clear()
        return original(self, object)

    return observe


def _as_long_as_one_likes(original: Function) -> Function:
    def kept(self: Candidate, now: int, lease: Any) -> Any:
        self._sent_at = now + 3 * round(self._terms.lease_s * 1e9)
        return original(self, now, lease)

    return kept


def _by_its_number(_: Function) -> Function:
    def forsaken(world: World, pool: Pool) -> Iterator[ForgetBroker]:
        for name, seat in sorted(world.service.brokers.items()):
            pod = Ref("Pod", pool.ref.namespace, name.partition(".")[0])
            if seat.state != "ready" and pod not in world.objects:
                yield ForgetBroker(broker=name, epoch=seat.epoch)

    return forsaken


def _at_once(original: Function) -> Function:
    """But for a breath, or nothing else would ever happen."""

    def note(self: Troubles, action: Action, refusal: Refusal, now: int) -> Any:
        held = original(self, action, refusal, now)
        soon = Trouble(held.action, held.refusal, held.since, now + 50 * MS, held.failures)
        self._held[key_of(action)] = soon
        return soon

    return note


def _if_there_is_one(_: Function) -> Function:
    return lambda *_: gates.SUCCEEDED


def _whatever_came_since(_: Function) -> Function:
    def passed(_log: Any, judged: Any, _now: int) -> Any:
        kept = replace(judged, own_records=judged.own_records or 0, result=gates.SUCCEEDED)
        return gates.Verdict(gate=kept)

    return passed


def _counted_at_the_end(original: Function) -> Function:
    def passed(log: Any, judged: Any, now: int) -> Any:
        return original(log, replace(judged, own_records=log.own_records), now)

    return passed


def _one_less(original: Function) -> Function:
    def passed(log: Any, judged: Any, now: int) -> Any:
        read = judged.own_records
        return original(log, replace(judged, own_records=max(0, read - 1) if read else read), now)

    return passed


def _approved(original: Function) -> Function:
    def judge(world: World, fork: Fork, *more: Any) -> Any:
        spec = replace(fork.spec, approved=True)
        return original(world, Resource(fork.object, spec, fork.status), *more)

    return judge


def _wished(original: Function) -> Function:
    def judge(world: World, fork: Fork, *more: Any) -> Any:
        state = ForkState.PROMOTED if fork.spec.promotable else fork.spec.state
        spec = replace(fork.spec, state=state)
        return original(world, Resource(fork.object, spec, fork.status), *more)

    return judge


def _deleted(_: Function) -> Function:
    def dismiss(_: Any, broker: Broker) -> Action:
        return departures._delete(broker)

    return dismiss


def _anyhow(original: Function) -> Function:
    def write(object: Observed, status: Any) -> tuple[ApplyStatus, ...]:
        wanted = document(status)
        return original(object, status) or (
            ApplyStatus(ref=object.ref, uid=object.uid, status=wanted),
        )

    return write


MUTANTS = [
    Mutant("nobody confirms that a resource is gone", plugin, "plan_orphan", _unconfirmed),
    Mutant("logs without resources stay", World, "orphan", returning(None)),
    Mutant("what was to end is released", orphans, "_end", _released),
    Mutant("a fork is made for nobody", forks, "_make", _for_nobody),
    Mutant("what was done in vain is done again", ObjectState, "unrepeated", _all_of_it),
    Mutant(
        "who has ended comes back",
        World,
        "observe",
        _also_the_dead,
        Mutant("and no list looks for it", Roll, "overhear", returning(None)),
    ),
    Mutant("a lease lasts as long as one likes", Candidate, "_kept", _as_long_as_one_likes),
    Mutant("the lease isn't looked at", SimOperator, "_stands", returning(True)),
    Mutant("two brokers go at once", departures, "_must_wait", returning(False)),
    Mutant("a seat is known by its number", pools, "forsaken", _by_its_number),
    Mutant("what is refused is tried at once", Troubles, "note", _at_once),
    Mutant("a gate's Job needn't end", gates, "_result", _if_there_is_one),
    Mutant(
        "what came after the gate is promoted",
        gates,
        "_passed",
        _whatever_came_since,
        Mutant("and the log service lets it", bolt_forks, "_check_own", returning(None)),
    ),
    Mutant("a gate's records are counted at its end", gates, "_passed", _counted_at_the_end),
    Mutant("a gate's last record doesn't count", gates, "_passed", _one_less),
    Mutant("approval isn't asked for", forks, "judge", _approved),
    Mutant("promoted without a wish", forks, "judge", _wished),
    Mutant(
        "protection is overlooked",
        orphans,
        "ends",
        returning(True),
        Mutant("and forgotten when it goes", world, "ends", returning(True)),
    ),
    Mutant("ends that a watch missed stay missed", Roll, "compare", returning(())),
    Mutant("deleted and not drained", departures, "_dismiss", _deleted),
    Mutant("too few are left", departures, "_ready_beside", returning(1_000)),
    Mutant("members go while others aren't there", members, "_may_roll", returning(True)),
    Mutant("an operator goes on though it was deposed", Operator, "_deposed", returning(None)),
    Mutant("what is so is written again", conditions, "write", _anyhow),
    Mutant("seats of the dead are kept", pools, "forsaken", returning(())),
    Mutant("a surplus is kept", departures, "_candidate", returning((None, None))),
    *BELFAST_MUTANTS,
    *ERWIN_MUTANTS,
    *LAZY_MUTANTS,
]
