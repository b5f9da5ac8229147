"""A simulated operator's process: the real machine and the real candidate, driven as their shell
drives them, which may be stopped, killed and started anew at any moment.
"""

from collections.abc import Callable
from functools import partial
from typing import cast, get_args

from anabranch.core.machine import CancelTimer, SetTimer, TimerFired
from anabranch.core.types import MS, Nanoseconds
from anabranch_operator.kube.client import Client
from anabranch_operator.kube.refusals import ApiError, Conflict
from anabranch_operator.kube.writes import Writer
from anabranch_operator.plan.election import candidate
from anabranch_operator.plan.election.candidate import Candidate, Terms
from anabranch_operator.plan.engine.actions import Action, Ask, JoinShard, LeaveShard, Write
from anabranch_operator.plan.engine.events import (
    Answered,
    Deposed,
    Do,
    Effect,
    Elected,
    Event,
    Evict,
    Evicting,
    Look,
    Measured,
    Note,
    Outcome,
    Visit,
)
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.operator import Operator
from anabranch_operator.plan.engine.polls import targets
from anabranch_operator.plan.engine.reconciler import Planner
from anabranch_operator.plan.engine.world import Surroundings
from anabranch_sim.kubernetes.belfast.invariants import BelfastInvariants
from anabranch_sim.kubernetes.belfast.processes import BelfastProcesses
from anabranch_sim.kubernetes.cluster.apiserver import ApiServer
from anabranch_sim.kubernetes.cluster.client import SimClient
from anabranch_sim.kubernetes.cluster.plane import Plane
from anabranch_sim.kubernetes.cluster.waiting import Promise, drive
from anabranch_sim.kubernetes.cluster.watches import KINDS, History, SimWatches, WatchFaults
from anabranch_sim.kubernetes.invariants import Invariants
from anabranch_sim.kubernetes.sandbox import BEGIN
from anabranch_sim.world.events import SECOND, World

VITALS: Nanoseconds = 60 * SECOND

_WRITES: tuple[type[Write], ...] = get_args(Write)


class Around:
    """What all operators share, and what they are made of."""

    def __init__(
        self,
        world: World,
        api: ApiServer,
        history: History,
        plane: Plane,
        invariants: Invariants,
        surroundings: Surroundings,
    ) -> None:
        self.world = world
        self.api = api
        self.history = history
        self.plane = plane
        self.invariants = invariants
        self.surroundings = surroundings
        self.planners: dict[str, Planner] = {}
        self.kinds: tuple[str, ...] = KINDS
        self.processes: BelfastProcesses | None = None
        self.belfast_invariants: BelfastInvariants | None = None
        """If there is a Belfast log."""
        self.terms = Terms()
        self.sweep_s = 300
        self.watch_faults = WatchFaults()


