"""The way to the API server: late, refused, away, done and not answered; and the Lease it keeps."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from anabranch.core.types import MS, Nanoseconds
from anabranch_operator.kube.refusals import (
    ApiError,
    Away,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    TooMany,
)
from anabranch_operator.plan.election.candidate import Lease, Write
from anabranch_operator.plan.engine.events import CONFLICT, Refusal
from anabranch_operator.plan.engine.objects import Ref
from anabranch_sim.kubernetes.cluster.objects import Kube
from anabranch_sim.kubernetes.cluster.waiting import Promise
from anabranch_sim.world.events import SECOND, World

T = TypeVar("T")

REQUEST: Nanoseconds = 15 * SECOND
"""How long a client waits for an answer."""

_ERRORS: dict[str, type[ApiError]] = {
    each.code: each for each in (Conflict, Forbidden, Invalid, NotFound, TooMany, Away)
}


class ApiFaults(Struct, frozen=True):
    """How requests fare; all zero is a good day."""

    tail: float = 0.0
    """So many take seconds, some of them longer than anybody waits."""
    lost: float = 0.0
    """So many never come there."""
    unanswered: float = 0.0
    """So many are done, and their answers lost."""
    throttled: float = 0.0
    failing: float = 0.0
    """So many are answered with a fault of the server's own, and not done."""


class ApiServer:
    """What is kept is `kube`; whoever asks it by `ask` isn't sure of an answer."""

    def __init__(self, world: World, kube: Kube) -> None:
        self.world = world
        self.kube = kube
        self.faults = ApiFaults()
        self.away_until: Nanoseconds = 0
        self.requests = 0
        self._lease: Lease | None = None

    @property
    def away(self) -> bool:
        return self.world.now < self.away_until

    def ask(self, act: Callable[[], T | Refusal]) -> Promise[T]:
        world, faults, promise = self.world, self.faults, Promise[T]()
        self.requests += 1
        if world.chance(faults.lost):
            world.after(REQUEST, partial(promise.fail, Away("no answer in time")))
            return promise
        there = self._delay()
        if there > REQUEST:
            world.after(REQUEST, partial(promise.fail, Away("no answer in time")))
        world.after(there, partial(self._arrive, act, promise))
        return promise

    def is_closing(self, ref: Ref) -> bool:
        """Is its namespace on its way out, or gone? Then nothing new is made in it."""
        if not ref.namespace:
            return False
        found = self.kube.get(Ref("Namespace", "", ref.namespace))
        return found is None or found.deleting

    def fetch_lease(self) -> Lease | None:
        return self._lease

    def write_lease(self, wanted: Write, lease_s: float) -> Lease | Refusal:
        """If it is still as it was seen."""
        if wanted.seen != self._lease:
            return Refusal(CONFLICT, "the Lease is another by now")
        self.kube.version += 1
        new = Lease(
            uid="lease",
            version=self.kube.version,
            holder=wanted.holder,
            epoch=wanted.epoch,
            lease_s=lease_s,
        )
        self._lease = new if self._lease is None else replace(new, uid=self._lease.uid)
        return self._lease

    def _arrive(self, act: Callable[[], T | Refusal], promise: Promise[T]) -> None:
        world, faults = self.world, self.faults
        back = self._delay()
        if self.away:
            world.after(back, partial(promise.fail, Away("connection refused")))
        elif world.chance(faults.throttled):
            error = TooMany("too many requests", world.between(1, 5) * 1_000)
            world.after(back, partial(promise.fail, error))
        elif world.chance(faults.failing):
            world.after(back, partial(promise.fail, Away("etcdserver: leader changed")))
        else:
            answer = act()
            if world.chance(faults.unanswered):
                world.after(REQUEST, partial(promise.fail, Away("no answer in time")))
            elif isinstance(answer, Refusal):
                world.after(back, partial(promise.fail, raised(answer)))
            else:
                world.after(back, partial(promise.settle, answer))

    def _delay(self) -> Nanoseconds:
        world = self.world
        if world.chance(self.faults.tail):
            return world.between(100 * MS, 20 * SECOND)
        return world.between(MS // 2, 5 * MS)


def raised(refusal: Refusal) -> ApiError:
    return _ERRORS[refusal.code](refusal.message, refusal.retry_after_ms)
