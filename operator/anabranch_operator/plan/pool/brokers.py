"""The brokers of a pool, as their pods and the log service tell of them together."""

from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from anabranch_operator.api import names
from anabranch_operator.api.anabranch_names import (
    BROKER_DRAINING,
    BROKER_LOST,
    BROKER_READY,
    MS,
    BrokerSeat,
    Nanoseconds,
)
from anabranch_operator.plan.engine.actions import ForgetBroker
from anabranch_operator.plan.engine.dependencies import broker_name
from anabranch_operator.plan.engine.objects import Observed
from anabranch_operator.plan.engine.world import Eviction, Pool, World
from anabranch_operator.plan.metadata.nodes import is_leaving
from anabranch_operator.plan.pool.broker_pod import template
from anabranch_operator.plan.pool.health import Health, health


class State(StrEnum):
    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    LOST = "lost"
    FAILING = "failing"


class Broker(Struct, frozen=True, kw_only=True):
    """One life of one broker: a pod of this very UID, and the seat that is called after it."""

    pod: Observed
    seat: BrokerSeat | None
    health: Health
    state: State
    outdated: bool
    eviction: Eviction | None
    cordoned: bool

    @property
    def name(self) -> str:
        return self.pod.ref.name

    @property
    def sound(self) -> bool:
        """It serves, or is about to."""
        return self.state in (State.STARTING, State.READY)

    @property
    def load(self) -> int:
        return 0 if self.seat is None else self.seat.roots + self.seat.trees + self.seat.exclusive


class Crew(Struct, frozen=True):
    """All of a pool's."""

    staying: tuple[Broker, ...]
    """Neither drained nor deleted."""
    drained: tuple[Broker, ...]
    """The log service places nothing on them any more: they can only go."""
    ending: tuple[Broker, ...]
    """Deleted, and not gone yet."""
    busy_until: Nanoseconds | None
    """When the last of those that are ending has had its grace: one that stays longer is stuck,
    and holds up nobody.
    """

    @property
    def sound(self) -> tuple[Broker, ...]:
        return tuple(each for each in self.staying if each.sound)

    @property
    def ready(self) -> tuple[Broker, ...]:
        return self.of(State.READY)

    @property
    def everybody(self) -> tuple[Broker, ...]:
        return tuple(
            sorted((*self.staying, *self.drained, *self.ending), key=lambda each: order(each.pod))
        )

    def of(self, *states: State) -> tuple[Broker, ...]:
        return tuple(each for each in self.staying if each.state in states)

    def leaving(self, now: Nanoseconds) -> bool:
        """Is one on its way out?"""
        return bool(self.drained) or (self.busy_until is not None and now < self.busy_until)


def crew(world: World, pool: Pool, now: Nanoseconds) -> Crew:
    wanted = template(pool.spec)
    brokers = [
        _broker(world, pod, wanted, now)
        for pod in sorted(world.children(pool.object.uid, "Pod"), key=order)
    ]
    ending = tuple(each for each in brokers if each.pod.deleting)
    here = [each for each in brokers if not each.pod.deleting]
    return Crew(
        tuple(each for each in here if each.state is not State.DRAINING),
        tuple(each for each in here if each.state is State.DRAINING),
        ending,
        max((each.pod.ends_at * MS for each in ending), default=None),
    )


def order(pod: Observed) -> tuple[int, str]:
    """By number, which is nothing but a name: `orders-10` stands behind `orders-9`."""
    name = pod.ref.name
    return len(name), name


def forsaken(world: World, pool: Pool) -> Iterator[ForgetBroker]:
    """Lives of this pool's brokers that are over, and that the log service still knows."""
    if world.service.trouble is not None:
        return
    for name, seat in sorted(world.service.brokers.items()):
        pod, dot, uid = name.rpartition(".")
        stem, dash, number = pod.rpartition("-")
        ours = dot and dash and stem == pool.ref.name and number.isdigit()
        if ours and seat.state != BROKER_READY and world.by_uid(uid) is None:
            yield ForgetBroker(broker=name, epoch=seat.epoch)


def _broker(world: World, pod: Observed, wanted: str, now: Nanoseconds) -> Broker:
    found = health(pod, now)
    seat = world.service.brokers.get(broker_name(pod))
    return Broker(
        pod=pod,
        seat=seat,
        health=found,
        state=_state(pod, found, seat, away=world.service.trouble is not None),
        outdated=pod.labels.get(names.TEMPLATE) != wanted,
        eviction=world.evicting.get(pod.uid),
        cordoned=is_leaving(world, pod),
    )


def _state(pod: Observed, found: Health, seat: BrokerSeat | None, *, away: bool) -> State:
    if pod.deleting:
        return State.DRAINING
    if found.failing:
        return State.FAILING
    if seat is not None and seat.state == BROKER_DRAINING:
        # One that isn't ready drains by itself: its container is ending, and begins anew.
        return State.DRAINING if found.ready else State.STARTING
    if seat is not None and seat.state == BROKER_LOST:
        return State.LOST
    if found.ready and (seat is not None or away):
        return State.READY
    return State.STARTING