class SimOperator:
    """One place where an operator runs, life after life."""

    def __init__(self, around: Around, number: int) -> None:
        self.around = around
        self.world = around.world
        self.number = number
        self.life = 0
        self.alive = False
        self.machine: Operator
        self.watches: SimWatches
        self.allowed: dict[str, None] = {}
        """Pods that the machine lets go."""
        self._paused = False
        self._missed: list[Callable[[], None]] = []
        self._timers: dict[str, int] = {}
        self._settings = 0
        self._until: Nanoseconds = 0
        self._wake_at: Nanoseconds = 0
        self._guard = ("", 0)
        self._leaving = False
        self._asking = self._resigns = self._retired = False

    @property
    def name(self) -> str:
        return f"operator-{self.number}.{self.life}"

    @property
    def standing(self) -> bool:
        """By its own clock: may what was decided in its epoch still be done?"""
        return self.alive and self.world.now < self._until

    @property
    def leads(self) -> bool:
        return self.alive and self.machine.leads

    def now(self) -> Nanoseconds:
        return BEGIN + self.world.now

    def start(self) -> None:
        if self.alive:
            return
        around = self.around
        self.life += 1
        self.alive, self._paused, self._leaving = True, False, False
        self._asking = self._resigns = self._retired = False
        self._until, self._guard = 0, ("", 0)
        self._timers.clear()
        self.allowed.clear()
        self.machine = Operator(around.surroundings, around.planners, around.kinds)
        self._candidate = Candidate(self.name, around.terms)
        life = self.life
        client = SimClient(around.api, lambda: self._stands(life), self._sent)
        self._writer = Writer(cast("Client", client), self.name)
        self.watches = SimWatches(
            around.api,
            around.history,
            self.give,
            self._turn(),
            self._ended,
            around.sweep_s,
            around.kinds,
        )
        self.world.note(self.name, "lives")
        self.watches.open(around.watch_faults)
        self._elect(self._candidate.start())
        self.world.after(VITALS, partial(self.act, life, self._measure))

    def die(self, down: Nanoseconds) -> None:
        """At once; whatever it had begun is answered to nobody."""
        if not self.alive:
            return
        self.world.note(self.name, "dies")
        self.alive, self._until = False, 0
        self._missed.clear()
        self.world.after(down, self.start)

    def leave(self, down: Nanoseconds) -> None:
        """It is told to end: it lets go of the Lease, once what is on its way was answered."""
        if not self.alive or self._paused or self._leaving:
            return
        self._leaving = True
        self.give(Deposed())
        self.world.after(SECOND, partial(self.act, self.life, self._resign))
        self.world.after(5 * SECOND, partial(self._end, self.life, down))

    def pause(self, duration: Nanoseconds) -> None:
        """Everything waits; the clock runs on, and the process doesn't see it."""
        if self.alive and not self._paused:
            self.world.note(self.name, "pauses for", duration // MS)
            self._paused = True
            self.world.after(duration, partial(self._resume, self.life))

    def act(self, life: int, action: Callable[[], None]) -> None:
        if life != self.life or not self.alive:
            return
        if self._paused:
            self._missed.append(action)
        else:
            action()

    def give(self, event: Event) -> None:
        if not self.alive:
            return
        if self.world.tracing:
            self.world.note(self.name, "<", _short(event))
        for effect in self.machine.step(self.now(), event):
            if self.world.tracing:
                self.world.note(self.name, ">", _short(effect))
            self._do(effect)

    def evict(self, pod: Ref, uid: str) -> bool | None:
        """Somebody asks whether a pod may go; None: nobody answers."""
        if not self.alive or self._paused:
            return None
        known = self.machine.world.objects.get(pod)
        if known is None or known.uid != uid or known.deleting:
            return True
        if not self.machine.leads:
            return False
        self.allowed.pop(uid, None)
        self.give(Evicting(uid))
        return uid in self.allowed

    def _resume(self, life: int) -> None:
        if life != self.life or not self.alive:
            return
        self._paused = False
        missed, self._missed = self._missed, []
        for action in missed:
            self.world.at(self.world.now, partial(self.act, life, action))

    def _end(self, life: int, down: Nanoseconds) -> None:
        if life == self.life:
            self.die(down)

    def _ended(self, why: str) -> None:
        """It can't go on, and is started anew."""
        self.world.note(self.name, why)
        self.die(SECOND)

    def _turn(self) -> Callable[[Callable[[], None]], None]:
        return partial(self.act, self.life)

    def _stands(self, life: int) -> bool:
        return life == self.life and self.standing

    def _sent(self, verb: str, ref: Ref) -> None:
        self.around.invariants.sent(self.name, verb, ref)

    def _do(self, effect: Effect) -> None:
        belfast_invariants, processes = (
            self.around.belfast_invariants,
            self.around.processes,
        )
        match effect:
            case Do(number, _, _, action):
                self.around.invariants.decided(self.name, self.machine, action)
                if belfast_invariants is not None:
                    belfast_invariants.decided(self.name, self.machine, action)
                self._perform(number, action)
            case Look():
                self.around.plane.look(partial(self.act, self.life), self.give)
            case Visit() if processes is not None:
                processes.visit(effect, self._turn(), self.give)
            case Evict(uid):
                self.allowed[uid] = None
                if belfast_invariants is not None:
                    belfast_invariants.allowed(self.name, self.machine, uid)
            case SetTimer(key, at):
                self._set_timer(key, at)
            case CancelTimer(key):
                self._timers.pop(key, None)
            case Note() | Visit():
                pass

    def _perform(self, number: int, action: Action) -> None:
        told: Callable[[Outcome], None] = partial(self._answered, number, action)
        processes = self.around.processes
        if isinstance(action, _WRITES):
            drive(self._writer.perform(action), self._turn(), told)
        elif isinstance(action, JoinShard | LeaveShard):
            assert processes is not None
            processes.move(action, self._turn(), told)
        else:
            ask = cast("Ask", action)
            self.around.plane.ask(ask, self._guard, self._turn(), told)

    def _answered(self, number: int, action: Action, outcome: Outcome) -> None:
        """In an event of its own: a machine is never stepped from within a step."""
        if self.around.belfast_invariants is not None:
            self.around.belfast_invariants.answered(action, outcome)
        if isinstance(outcome, Observed):
            self.watches.on_answer(outcome)
        answered = partial(self.give, Answered(number, outcome))
        self.world.at(self.world.now, partial(self.act, self.life, answered))

    def _set_timer(self, key: str, at: Nanoseconds) -> None:
        self._settings += 1
        self._timers[key] = self._settings
        fire = partial(self._fire, key, self._settings)
        self.world.late(at - BEGIN, partial(self.act, self.life, fire))

    def _fire(self, key: str, setting: int) -> None:
        if self._timers.get(key) == setting:
            del self._timers[key]
            self.give(TimerFired(key))

    def _measure(self) -> None:
        wanted = targets(self.machine.world) if self.machine.leads else ()
        if wanted:
            told = {each.uid: self.around.plane.vitals(each.uid) for each in wanted}
            self.give(Measured({uid: each for uid, each in told.items() if each is not None}))
        self.world.after(VITALS, partial(self.act, self.life, self._measure))

    # The election, by a Lease.

    def _resign(self) -> None:
        """Between two requests, of which there is never more than one."""
        if self._asking:
            self._resigns = True
        else:
            self._elect(self._candidate.step(self.world.now, candidate.Resign()))

    def _stand(self, event: candidate.Event) -> None:
        if not self._retired:
            self._elect(self._candidate.step(self.world.now, event))

    def _heard(self, event: candidate.Event) -> None:
        self._asking = False
        self._stand(event)
        if self._resigns and not self._asking:
            self._resigns = False
            self._resign()

    def _elect(self, effects: tuple[candidate.Effect, ...]) -> None:
        for effect in effects:
            match effect:
                case candidate.Fetch() | candidate.Write():
                    self._request(effect)
                case candidate.Hold(until):
                    self._until = until
                case candidate.Lead(scope, epoch):
                    self._lead(scope, epoch)
                case candidate.StepDown(why):
                    self.world.note(self.name, "steps down:", why)
                    self._until = 0
                    self.give(Deposed())
                case SetTimer(_, at):
                    due = partial(self._due, at)
                    self.world.at(at, partial(self.act, self.life, due))
                    self._wake_at = at
                case candidate.Retire():
                    self._retired = True

    def _lead(self, scope: str, epoch: int) -> None:
        self.world.note(self.name, "leads in", epoch)
        self._guard = (f"k8s/demo/lease/{scope}", epoch)
        self.give(Elected(epoch))

    def _due(self, at: Nanoseconds) -> None:
        if at == self._wake_at and not self._asking:
            self._stand(TimerFired(candidate.TIMER))

    def _request(self, request: candidate.Fetch | candidate.Write) -> None:
        """No longer than it may lead: a leader must know in time that it leads no more."""
        terms, api = self.around.terms, self.around.api
        self._asking = True
        patience = round(2 * terms.retry_s * SECOND)
        if self.standing:
            patience = min(patience, self._until - self.world.now)
        answer: Promise[candidate.Event] = Promise()
        self.world.after(patience, partial(answer.settle, candidate.Missed()))

        async def ask() -> candidate.Event:
            try:
                if isinstance(request, candidate.Fetch):
                    return candidate.Found(await api.ask(api.fetch_lease))
                lease_s = terms.lease_s
                act = partial(api.write_lease, request, lease_s)
                return candidate.Kept(await api.ask(act))
            except Conflict:
                return candidate.Beaten()
            except ApiError:
                return candidate.Missed()

        drive(ask(), lambda go: go(), answer.settle)

        async def wait() -> candidate.Event:
            return await answer

        drive(wait(), self._turn(), self._heard)


def _short(told: Event | Effect) -> str:
    text = str(told)
    return text if len(text) <= 300 else f"{text[:300]}..."
