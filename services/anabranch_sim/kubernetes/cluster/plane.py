"""The data plane as the operator and kubelets meet it: the log service's state behind a door.

What is asked at the door may come late, twice, or not at all; what was done may not be answered.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from msgspec import Struct

from anabranch.core.bolt.protocol.commands import (
    Batch,
    CommitObject,
    Description,
    DrainBroker,
    Expire,
    FindBroker,
    LoseBroker,
    RegisterBroker,
    Row,
)
from anabranch.core.bolt.protocol.queries import BrokerSeat
from anabranch.core.bolt.state import placement
from anabranch.core.errors import DeadlineExceeded
from anabranch.core.errors.refused import Refused
from anabranch.core.records.objects import object_id
from anabranch.core.types import MS, LogId, Nanoseconds
from anabranch_operator.plan.engine.actions import Ask
from anabranch_operator.plan.engine.events import Event, Unseen, Viewed, Vitals
from anabranch_sim.kubernetes.cluster.service import LogService
from anabranch_sim.kubernetes.cluster.waiting import Turn
from anabranch_sim.world.events import SECOND, World

PATIENCE: Nanoseconds = 10 * SECOND
"""How long the operator waits for an answer; `service/bolt_client.py` says so."""
SILENCE: Nanoseconds = 3 * SECOND
"""After so long a broker that isn't heard of counts as lost."""
_EXPIRY: Nanoseconds = 5 * SECOND

OnAnswer = Callable[[Any], None]


class ServiceFaults(Struct, frozen=True):
    """How requests fare on the way to the log service; all zero is a good day."""

    tail: float = 0.0
    lost: float = 0.0
    unanswered: float = 0.0
    twice: float = 0.0


class Request(Struct, frozen=True):
    id: bytes
    until: Nanoseconds
    """Whoever asks has given up then; what was asked may still be done."""


class Plane(Protocol):
    """What kubelets, people and operators need of a log service."""

    service: LogService
    """What it holds in truth."""
    asked: int
    """By operators, looks not counted."""
    leading: str
    """The UID of the metadata member that leads, if those are pods only in name."""

    @property
    def service_faults(self) -> ServiceFaults: ...

    @service_faults.setter
    def service_faults(self, service_faults: ServiceFaults) -> None: ...

    @property
    def away_until(self) -> Nanoseconds: ...

    @away_until.setter
    def away_until(self, until: Nanoseconds) -> None: ...

    def begin(self, broker: str) -> None:
        """A container starts."""
        ...

    def crash(self, broker: str) -> None: ...

    def lose(self, broker: str) -> None:
        """It lives, and isn't heard of for a while."""
        ...

    def end(self, broker: str) -> None:
        """It is told to end: it hands over first."""
        ...

    def is_serving(self, broker: str) -> bool: ...

    def has_ended(self, broker: str) -> bool: ...

    def order(self, command: Any) -> None:
        """Somebody asks the log service, not through the operator."""
        ...

    def append(self, log: LogId, count: int) -> None: ...

    def found(self, name: str) -> Description | None:
        """The log of this name as it is now, if it is there."""
        ...

    def ask(self, ask: Ask, guard: tuple[str, int], turn: Turn, told: OnAnswer) -> None: ...

    def look(self, turn: Turn, told: Callable[[Event], None]) -> None: ...

    def vitals(self, uid: str) -> Vitals | None: ...


