"""Plans objects one at a time, and keeps track of what comes of the planned actions.

An object that was woken is planned: a pure function of the world says which actions to perform
next; they don't depend on each other. Their outcomes become part of the world, and the object is
planned again, until there is nothing to do: then it has converged, and costs no request. Actions
that fail are retried with an ever longer pause, and hold up nothing else.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from anabranch_operator.api import names
from anabranch_operator.api.anabranch_names import MS, Nanoseconds
from anabranch_operator.plan.engine.actions import Action, ApplyStatus, ObjectAction, Plan
from anabranch_operator.plan.engine.events import Do, Effect, Note, Refusal
from anabranch_operator.plan.engine.object_state import Flight, InFlight, ObjectState
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.plan_queue import PlanQueue, Wakeups
from anabranch_operator.plan.engine.retries import BACKOFF_MS_MAX, Troubles, key_of
from anabranch_operator.plan.engine.status_pacing import StatusPacer
from anabranch_operator.plan.engine.world import RESOURCES, World

Planner = Callable[[World, Ref, Nanoseconds, Troubles], Plan]


class Counters(Struct):
    """What the operator counts, for its metrics."""

    plans: int = 0
    steady: int = 0
    actions: int = 0
    refusals: int = 0
    queued: int = 0
    oldest_queued_at: Nanoseconds | None = None


class Reconciler:
    """Remembers nothing that may not be forgotten: after a restart the same plans come of the same
    objects.
    """

    def __init__(self, world: World, planners: Mapping[str, Planner]) -> None:
        self.counters = Counters()
        self._world = world
        self._planners = planners
        self._states: dict[Ref, ObjectState] = {}
        self._queue = PlanQueue()
        self._in_flight = InFlight(world)
        self._wakeups = Wakeups()
        around = world.surroundings
        self._pacer = StatusPacer(object_ms=around.cosmetic_ms, writes_per_s=around.cosmetic_per_s)
        self._reconciles = 0

    def restart(self, now: Nanoseconds) -> None:
        """Another term of leadership begins: the answers to earlier actions come to nobody."""
        self.stop()
        self._pacer.restart(now)

    def stop(self) -> None:
        self._states.clear()
        self._in_flight.clear()
        self._queue.clear()
        self._wakeups.clear()

    def wake(self, refs: Iterable[Ref], now: Nanoseconds) -> None:
        """Plan these as soon as there is room."""
        for ref in refs:
            if not self._may_plan(ref):
                continue
            state = self._states.setdefault(ref, ObjectState())
            if not state.actions:  # the answer to the last action in flight wakes it again
                self._queue.push(ref, now)

    def wake_due(self, now: Nanoseconds) -> None:
        """The timer has fired."""
        self.wake(list(self._wakeups.due(now)), now)

    def defers(self, ref: Ref, now: Nanoseconds) -> bool:
        state = self._states.get(ref)
        return state is not None and state.defers(now)

    def forget(self, ref: Ref) -> None:
        """The object is gone. Actions in flight are still waited for."""
        state = self._states.get(ref)
        if state is not None and not state.actions:
            self._drop(ref)

    def run(self, now: Nanoseconds) -> Iterator[Effect]:
        """Plan what waits, as far as there is room for actions."""
        room = self._world.surroundings.in_flight_max
        while self._queue and len(self._in_flight) < room:
            ref = self._queue.pop()
            state = self._states.get(ref)
            if state is not None:
                yield from self._reconcile(ref, state, now)
        self.counters.queued = len(self._queue)
        self.counters.oldest_queued_at = self._queue.oldest_at
        yield from self._wakeups.timer()

    def finish(self, number: int) -> Flight | None:
        """The action of this number was answered; None if an earlier leader planned it."""
        flight = self._in_flight.finish(number)
        if flight is not None:
            del self._states[flight.ref].actions[number]
        return flight

    def succeed(self, flight: Flight) -> None:
        state = self._states.get(flight.ref)
        if state is not None:  # else the action was its object's deletion
            state.troubles.settle(flight.action)
            state.done[key_of(flight.action)] = (flight.action, self._version_of(flight.action))

    def fail(self, flight: Flight, refusal: Refusal, now: Nanoseconds) -> Note:
        state = self._states[flight.ref]
        state.troubles.note(flight.action, refusal, now)
        self.counters.refusals += 1
        what = f"{type(flight.action).__name__}: {refusal.message}"
        return Note(state.reconcile, flight.ref, "refused", what)

    def _may_plan(self, ref: Ref) -> bool:
        if ref.kind not in self._planners:
            return False
        # What the whole installation needs, such as certificates, comes before the log service.
        return ref.kind not in RESOURCES or (
            self._world.service.looked and ref in self._world.objects
        )

    def _reconcile(self, ref: Ref, state: ObjectState, now: Nanoseconds) -> Iterator[Effect]:
        if self._is_over(ref):
            self._drop(ref)
            return
        object = self._world.objects.get(ref)
        if object is not None and object.generation != state.generation:
            state.generation = object.generation
            state.troubles.clear()
        self._reconciles += 1
        state.reconcile = self._reconciles
        self.counters.plans += 1
        plan = self._plan(ref, state, now)
        if isinstance(plan, Note):
            yield plan
            plan = Plan(wake_at=now + BACKOFF_MS_MAX * MS)
        state.troubles.prune(plan.actions, now)
        due = state.troubles.due(plan.actions, now)
        due = self._pacer.admit(state, due, now)
        due = state.unrepeated(due, self._version_of, now)
        if not due and not state.troubles:
            self.counters.steady += 1
            yield Note(state.reconcile, ref, "steady")
        self._wake_later(ref, state, plan, now)
        for action in due:
            yield self._start(ref, state, action, now)

    def _is_over(self, ref: Ref) -> bool:
        if ref.kind == names.ORPHAN:
            return self._world.orphan(ref.name) is None
        return ref.kind in RESOURCES and ref not in self._world.objects

    def _plan(self, ref: Ref, state: ObjectState, now: Nanoseconds) -> Plan | Note:
        """One object whose plan fails mustn't stop those of all others: a mistake of ours, or an
        object that nobody thought of, is logged, counted, and tried again after a while.
        """
        try:
            return self._planners[ref.kind](self._world, ref, now, state.troubles)
        except Exception as error:
            self.counters.refusals += 1
            what = f"planning it failed: {type(error).__name__}: {error}"
            return Note(state.reconcile, ref, "failed", what)

    def _wake_later(self, ref: Ref, state: ObjectState, plan: Plan, now: Nanoseconds) -> None:
        resync = now + self._world.surroundings.resync_ms * MS
        retry = state.troubles.next_after(now)
        # A time that has passed already is no reason to plan again: what the plan waited for is
        # among the troubles, or comes as a change.
        times = (plan.wake_at, state.deferred_until, retry, resync)
        self._wakeups.set(ref, min(at for at in times if at is not None and at > now))

    def _start(self, ref: Ref, state: ObjectState, action: Action, now: Nanoseconds) -> Do:
        number = self._in_flight.start(ref, action)
        state.actions[number] = action
        self.counters.actions += 1
        if isinstance(action, ApplyStatus):
            state.written_at = now
        return Do(number, state.reconcile, ref, action)

    def _drop(self, ref: Ref) -> None:
        del self._states[ref]
        self._wakeups.forget(ref)

    def _version_of(self, action: Action) -> int:
        known = self._world.objects.get(action.ref) if isinstance(action, ObjectAction) else None
        return 0 if known is None else known.version
