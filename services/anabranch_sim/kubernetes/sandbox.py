"""An operator at work, one thing at a time, in a world without faults: for tests of its plans."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from anabranch.core.errors import Unavailable
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import CancelTimer, SetTimer, TimerFired
from anabranch.core.types import MS, Nanoseconds
from anabranch_operator.plan.engine import actions
from anabranch_operator.plan.engine.actions import Action, Ask
from anabranch_operator.plan.engine.events import (
    Answered,
    Do,
    Effect,
    Elected,
    Event,
    Evict,
    Gone,
    Listed,
    Look,
    Note,
    Outcome,
    Seen,
    Text,
    Unseen,
    Viewed,
    Visit,
    Visited,
)
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.operator import Operator
from anabranch_operator.plan.engine.reconciler import Planner
from anabranch_operator.plan.engine.world import RESOURCES, Surroundings
from anabranch_operator.plan.log.job_templates import GateSettings
from anabranch_sim.kubernetes.belfast.ledger import BelfastLog
from anabranch_sim.kubernetes.cluster.objects import Kube
from anabranch_sim.kubernetes.cluster.service import LogService
from anabranch_sim.kubernetes.log_model import LogModel

BEGIN: Nanoseconds = 1_800_000_000_000 * MS
STEPS_MAX = 100_000


class Sandbox:
    """One operator, its API server, its log services, and a clock that jumps to what is next."""

    def __init__(
        self,
        planners: Mapping[str, Planner],
        surroundings: Surroundings | None = None,
        kube: Kube | None = None,
        log: LogModel | None = None,
    ) -> None:
        self.kube = kube or Kube()
        self.service = LogService()
        self.service_away: str | None = None
        self.log = log or BelfastLog()
        self.now = BEGIN
        self.done: list[Action] = []
        self.notes: list[Note] = []
        self.evicted: list[str] = []
        self.texts: dict[str, str] = {}
        """What pods' logs hold, by the pods' names."""
        self.crash: Callable[[Action], bool] | None = None
        """Does the operator end right before, and so never do, this action?"""
        self._surroundings = surroundings or Surroundings(
            namespace="demo", release="demo", gates=GateSettings(enabled=True, logs=True)
        )
        self._planners = planners
        self._epoch = 0
        self._tick()
        self.restart()

    def restart(self) -> None:
        """Another life, which knows nothing but what it is told."""
        self.operator = Operator(self._surroundings, self._planners, RESOURCES)
        self._timers: dict[str, Nanoseconds] = {}
        self._inbox: deque[Event] = deque()
        self._seen = len(self.kube.changes)
        self._inbox.extend(Seen(each) for each in self.kube.list())
        self._inbox.extend(Listed(kind) for kind in RESOURCES)
        self._epoch += 1
        self._inbox.append(Elected(self._epoch))

    def settle(self) -> None:
        """Until nothing more happens by itself, but for looking and waiting."""
        for _ in range(STEPS_MAX):
            self._watch()
            if not self._inbox:
                return
            self._step(self._inbox.popleft())
        raise AssertionError(f"it never comes to rest: {self.done[-10:]}")

    def wait(self, seconds: float) -> None:
        """Let time pass, and everything that happens in it."""
        until = self.now + int(seconds * 1_000) * MS
        self.settle()
        while self._timers and min(self._timers.values()) <= until:
            at, key = min((at, key) for key, at in self._timers.items())
            del self._timers[key]
            self.now = max(self.now, at)
            self._tick()
            self._step(TimerFired(key))
            self.settle()
        self.now = until
        self._tick()

    def tell(self, event: Event) -> None:
        self.hear(event)
        self.settle()

    def hear(self, event: Event) -> None:
        """As soon as what came before is done with."""
        self._inbox.append(event)

    def _tick(self) -> None:
        self.kube.now = self.service.now = self.now // MS

    def _watch(self) -> None:
        for change in self.kube.changes[self._seen :]:
            ref, uid = change.object.ref, change.object.uid
            self._inbox.append(Gone(ref, uid) if change.gone else Seen(change.object))
        self._seen = len(self.kube.changes)

    def _step(self, event: Event) -> None:
        for effect in self.operator.step(self.now, event):
            self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Do(number, _, _, action):
                if self.crash is not None and self.crash(action):
                    self.restart()
                    return
                self.done.append(action)
                self._inbox.append(Answered(number, self._outcome(action)))
            case Look():
                away = self.service_away
                seen = Viewed(self.service.owned(), self.service.brokers())
                self._inbox.append(seen if away is None else Unseen(away))
            case Visit(ref, uid):
                self._inbox.append(self._visited(ref, uid))
            case SetTimer(key, at):
                self._timers[key] = at
            case CancelTimer(key):
                self._timers.pop(key, None)
            case Evict(uid):
                self.evicted.append(uid)
            case Note():
                self.notes.append(effect)

    def _outcome(self, action: Action) -> Outcome:
        match action:
            case actions.Apply(ref=ref, manifest=manifest):
                return self.kube.apply(ref, manifest)
            case actions.Create(ref=ref, manifest=manifest):
                return self.kube.create(ref, manifest)
            case actions.ApplyStatus(ref=ref, uid=uid, status=status):
                return self.kube.apply_status(ref, uid, status)
            case actions.Mark(ref=ref, uid=uid, made_by=made_by):
                return self.kube.mark(ref, uid, made_by)
            case actions.Confirm(ref=ref, uid=uid):
                found = self.kube.get(ref)
                return found if found is not None and found.uid == uid else None
            case actions.Delete(ref=ref, uid=uid):
                return self.kube.delete(ref, uid)
            case actions.Announce():
                return None
            case actions.TailLog(ref=ref):
                return Text(self.texts.get(ref.name, ""))
            case actions.JoinShard(shard=shard):
                return self.log.join(shard)
            case actions.LeaveShard(shard=shard):
                return self.log.leave(shard)
            case actions.Make():
                raise AssertionError(action)
            case _:
                return self._asked(action)

    def _visited(self, ref: Ref, uid: str) -> Visited:
        told = self.log.report()
        if isinstance(told, Refused):
            return Visited(ref, uid, why=told.message)
        return Visited(ref, uid, told)

    def _asked(self, ask: Ask) -> Any:
        if self.service_away is not None:
            return Refused.of(Unavailable("the log service", self.service_away))
        return self.service.ask(ask, self._epoch)
