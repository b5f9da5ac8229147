"""What the watches tell, and whether they tell all: by the Lease, and by lists now and then."""

import asyncio
from collections.abc import Callable, Iterable

from anabranch.core.types import Nanoseconds
from anabranch.shell.telemetry.log import Log
from anabranch_operator.kube.client import Client
from anabranch_operator.kube.comparison import Sweep
from anabranch_operator.kube.lease import boottime
from anabranch_operator.kube.refusals import ApiError, Away, Forbidden, NotFound, TooMany
from anabranch_operator.kube.resources import RESOURCES
from anabranch_operator.kube.selectors import Watched
from anabranch_operator.metrics import Metrics
from anabranch_operator.plan.election.watch_health import Canary, Roll, Sighting
from anabranch_operator.plan.engine.events import Event, Gone, Listed, Seen
from anabranch_operator.plan.engine.objects import Document, Observed, Ref, observe

LEASE = "Lease"
_FIRST_S = 1.0
"""Until everything is listed."""
_BLIND_S = 120.0


class Blind(Exception):
    """A watch doesn't show what is there: the process must end, and be started anew."""


class Sight:
    """Between the watches and the machine."""

    def __init__(
        self,
        client: Client,
        watched: Iterable[Watched],
        give: Callable[[Event], None],
        log: Log,
        metrics: Metrics,
        *,
        canary_s: float,
        learn_s: float,
        sweep_s: float,
    ) -> None:
        """`learn_s`: how often something is learned of the Lease."""
        self.canary = Canary(canary_s, gap_s=max(canary_s / 6, 3 * learn_s))
        self.failed: asyncio.Future[Blind] = asyncio.get_running_loop().create_future()
        self._client = client
        self._give = give
        self._log = log
        self._metrics = metrics
        self._sweep_s = sweep_s
        patience_s = min(_BLIND_S, 2 * canary_s)
        self._recheck_s = patience_s
        self._sweeps = {each: Sweep(client, each, Roll(patience_s), self._bury) for each in watched}
        self._hurried: dict[Watched, asyncio.Event] = {
            each: asyncio.Event() for each in self._sweeps
        }
        self._namespaces: dict[str, asyncio.Task[None]] = {}
        self._leaving: set[str] = set()
        self._unseen: set[str] = set()
        """Namespaces that we may not look at."""

    def told(self, watched: Watched, how: str | None, document: Document) -> None:
        """By a watch."""
        self._metrics.watched.labels(watched.kind).inc()
        # kopf's lists leave the kind out of their items, as the API server does.
        kind = {"apiVersion": RESOURCES[watched.kind].api_version, "kind": watched.kind}
        object = observe({**document, **kind})
        roll = self._sweeps[watched].roll
        if how == "DELETED":
            roll.forget(object.ref, object.uid)
            self._bury(object.ref, object.uid)
            return
        again = roll.tell(object.ref, Sighting(object.uid, object.version))
        if watched.kind == LEASE:
            self.canary.shown(object.version, boottime())
            return
        if again and how is None:
            # The watch was cut for so long that it had to list: it may have missed an end.
            self._hurried[watched].set()
        self._give(Seen(object))
        self._heed_namespace(object)

    def learned(self, version: int, now: Nanoseconds) -> None:
        """Of the Lease, otherwise than by the watch."""
        self.canary.learned(version, now)
        if self.canary.blind and not self.failed.done():
            why = "the watch doesn't show changes of the Lease that are known to be there"
            self.failed.set_result(Blind(why))

    def overheard(self, object: Observed) -> None:
        """In the answer to a write."""
        for watched, sweep in self._sweeps.items():
            if watched.kind == object.ref.kind:
                sweep.roll.overhear(object.ref, Sighting(object.uid, object.version))

    async def compare(self) -> None:
        """For ever: every watch with a list, at first until everything was told."""
        async with asyncio.TaskGroup() as group:
            for watched in self._sweeps:
                group.create_task(self._compare(watched))

    def close(self) -> None:
        for task in self._namespaces.values():
            task.cancel()

    async def _compare(self, watched: Watched) -> None:
        sweep, hurried = self._sweeps[watched], self._hurried[watched]
        told = False
        while True:
            pause_s = await self._sweep(sweep)
            if sweep.roll.listed and not told:
                told = True
                if watched.kind != LEASE:
                    self._give(Listed(watched.kind))
            try:
                async with asyncio.timeout(pause_s):
                    await hurried.wait()
            except TimeoutError:
                continue
            hurried.clear()

    async def _sweep(self, sweep: Sweep) -> float:
        """How long to wait before the next."""
        kind = sweep.watched.kind
        try:
            missed = await sweep.run()
        except (Away, TooMany) as error:
            self._log.warning("a list failed", kind=kind, reason=error.message)
            return max(_FIRST_S, error.retry_after_ms / 1_000)
        except Forbidden as error:
            # A right that is missing comes with the next `helm upgrade`: all else goes on.
            self._log.warning("a list failed", kind=kind, reason=error.message)
            return self._sweep_s if sweep.roll.listed else _FIRST_S
        self._metrics.resyncs.labels(kind).inc()
        if missed:
            self._metrics.missed.labels(kind).inc(missed)
            self._log.info("deletions that the watch missed", kind=kind, count=missed)
        if sweep.roll.blind(boottime()):
            raise Blind(f"the watch of {kind} doesn't show what lists have")
        if not sweep.roll.listed:
            return _FIRST_S
        return self._recheck_s if sweep.roll.owes else self._sweep_s

    def _bury(self, ref: Ref, uid: str) -> None:
        if ref.kind != LEASE:
            self._give(Gone(ref, uid))

    def _heed_namespace(self, object: Observed) -> None:
        """Is its namespace on its way out, with all that is in it?"""
        name = object.ref.namespace
        if not name or name in self._unseen or name in self._namespaces:
            return
        if object.deleting or name in self._leaving:
            task = asyncio.get_running_loop().create_task(self._look_at(name))
            self._namespaces[name] = task
            task.add_done_callback(lambda _: self._namespaces.pop(name, None))

    async def _look_at(self, name: str) -> None:
        try:
            found = observe(await self._client.get(Ref("Namespace", "", name)))
        except (Away, TooMany):
            return
        except NotFound:
            self._leaving.discard(name)
            return
        except ApiError as error:
            self._unseen.add(name)
            self._log.warning("a namespace can't be looked at", name=name, reason=error.message)
            return
        if found.deleting:
            self._leaving.add(name)
        else:
            self._leaving.discard(name)
        self._give(Seen(found))