class StatePlane:
    """The state alone."""

    def __init__(self, world: World, begin: Nanoseconds) -> None:
        self.service = LogService()
        self.service_faults = ServiceFaults()
        self.away_until: Nanoseconds = 0
        self._world = world
        self._begin = begin
        self._running: dict[str, int] = {}
        """Brokers that live, each with the epoch of its life."""
        self._objects = 0
        self.leading = ""
        self.asked = 0
        world.after(_EXPIRY, self._expire)

    def begin(self, broker: str) -> None:
        outcome = self._command(RegisterBroker(broker, f"{broker.partition('.')[0]}:7420"))
        self._running[broker] = outcome.epoch

    def crash(self, broker: str) -> None:
        epoch = self._running.pop(broker, None)
        if epoch is not None:
            self._world.after(SILENCE, partial(self._command, LoseBroker(broker, epoch)))

    def end(self, broker: str) -> None:
        epoch = self._running.get(broker)
        if epoch is not None:
            self._command(DrainBroker(broker, epoch))
            self._world.after(SECOND, partial(self._rest, broker))

    def is_serving(self, broker: str) -> bool:
        return broker in self._running

    def has_ended(self, broker: str) -> bool:
        return broker not in self._running

    def lose(self, broker: str) -> None:
        epoch = self._running.get(broker)
        if epoch is not None:
            self._command(LoseBroker(broker, epoch))
            self._world.after(2 * SILENCE, partial(self._find, broker, epoch))

    def order(self, command: Any) -> None:
        self._world.after(MS, partial(self._command, command))

    def append(self, log: LogId, count: int) -> None:
        ready = [each for each in self._seats() if each.state == placement.READY]
        broker = next((each for each in ready if each.name in self._running), None)
        if broker is None or self._world.now < self.away_until:
            return
        self._objects += 1
        rows = [Row(log, 0, [Batch(100, 1)] * count)]
        self._command(CommitObject(broker.name, object_id(broker.epoch, self._objects), rows))

    def found(self, name: str) -> Description | None:
        found = self.service.describe(name)
        return found if isinstance(found, Description) else None

    def ask(self, ask: Ask, guard: tuple[str, int], turn: Turn, told: OnAnswer) -> None:
        world, service_faults = self._world, self.service_faults
        self.asked += 1
        over, request = [False], Request(world.rng.randbytes(16), world.now + PATIENCE)

        def tell(outcome: Any) -> None:
            if not over[0]:
                over[0] = True
                turn(partial(told, outcome))

        what = type(ask).__name__
        late = Refused.of(DeadlineExceeded(what, PATIENCE // MS))
        world.after(PATIENCE, partial(tell, late))
        if not world.chance(service_faults.lost):
            world.after(self._delay(), partial(self._arrive, ask, guard, request, tell))
        if world.chance(service_faults.twice):
            world.after(self._delay(), partial(self._arrive, ask, guard, request, tell))

    def look(self, turn: Turn, told: Callable[[Event], None]) -> None:
        def answer() -> None:
            if self._world.now < self.away_until:
                delay, seen = PATIENCE, Unseen("it isn't reached")
            else:
                delay, seen = self._delay(), Viewed(self.service.owned(), self.service.brokers())
            self._world.after(delay, partial(turn, partial(told, seen)))

        self._world.after(self._delay(), answer)

    def vitals(self, uid: str) -> Vitals | None:
        return Vitals(leading=uid == self.leading)

    def _arrive(self, ask: Ask, guard: tuple[str, int], request: Request, tell: OnAnswer) -> None:
        """A broker that has lost its leader keeps what was asked until there is one."""
        world = self._world
        if world.now < self.away_until:
            again = self.away_until - world.now + world.between(0, SECOND)
            world.after(again, partial(self._arrive, ask, guard, request, tell))
            return
        self._tick()
        outcome = self.service.ask(ask, guard[1], guard[0], request.id)
        if not world.chance(self.service_faults.unanswered):
            world.after(self._delay(), partial(tell, outcome))

    def _find(self, broker: str, epoch: int) -> None:
        if self._running.get(broker) == epoch:
            self._command(FindBroker(broker, epoch))

    def _rest(self, broker: str) -> None:
        self._running.pop(broker, None)

    def _expire(self) -> None:
        self._tick()
        over = self.service.state.replica.expired(self.service.now)
        if over and self._world.now >= self.away_until:
            self._command(Expire(over))
        self._world.after(_EXPIRY, self._expire)

    def _seats(self) -> tuple[BrokerSeat, ...]:
        return self.service.brokers()

    def _command(self, command: Any) -> Any:
        self._tick()
        return self.service.command(command)

    def _tick(self) -> None:
        self.service.now = (self._begin + self._world.now) // MS

    def _delay(self) -> Nanoseconds:
        world = self._world
        if world.chance(self.service_faults.tail):
            return world.between(100 * MS, 8 * SECOND)
        return world.between(MS // 2, 5 * MS)
