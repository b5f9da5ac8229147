"""The election's requests: one after the other, by a client of their own that nothing holds up."""

import asyncio
import math
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from anabranch.core.machine import SetTimer, TimerFired
from anabranch.core.types import Nanoseconds
from anabranch_operator.kube.client import Client
from anabranch_operator.kube.refusals import ApiError, Conflict, NotFound
from anabranch_operator.kube.resources import RESOURCES
from anabranch_operator.plan.election.candidate import (
    NOBODY,
    TIMER,
    Beaten,
    Candidate,
    Effect,
    Event,
    Fetch,
    Found,
    Hold,
    Kept,
    Lead,
    Lease,
    Missed,
    Resign,
    Retire,
    StepDown,
    Terms,
    Write,
)
from anabranch_operator.plan.engine.objects import Document, Ref


def boottime() -> Nanoseconds:
    """It runs on while the machine is suspended, which a lease does as well."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    """Of a Lease, as far as it is read."""

    holder_identity: str | None = None
    lease_transitions: int | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None


class Election:
    """Stands for election until told to end. Whatever is heard is heard between two requests."""

    def __init__(
        self,
        client: Client,
        ref: Ref,
        name: str,
        terms: Terms,
        *,
        elected: Callable[[str, int], None],
        deposed: Callable[[str], None],
        learned: Callable[[int, Nanoseconds], None],
        failed: Callable[[str], None],
    ) -> None:
        """`elected`: with scope and epoch. `learned`: a version of the Lease, and when. `failed`:
        why a request came to nothing.
        """
        self._client = client
        self._ref = ref
        self._terms = terms
        self._candidate = Candidate(name, terms)
        self._elected = elected
        self._deposed = deposed
        self._learned = learned
        self._failed = failed
        self._acquired = ""
        self._until: Nanoseconds = 0
        self._wake_at: Nanoseconds = 0
        self._told_to_end = asyncio.Event()
        self._retired = False

    @property
    def standing(self) -> bool:
        """May what was decided in our epoch still be done? Asked before each write."""
        return boottime() < self._until

    def resign(self) -> None:
        self._told_to_end.set()

    async def run(self) -> None:
        effects = self._candidate.start()
        while True:
            request = self._perform(effects)
            if self._retired:
                return
            event = await (self._wait() if request is None else self._ask(request))
            effects = self._candidate.step(boottime(), event)

    def _perform(self, effects: tuple[Effect, ...]) -> Fetch | Write | None:
        """The one request among them, if there is one, is still to be made."""
        request: Fetch | Write | None = None
        for effect in effects:
            match effect:
                case Fetch() | Write():
                    request = effect
                case Hold(until):
                    self._until = until
                case Lead(scope, epoch):
                    self._elected(scope, epoch)
                case StepDown(why):
                    self._until = 0
                    self._deposed(why)
                case SetTimer(_, at):
                    self._wake_at = at
                case Retire():
                    self._retired = True
        return request

    async def _wait(self) -> Event:
        if self._told_to_end.is_set():
            return Resign()
        try:
            async with asyncio.timeout(max(0, self._wake_at - boottime()) / 1e9):
                await self._told_to_end.wait()
        except TimeoutError:
            return TimerFired(TIMER)
        return Resign()

    async def _ask(self, request: Fetch | Write) -> Event:
        """No longer than we may lead: a leader must know in time that it leads no more."""
        patience_s = 2 * self._terms.retry_s
        if self.standing:
            patience_s = min(patience_s, (self._until - boottime()) / 1e9)
        try:
            async with asyncio.timeout(patience_s):
                if isinstance(request, Fetch):
                    return Found(await self._fetch())
                return Kept(await self._write(request))
        except (Conflict, NotFound):
            return Beaten()
        except (ApiError, TimeoutError) as error:
            self._failed(str(error) or "no answer in time")
            return Missed()

    async def _fetch(self) -> Lease | None:
        try:
            return self._read(await self._client.get(self._ref))
        except NotFound:
            return None

    async def _write(self, wanted: Write) -> Lease:
        manifest = self._manifest(wanted)
        if wanted.seen is None:
            return self._read(await self._client.create(self._ref, manifest))
        return self._read(await self._client.replace(self._ref, manifest))

    def _read(self, document: Document) -> Lease:
        told = msgspec.convert(document.get("spec", {}), _Spec)
        meta = document["metadata"]
        self._acquired = told.acquire_time or ""
        lease = Lease(
            uid=meta["uid"],
            version=int(meta["resourceVersion"]),
            holder=told.holder_identity or NOBODY,
            epoch=told.lease_transitions or 0,
            lease_s=told.lease_duration_seconds or 0,
        )
        self._learned(lease.version, boottime())
        return lease

    def _manifest(self, wanted: Write) -> dict[str, Any]:
        """Times are for people: no candidate decides by them."""
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        meta: dict[str, Any] = {"name": self._ref.name, "namespace": self._ref.namespace}
        if wanted.seen is not None:
            meta |= {"uid": wanted.seen.uid, "resourceVersion": str(wanted.seen.version)}
        return {
            "apiVersion": RESOURCES["Lease"].api_version,
            "kind": "Lease",
            "metadata": meta,
            "spec": {
                "holderIdentity": wanted.holder,
                "leaseDurationSeconds": math.ceil(self._terms.lease_s),
                "leaseTransitions": wanted.epoch,
                "acquireTime": now if wanted.acquired else self._acquired or now,
                "renewTime": now,
            },
        }
