"""Gives the operator's machine its events, one at a time, and has its effects performed."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import assert_never

from anabranch.core.errors.refused import Refused
from anabranch.core.machine import CancelTimer, SetTimer, TimerFired
from anabranch.core.types import Nanoseconds
from anabranch.shell.runtime.timers import Timers
from anabranch.shell.telemetry.log import Detail, Log
from anabranch_operator.api.conditions import Reason
from anabranch_operator.metrics import Metrics
from anabranch_operator.plan.engine.actions import (
    Action,
    Announce,
    ApplyStatus,
    Describe,
    ObjectAction,
    TailLog,
)
from anabranch_operator.plan.engine.events import (
    Answered,
    Do,
    Effect,
    Event,
    Evict,
    Look,
    Note,
    Outcome,
    Refusal,
    Unseen,
    Viewed,
    Visit,
    Visited,
)
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.operator import Operator

_NODE = "operator"
_GATES = {
    Reason.GATE_SUCCEEDED: "succeeded",
    Reason.GATE_FAILED: "failed",
    Reason.GATE_REPORT_INVALID: "failed",
    Reason.FORK_MOVED: "moved",
}


@dataclass(slots=True)
class _Open:
    """A reconciliation whose actions are on their way."""

    kind: str
    since: float
    left: int = 0
    failed: bool = False


class Driver:
    """What it is given ends in `step`, whoever gives it; a machine that raises ends the process."""

    def __init__(
        self,
        machine: Operator,
        now: Callable[[], Nanoseconds],
        log: Log,
        metrics: Metrics,
        *,
        perform: Callable[[Action], Awaitable[Outcome]],
        look: Callable[[], Awaitable[Viewed | Unseen]],
        visit: Callable[[Visit], Awaitable[Visited]],
        evict: Callable[[str], None],
    ) -> None:
        self.machine = machine
        self.failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self._now = now
        self._log = log
        self._metrics = metrics
        self._perform = perform
        self._look = look
        self._visit = visit
        self._evict = evict
        self._loop = asyncio.get_running_loop()
        self._timers = Timers()
        self._alarm: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: dict[int, _Open] = {}
        self._stopped = False

    def give(self, event: Event) -> None:
        """Never from within a step: whatever performs an effect does it in a turn of its own."""
        if self._stopped:
            return
        stepped = False
        try:
            effects = self.machine.step(self._now(), event)
            stepped = True
        finally:
            if not stepped:  # whatever it raised: nothing it would do now can be trusted
                self._fail(sys.exception())
        for effect in effects:
            self._heed(effect)
        self._set_alarm()

    async def drain(self, patience_s: float) -> bool:
        """Wait until nothing is on its way; False if something still is."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=patience_s)
        return not self._tasks

    def stop(self) -> None:
        self._stopped = True
        if self._alarm is not None:
            self._alarm.cancel()
        for task in self._tasks:
            task.cancel()

    def _heed(self, effect: Effect) -> None:
        match effect:
            case Do():
                self._open_for(effect).left += 1
                self._spawn(self._do(effect))
            case Look():
                self._spawn(self._view())
            case Visit():
                self._spawn(self._ask(effect))
            case Evict(uid):
                self._evict(uid)
            case Note():
                self._note(effect)
            case SetTimer(key, at):
                self._timers.set((_NODE, key), at)
            case CancelTimer(key):
                self._timers.cancel((_NODE, key))
            case _:
                assert_never(effect)

    async def _do(self, do: Do) -> None:
        outcome = await self._perform(do.action)
        if not isinstance(outcome, Refusal | Refused):
            self._log_done(do)
        self._count(do, outcome)
        self.give(Answered(do.number, outcome))

    async def _view(self) -> None:
        self.give(await self._look())

    async def _ask(self, visit: Visit) -> None:
        self.give(await self._visit(visit))

    def _open_for(self, do: Do) -> _Open:
        kept = self._open.get(do.reconcile)
        if kept is None:
            kept = self._open[do.reconcile] = _Open(do.ref.kind, time.monotonic())
        return kept

    def _count(self, do: Do, outcome: Outcome) -> None:
        if isinstance(do.action, Announce) and do.action.reason in _GATES:
            self._metrics.gates.labels(_GATES[Reason(do.action.reason)]).inc()
        kept = self._open[do.reconcile]
        kept.left -= 1
        kept.failed = kept.failed or isinstance(outcome, Refusal)
        if kept.left:
            return
        del self._open[do.reconcile]
        self._metrics.seconds.labels(kept.kind).observe(time.monotonic() - kept.since)
        self._metrics.reconciles.labels(kept.kind, "failed" if kept.failed else "acted").inc()

    def _log_done(self, do: Do) -> None:
        """What changes anything for anybody; what was refused is the machine's to judge."""
        if isinstance(do.action, Announce | Describe | TailLog):
            return
        if isinstance(do.action, ApplyStatus) and do.action.cosmetic:
            return
        about = do.action.ref if isinstance(do.action, ObjectAction) else None
        self._log.info(
            "done",
            step=type(do.action).__name__,
            about=None if about in (None, do.ref) else str(about),
            **self._particulars(do.reconcile, do.ref),
        )

    def _particulars(self, reconcile: int, ref: Ref) -> dict[str, Detail]:
        known = self.machine.world.objects.get(ref)
        return {
            "reconcile": reconcile,
            "kind": ref.kind,
            "object": f"{ref.namespace}/{ref.name}",
            "generation": None if known is None else known.generation,
        }

    def _note(self, note: Note) -> None:
        if note.result == "steady":
            self._metrics.steady.inc()
            self._metrics.reconciles.labels(note.ref.kind, "steady").inc()
            return
        if note.result == "failed":
            self._metrics.reconciles.labels(note.ref.kind, "failed").inc()
        self._log.warning(
            "an action of a reconciliation failed",
            result=note.result,
            step=note.message,
            **self._particulars(note.reconcile, note.ref),
        )

    def _spawn(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            await work

        task = self._loop.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException | None) -> None:
        if error is not None and not self.failed.done():
            self.failed.set_result(error)

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        at = self._timers.next()
        if at is not None and not self._stopped:
            self._alarm = self._loop.call_later(max(0, at - self._now()) / 1e9, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        name = self._timers.due(self._now())
        if name is None:
            self._set_alarm()
        else:
            self.give(TimerFired(name[1]))
