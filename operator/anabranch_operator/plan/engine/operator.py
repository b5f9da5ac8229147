"""The operator as a machine: it sees, plans, and has what it planned done (kopf drives it).

Every object has a desk. A desk that was woken is planned: a pure function of the world tells what
to do next, actions that don't depend on each other. They are done, their outcomes become part of
the world, and the desk is planned again, until there is nothing to do: that is converged, and
costs no request. What fails waits, with an ever longer pause, and holds up nothing else.

Nothing is remembered but what may be forgotten: after a restart the same plans come of the same
objects.
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import assert_never

from msgspec import Struct

from anabranch_operator.api import names
from anabranch_operator.api.anabranch_names import (
    MS,
    Description,
    Nanoseconds,
    Refused,
    SetTimer,
    TimerFired,
)
from anabranch_operator.plan.belfast.status_polls import Visits
from anabranch_operator.plan.certificates.facts import Holdings
from anabranch_operator.plan.engine.actions import (
    Action,
    ApplyStatus,
    Delete,
    DeleteRoot,
    Mark,
    Plan,
    Squash,
)
from anabranch_operator.plan.engine.assumptions import AWAY_CODES, is_fact, learn
from anabranch_operator.plan.engine.dependencies import installation, interested, ref_of
from anabranch_operator.plan.engine.events import (
    NOT_FOUND,
    Answered,
    Deposed,
    Do,
    Effect,
    Elected,
    Event,
    Evict,
    Evicting,
    Gone,
    Listed,
    Look,
    Measured,
    Note,
    Outcome,
    Refusal,
    Seen,
    Unseen,
    Viewed,
    Visited,
)
from anabranch_operator.plan.engine.object_state import Desk
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.retries import BACKOFF_MS_MAX, Troubles, key_of
from anabranch_operator.plan.engine.world import RESOURCES, Surroundings, World, moved
from anabranch_operator.plan.metadata.evictions import ask, let_go

Planner = Callable[[World, Ref, Nanoseconds, Troubles], Plan]

FIRST_EPOCH = 1
"""Of a Lease that was made by who holds it."""
WAKE, LOOK, VISIT = "wake", "look", "visit"


class Counters(Struct):
    """What the operator counts, for its metrics."""

    plans: int = 0
    steady: int = 0
    actions: int = 0
    refusals: int = 0
    queued: int = 0
    oldest_queued_at: Nanoseconds | None = None


class Operator:
    """Sees, plans, acts; while another leads it only sees."""

    def __init__(
        self,
        surroundings: Surroundings,
        planners: Mapping[str, Planner],
        kinds: Iterable[str],
        whole: Iterable[str] = (),
    ) -> None:
        """`kinds` are listed before anything is planned; `whole` is planned for the whole
        installation.
        """
        self.world = World(surroundings)
        self.counters = Counters()
        self.epoch: int | None = None
        self._planners = planners
        self._unlisted = dict.fromkeys(kinds)
        self._whole = tuple(whole)
        self._desks: dict[Ref, Desk] = {}
        self._numbers = 0
        self._reconciles = 0
        self._on_their_way: dict[int, Ref] = {}
        self._ready: deque[tuple[Ref, Nanoseconds]] = deque()
        self._wakes: list[tuple[Nanoseconds, Ref]] = []
        self._wake_set: Nanoseconds | None = None
        self._looking = False
        self._visits = Visits(self.world)
        self._cosmetic_at: Nanoseconds = 0
        self._effects: list[Effect] = []

    @property
    def leads(self) -> bool:
        return self.epoch is not None

    @property
    def synced(self) -> bool:
        """Has every kind been listed?"""
        return not self._unlisted

    def step(self, now: Nanoseconds, event: Event) -> tuple[Effect, ...]:
        match event:
            case Seen(object):
                self._see(object, now)
            case Gone(ref, uid):
                self._lose(ref, uid, now)
            case Listed(kind):
                self._unlisted.pop(kind, None)
                self._begin(now)
            case Elected(epoch):
                self._elected(epoch, now)
            case Deposed():
                self._deposed()
            case Viewed():
                self._view(event, now)
            case Unseen(why):
                self._unseen(why, now)
            case Visited():
                self._wake(self._visits.take(event), now)
            case Measured(vitals):
                before, self.world.vitals = self.world.etcd_full, vitals
                if self.world.etcd_full != before:
                    self._wake_everybody(now)
                self._wake_all_of(now, names.POOL)
                self._wake_all_of(now, names.SHARDS)
                self._wake_whole(now)
            case Evicting(uid):
                self._evicting(uid, now)
            case Answered(number, outcome):
                self._answered(number, outcome, now)
            case TimerFired(key):
                self._fired(key, now)
            case _:
                assert_never(event)
        self._pump(now)
        self._let_go(now)
        self._set_wake()
        effects, self._effects = tuple(self._effects), []
        return effects

    def _see(self, object: Observed, now: Nanoseconds) -> None:
        if self.world.observe(object):
            self._wake(interested(self.world, object), now)

    def _lose(self, ref: Ref, uid: str, now: Nanoseconds) -> None:
        known = self.world.objects.get(ref)
        wake = list(interested(self.world, known)) if known is not None else []
        if self.world.lose(ref, uid) is None:
            return
        if ref.kind in RESOURCES and not self._busy(ref):
            self._desks.pop(ref, None)
        self._wake(wake, now)
        orphan = self.world.orphan(names.owner(ref.namespace, ref.kind, ref.name, uid))
        if orphan is not None:
            self._wake([orphan], now)

    def _busy(self, ref: Ref) -> bool:
        desk = self._desks.get(ref)
        return desk is not None and bool(desk.actions)

    def _elected(self, epoch: int, now: Nanoseconds) -> None:
        self.epoch = epoch
        self._cosmetic_at = now
        self.world.certificates = None  # another may have changed them
        self.world.newcomer = epoch == FIRST_EPOCH
        self._visits.forget()
        self._desks.clear()
        self._on_their_way.clear()
        self.world.deleting.clear()
        self._begin(now)

    def _deposed(self) -> None:
        """Whatever is on its way is somebody else's now; its answers come to nobody."""
        self.epoch = None
        self._desks.clear()
        self._on_their_way.clear()
        self.world.deleting.clear()
        self._ready.clear()
        self._wakes.clear()
        self._visits.forget()
        self._looking = False

    def _begin(self, now: Nanoseconds) -> None:
        """Look at the service before logs are planned: else each would be asked for."""
        if self.leads and self.synced:
            self.world.service.looked = False
            self._wake_whole(now)
            self._look()
            self._visit(now)

    def _look(self) -> None:
        if not self._looking:
            self._looking = True
            self.world.service.looking()
            self._effects.append(Look())

    def _visit(self, now: Nanoseconds) -> None:
        self._effects += self._visits.due()
        self._effects.append(SetTimer(VISIT, now + self.world.surroundings.look_ms * MS))

    def _view(self, event: Viewed, now: Nanoseconds) -> None:
        service = self.world.service
        first, away = not service.looked, service.trouble is not None
        changed, brokers = service.view(event.logs, event.brokers)
        self._looked(now)
        if first or away:
            self._wake_everybody(now)
            return
        for id, before in changed.items():
            self._changed(before, service.logs.get(id), now)
        if brokers:
            self._wake_all_of(now, names.POOL)
        self._wake(self.world.orphans(), now)

    def _changed(self, before: Description, after: Description | None, now: Nanoseconds) -> None:
        """A thousand forks of a log move with each of its appends: those whose numbers wait to be
        shown aren't planned for others.
        """
        only_moved = after is not None and moved(before, after)
        for log in filter(None, (before, after)):
            ref = ref_of(log.owner)
            if ref is None:
                continue
            desk = self._desks.get(ref)
            if only_moved and ref.kind == names.FORK and desk is not None and desk.waits(now):
                continue
            self._wake([ref], now)

    def _unseen(self, why: str, now: Nanoseconds) -> None:
        service = self.world.service
        news = service.trouble is None or not service.looked
        service.trouble, service.looked = why, True
        self._looked(now)
        if news:
            self._wake_everybody(now)

    def _looked(self, now: Nanoseconds) -> None:
        self._looking = False
        if self.leads:
            self._effects.append(SetTimer(LOOK, now + self.world.surroundings.look_ms * MS))

    def _evicting(self, uid: str, now: Nanoseconds) -> None:
        if not self.synced:
            return
        pod = ask(self.world, uid, now)
        if pod is None:
            self._effects.append(Evict(uid))
        else:
            self._wake(interested(self.world, pod), now)

    def _let_go(self, now: Nanoseconds) -> None:
        """Who leads knows what it has just planned."""
        if self.leads and self.synced and self.world.service.looked:
            self._effects += [Evict(uid) for uid in let_go(self.world, now)]

    def _fired(self, key: str, now: Nanoseconds) -> None:
        match key:
            case "look":
                if self.leads and self.synced:
                    self._look()
            case "visit":
                if self.leads and self.synced:
                    self._visit(now)
            case _:
                self._wake_set = None
                while self._wakes and self._wakes[0][0] <= now:
                    at, ref = heapq.heappop(self._wakes)
                    desk = self._desks.get(ref)
                    if desk is not None and desk.wake_at == at:
                        desk.wake_at = None
                        self._wake([ref], now)

    def _wake_everybody(self, now: Nanoseconds) -> None:
        for kind in RESOURCES:
            self._wake_all_of(now, kind)
        self._wake(list(self.world.orphans()), now)
        self._wake_whole(now)

    def _wake_whole(self, now: Nanoseconds) -> None:
        self._wake([installation(self.world, kind) for kind in self._whole], now)

    def _wake_all_of(self, now: Nanoseconds, kind: str) -> None:
        self._wake([each.ref for each in self.world.of_kind(kind)], now)

    def _wake(self, refs: Iterable[Ref], now: Nanoseconds) -> None:
        """Have these planned, as soon as there is room; while another leads, nothing is."""
        if not (self.leads and self.synced):
            return
        for ref in refs:
            if ref.kind not in self._planners:
                continue
            # The whole installation's needs, such as certificates, come before the log service.
            if ref.kind in RESOURCES and not self.world.service.looked:
                continue
            if ref.kind in RESOURCES and ref not in self.world.objects:
                continue
            desk = self._desks.setdefault(ref, Desk())
            if not desk.actions and not desk.queued:  # what is on its way wakes it in the end
                desk.queued = True
                self._ready.append((ref, now))

    def _pump(self, now: Nanoseconds) -> None:
        room = self.world.surroundings.in_flight_max
        while self._ready and len(self._on_their_way) < room:
            ref, _ = self._ready.popleft()
            desk = self._desks.get(ref)
            if desk is not None:
                desk.queued = False
                self._plan(ref, desk, now)
        self.counters.queued = len(self._ready)
        self.counters.oldest_queued_at = self._ready[0][1] if self._ready else None

    def _plan(self, ref: Ref, desk: Desk, now: Nanoseconds) -> None:
        object = self.world.objects.get(ref)
        is_over = object is None and ref.kind in RESOURCES
        if is_over or (ref.kind == names.ORPHAN and self.world.orphan(ref.name) is None):
            del self._desks[ref]
            return
        if object is not None and object.generation != desk.generation:
            desk.generation = object.generation
            desk.troubles.clear()
        self._reconciles += 1
        desk.reconcile = self._reconciles
        self.counters.plans += 1
        plan = self._planned(ref, desk, now)
        desk.troubles.prune(plan.actions, now)
        due = desk.troubles.due(plan.actions, now)
        due, desk.put_off = self._without_cosmetic(desk, due, now)
        due = desk.unrepeated(due, self._version_of, now)
        if not due and not desk.troubles:
            self.counters.steady += 1
            self._effects.append(Note(desk.reconcile, ref, "steady"))
        resync = now + self.world.surroundings.resync_ms * MS
        retry = desk.troubles.next_after(now)
        # What a plan has waited for and can't have yet is in the troubles, or comes as a change.
        times = (plan.wake_at, desk.put_off, retry, resync)
        self._wake_at(ref, desk, min(at for at in times if at is not None and at > now))
        for action in due:
            self._numbers += 1
            self.counters.actions += 1
            desk.actions[self._numbers] = action
            self._on_their_way[self._numbers] = ref
            if isinstance(action, ApplyStatus):
                desk.written_at = now
            if isinstance(action, Delete):
                self.world.deleting[action.uid] = None
            self._effects.append(Do(self._numbers, desk.reconcile, ref, action))

    def _planned(self, ref: Ref, desk: Desk, now: Nanoseconds) -> Plan:
        """One object whose plan fails mustn't end those of all others: a mistake of ours, or an
        object that nobody thought of, is logged, counted, and tried again in a while.
        """
        try:
            return self._planners[ref.kind](self.world, ref, now, desk.troubles)
        except Exception as error:
            self.counters.refusals += 1
            what = f"it can't be planned: {type(error).__name__}: {error}"
            self._effects.append(Note(desk.reconcile, ref, "failed", what))
            return Plan(wake_at=now + BACKOFF_MS_MAX * MS)

    def _without_cosmetic(
        self, desk: Desk, due: tuple[Action, ...], now: Nanoseconds
    ) -> tuple[tuple[Action, ...], Nanoseconds | None]:
        """Numbers that move all the time are shown now and then."""
        if not any(isinstance(action, ApplyStatus) and action.cosmetic for action in due):
            return due, None
        at = desk.written_at + self.world.surroundings.cosmetic_ms * MS
        if at <= now:
            at = self._turn(desk, now)
        if at <= now:
            desk.turn_at = None
            return due, None
        rest = (each for each in due if not (isinstance(each, ApplyStatus) and each.cosmetic))
        return tuple(rest), at

    def _turn(self, desk: Desk, now: Nanoseconds) -> Nanoseconds:
        """Each has a place of its own: if all came for the next one, all but one would be planned
        in vain, again and again.
        """
        if desk.turn_at is None:
            desk.turn_at = max(self._cosmetic_at, now)
            self._cosmetic_at = desk.turn_at + 1_000 * MS // self.world.surroundings.cosmetic_per_s
        return desk.turn_at

    def _version_of(self, action: Action) -> int:
        known = self.world.objects.get(getattr(action, "ref", Ref("", "", "")))
        return 0 if known is None else known.version

    def _wake_at(self, ref: Ref, desk: Desk, at: Nanoseconds) -> None:
        if desk.wake_at != at:
            desk.wake_at = at
            heapq.heappush(self._wakes, (at, ref))

    def _set_wake(self) -> None:
        if self._wakes and self._wakes[0][0] != self._wake_set:
            self._wake_set = self._wakes[0][0]
            self._effects.append(SetTimer(WAKE, self._wake_set))

    def _answered(self, number: int, outcome: Outcome, now: Nanoseconds) -> None:
        ref = self._on_their_way.pop(number, None)
        if ref is None:
            if isinstance(outcome, Observed):
                self.world.observe(outcome)
            return
        desk = self._desks[ref]
        action = desk.actions.pop(number)
        if isinstance(action, Delete):
            self.world.deleting.pop(action.uid, None)
        if isinstance(outcome, Refused) and not is_fact(action, outcome):
            outcome = Refusal(outcome.code, outcome.message)
        if isinstance(outcome, Refusal) and not self._is_gone(action, outcome, now):
            self._failed(ref, desk, action, outcome, now)
        else:
            desk.troubles.settle(action)
            self._learn(action, outcome, now)
            desk.done[key_of(action)] = (action, self._version_of(action))
        if ref.kind == names.ORPHAN and isinstance(action, Squash | DeleteRoot):
            self.world.service.forget(ref.name, action.log)
        if not desk.actions:
            self._wake([ref], now)

    def _failed(
        self, ref: Ref, desk: Desk, action: Action, refusal: Refusal, now: Nanoseconds
    ) -> None:
        desk.troubles.note(action, refusal, now)
        self.counters.refusals += 1
        what = f"{type(action).__name__}: {refusal.message}"
        self._effects.append(Note(desk.reconcile, ref, "refused", what))
        if refusal.code in AWAY_CODES:
            self._look()

    def _is_gone(self, action: Action, refusal: Refusal, now: Nanoseconds) -> bool:
        """What isn't there needs neither be deleted nor be described."""
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
            case _:
                learn(self.world, action, outcome)
        if isinstance(outcome, Holdings):
            self._wake_all_of(now, names.POOL)
