"""The operator as a machine: events in, effects out. It sees, plans, and has its plans performed.

While another operator leads, this one only keeps its view of the world up to date.
"""

from collections.abc import Iterable, Mapping
from typing import assert_never

from anabranch_operator.api import names
from anabranch_operator.api.anabranch_names import MS, Nanoseconds, Refused, SetTimer, TimerFired
from anabranch_operator.plan.certificates.facts import Holdings
from anabranch_operator.plan.election.leadership import FIRST_EPOCH, Leadership
from anabranch_operator.plan.engine.actions import (
    Action,
    ApplyStatus,
    Delete,
    DeleteRoot,
    Mark,
    Squash,
)
from anabranch_operator.plan.engine.assumptions import AWAY_CODES, is_fact, learn
from anabranch_operator.plan.engine.dependencies import (
    everybody,
    installations,
    interested,
    of_kinds,
)
from anabranch_operator.plan.engine.events import (
    NOT_FOUND,
    Answered,
    Deposed,
    Effect,
    Elected,
    Event,
    Evict,
    Evicting,
    Gone,
    Listed,
    Measured,
    Outcome,
    Refusal,
    Seen,
    Unseen,
    Viewed,
    Visited,
    Vitals,
)
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.plan_queue import WAKE
from anabranch_operator.plan.engine.polls import LOOK, ServicePoll
from anabranch_operator.plan.engine.reconciler import Counters, Planner, Reconciler
from anabranch_operator.plan.engine.world import Surroundings, World
from anabranch_operator.plan.groups.status_polls import Visits
from anabranch_operator.plan.metadata.evictions import Evictions

VISIT = "visit"


class Operator:
    """Hands each event to the part that it concerns, and plans whatever that part wakes."""

    def __init__(
        self, surroundings: Surroundings, planners: Mapping[str, Planner], kinds: Iterable[str]
    ) -> None:
        """`kinds` are listed before anything is planned."""
        self.world = World(surroundings)
        self._leadership = Leadership(kinds)
        self._reconciler = Reconciler(self.world, planners)
        self._poll = ServicePoll(self.world)
        self._visits = Visits(self.world)
        self._evictions = Evictions(self.world)
        self._effects: list[Effect] = []

    @property
    def counters(self) -> Counters:
        return self._reconciler.counters

    @property
    def epoch(self) -> int | None:
        return self._leadership.epoch

    @property
    def leads(self) -> bool:
        return self._leadership.leads

    @property
    def synced(self) -> bool:
        """Has every kind been listed?"""
        return self._leadership.synced

    def step(self, now: Nanoseconds, event: Event) -> tuple[Effect, ...]:
        self._handle(event, now)
        self._effects += self._reconciler.run(now)
        if self._leadership.acts and self.world.service.looked:
            self._effects += [Evict(uid) for uid in self._evictions.grant(now)]
        effects, self._effects = tuple(self._effects), []
        return effects

    def _handle(self, event: Event, now: Nanoseconds) -> None:
        match event:
            case Seen(object):
                self._see(object, now)
            case Gone(ref, uid):
                self._lose(ref, uid, now)
            case Listed(kind):
                self._leadership.list(kind)
                self._begin(now)
            case Elected(epoch):
                self._elected(epoch, now)
            case Deposed():
                self._deposed()
            case Viewed():
                self._viewed(event, now)
            case Unseen(why):
                self._wake(self._poll.miss(why), now)
                self._finish_look(now)
            case Visited():
                self._wake(self._visits.take(event), now)
            case Measured(vitals):
                self._measured(vitals, now)
            case Evicting(uid):
                self._evicting(uid, now)
            case Answered(number, outcome):
                self._answered(number, outcome, now)
            case TimerFired(key):
                self._fired(key, now)
            case _:
                assert_never(event)

    def _wake(self, refs: Iterable[Ref], now: Nanoseconds) -> None:
        """Nothing is planned, and `refs` isn't even computed, while this operator doesn't act."""
        if self._leadership.acts:
            self._reconciler.wake(refs, now)

    def _see(self, object: Observed, now: Nanoseconds) -> None:
        if self._observe(object, now):
            self._wake(interested(self.world, object), now)

    def _observe(self, object: Observed, now: Nanoseconds) -> bool:
        """False if something newer is known."""
        news = self.world.observe(object)
        if news and object.ref.kind == "Job" and any(map(object.condition, ("Complete", "Failed"))):
            self.world.ended_at.setdefault(object.uid, now)
        return news

    def _lose(self, ref: Ref, uid: str, now: Nanoseconds) -> None:
        known = self.world.objects.get(ref)
        wake = list(interested(self.world, known)) if known is not None else []
        if self.world.lose(ref, uid) is None:
            return
        self._reconciler.forget(ref)
        self._wake(wake, now)
        orphan = self.world.orphan(names.owner(ref.namespace, ref.kind, ref.name, uid))
        if orphan is not None:
            self._wake([orphan], now)

    def _elected(self, epoch: int, now: Nanoseconds) -> None:
        self._leadership.elect(epoch)
        self.world.certificates = None  # another leader may have changed them
        self.world.newcomer = epoch == FIRST_EPOCH
        self._visits.forget()
        self._reconciler.restart(now)
        self._begin(now)

    def _deposed(self) -> None:
        """Actions in flight are another leader's concern now: their answers are ignored."""
        self._leadership.depose()
        self._reconciler.stop()
        self._visits.forget()
        self._poll.cancel()

    def _begin(self, now: Nanoseconds) -> None:
        """Look at the log service before logs are planned: else each would be asked for."""
        if self._leadership.acts:
            self.world.service.looked = False
            self._wake(installations(self.world), now)
            self._effects += self._poll.start()
            self._visit(now)

    def _visit(self, now: Nanoseconds) -> None:
        self._effects += self._visits.due()
        self._effects.append(SetTimer(VISIT, now + self.world.surroundings.look_ms * MS))

    def _viewed(self, event: Viewed, now: Nanoseconds) -> None:
        changed = self._poll.view(event, lambda ref: self._reconciler.defers(ref, now))
        self._wake(changed, now)
        self._finish_look(now)

    def _finish_look(self, now: Nanoseconds) -> None:
        next_look = self._poll.finish(now)
        if self.leads:
            self._effects.append(next_look)

    def _measured(self, vitals: dict[str, Vitals], now: Nanoseconds) -> None:
        before, self.world.vitals = self.world.etcd_full, vitals
        if self.world.etcd_full != before:
            self._wake(everybody(self.world), now)
        self._wake(of_kinds(self.world, names.POOL, names.SHARDS), now)
        self._wake(installations(self.world), now)

    def _evicting(self, uid: str, now: Nanoseconds) -> None:
        if not self.synced:
            return
        pod = self._evictions.ask(uid, now)
        if pod is None:
            self._effects.append(Evict(uid))
        else:
            self._wake(interested(self.world, pod), now)

    def _fired(self, key: str, now: Nanoseconds) -> None:
        assert key in {WAKE, LOOK, VISIT}, key
        if key == WAKE:
            self._reconciler.wake_due(now)
        elif self._leadership.acts and key == LOOK:
            self._effects += self._poll.start()
        elif self._leadership.acts:
            self._visit(now)

    def _answered(self, number: int, outcome: Outcome, now: Nanoseconds) -> None:
        flight = self._reconciler.finish(number)
        if flight is None:
            if isinstance(outcome, Observed):
                self._observe(outcome, now)
            return
        ref, action = flight
        if isinstance(outcome, Refused) and not is_fact(action, outcome):
            outcome = Refusal(outcome.code, outcome.message)
        if isinstance(outcome, Refusal) and not self._is_gone(action, outcome, now):
            self._effects.append(self._reconciler.fail(flight, outcome, now))
            if outcome.code in AWAY_CODES:
                self._effects += self._poll.start()
        else:
            self._learn(action, outcome, now)
            self._reconciler.succeed(flight)
        if ref.kind == names.ORPHAN and isinstance(action, Squash | DeleteRoot):
            self.world.service.forget(ref.name, action.log)
        self._wake([ref], now)

    def _is_gone(self, action: Action, refusal: Refusal, now: Nanoseconds) -> bool:
        """An object that doesn't exist needs neither be deleted nor get a status."""
        if refusal.code != NOT_FOUND or not isinstance(action, Delete | ApplyStatus | Mark):
            return False
        self._lose(action.ref, action.uid, now)
        return True

    def _learn(self, action: Action, outcome: Outcome, now: Nanoseconds) -> None:
        match action, outcome:
            case _, Observed():
                self._see(outcome, now)
            case Delete(), None:
                self._lose(action.ref, action.uid, now)
            case ((Delete() | ApplyStatus() | Mark()), Refusal()):
                pass  # it is gone, and that was learned already
            case _:
                learn(self.world, action, outcome)
        if isinstance(outcome, Holdings):
            self._wake(of_kinds(self.world, names.POOL), now)
