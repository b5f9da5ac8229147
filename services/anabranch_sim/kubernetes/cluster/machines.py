"""The data plane as it is: members on etcd and brokers as machines, asked over connections.

What a broker's pod runs is a process of the simulated cluster; what the operator asks goes through
its own `Asker`, the client's session, frames, a broker and the metadata's journal. A state of its
own follows that journal, so that whoever judges knows the truth.
"""

# The asker is given another link than its own.
# pyright: reportPrivateUsage=false

from collections.abc import Callable
from random import Random
from typing import Any, TypeVar, cast

import msgspec

from anabranch.client.bolt.link import Link
from anabranch.core.bolt.protocol import messages
from anabranch.core.bolt.protocol.commands import (
    Description,
    ForkLog,
    Promote,
    Squash,
    decode_group,
)
from anabranch.core.bolt.protocol.messages import ClientMessage, ServerMessage
from anabranch.core.bolt.state.placement import READY
from anabranch.core.errors import AnabranchError
from anabranch.core.limits import Limits
from anabranch.core.types import LogId, Milliseconds, Nanoseconds
from anabranch_operator.plan.engine.actions import Ask
from anabranch_operator.plan.engine.events import Event, Vitals
from anabranch_operator.service.bolt_client import Asker
from anabranch_sim.bolt import options as cluster_options
from anabranch_sim.bolt.client import Account, SimClient
from anabranch_sim.bolt.cluster import Cluster
from anabranch_sim.kubernetes.cluster.plane import ServiceFaults
from anabranch_sim.kubernetes.cluster.service import LogService
from anabranch_sim.kubernetes.cluster.waiting import Promise, Turn, drive
from anabranch_sim.world.deployment import Process
from anabranch_sim.world.events import SECOND, World
from anabranch_sim.world.network import NetworkFaults
from anabranch_sim.world.node import Node

T = TypeVar("T")

LIMITS = Limits(alive_ms=2_000, silence_ms=8_000, watch_ms=5_000, drain_ms=5_000, grace_ms=20_000)
_FOLLOWS: Nanoseconds = SECOND


class _Container(Process):
    """A broker's process; whether it begins anew is the kubelet's to say."""

    wanted = True

    def live(self) -> None:
        if self.wanted:
            super().live()


class _Pool(Cluster):
    """Brokers come and go; a client that knows none is led to any."""

    @property
    def addresses(self) -> list[str]:
        return [""]

    def at(self, address: str) -> Node | None:
        return super().at(address) if self.brokers else None

    def add(self, name: str) -> _Container:
        container = _Container(self, name)
        self.brokers.append(self.house(name, self._broker, container))
        return container

    def remove(self, container: _Container) -> None:
        """No client is led to it any more; what is sent to it is lost."""
        for node in container.nodes:
            self.brokers.remove(node)
            self.nodes.remove(node)
        del self.processes[container.name]


class _Link:
    """What an asker needs of a link, on simulated time."""

    def __init__(self, client: SimClient) -> None:
        self._actor = client

    def once(self) -> bytes:
        return self._actor.world.rng.randbytes(16)

    async def ask(
        self, message: ClientMessage, kind: type[T], what: str, timeout_ms: Milliseconds
    ) -> T:
        del timeout_ms
        promise = Promise[ServerMessage | AnabranchError]()
        self._actor.ask(what, message, None, promise.settle)
        answer = await promise
        if isinstance(answer, AnabranchError):
            raise answer
        assert isinstance(answer, kind), answer
        return answer


def _uncounted(request: str, outcome: str) -> None:
    del request, outcome


class MachinePlane:
    """As `plane.StatePlane` is, but for what is behind it."""

    def __init__(self, world: World, seed: int) -> None:
        drawn = cluster_options.Options.of(seed)
        self.cluster = _Pool(
            world,
            msgspec.structs.replace(
                drawn,
                embedded=False,
                members=3,
                brokers=0,
                faults=(),
                limits=LIMITS,
                lease_ms=3_000,
                compressed=False,
            ),
        )
        self.service = LogService(LIMITS)
        self.leading = ""
        self.asked = 0
        self._world = world
        self._account = Account(Random(seed + 1))
        self._containers: dict[str, _Container] = {}
        self._askers: dict[tuple[str, int], Asker] = {}
        self._actors = 0
        self._followed = 0
        self.cluster.start()
        self._users = self._actor()
        self._follow()

    @property
    def service_faults(self) -> ServiceFaults:
        return ServiceFaults()

    @service_faults.setter
    def service_faults(self, service_faults: ServiceFaults) -> None:
        """The network between clients, brokers and members; a client asks until it is answered."""
        self.cluster.network.faults = NetworkFaults(
            tail=service_faults.tail,
            loss=service_faults.lost / 4,
            duplicate=service_faults.twice,
            held=service_faults.unanswered / 20,
        )

    @property
    def away_until(self) -> Nanoseconds:
        return 0

    @away_until.setter
    def away_until(self, until: Nanoseconds) -> None:
        if until > self._world.now:
            self.cluster.etcd.go_down(until - self._world.now)
        else:
            self.cluster.etcd.heal()

    def begin(self, broker: str) -> None:
        container = self._containers.get(broker)
        if container is None:
            container = self._containers[broker] = self.cluster.add(broker)
        container.wanted = True
        container.live()

    def crash(self, broker: str) -> None:
        container = self._containers.get(broker)
        if container is not None:
            container.wanted = False
            container.die(down=SECOND, power=False)

    def end(self, broker: str) -> None:
        container = self._containers.get(broker)
        if container is not None:
            container.wanted = False
            container.drain()

    def lose(self, broker: str) -> None:
        container = self._containers.get(broker)
        if container is not None:
            container.pause(self._world.between(SECOND, 20 * SECOND))

    def is_serving(self, broker: str) -> bool:
        self._catch_up()
        container = self._containers.get(broker)
        seats = {each.name: each.state for each in self.service.brokers()}
        return container is not None and container.alive and seats.get(broker) == READY

    def has_ended(self, broker: str) -> bool:
        container = self._containers.get(broker)
        if container is None or container.alive:
            return container is None
        del self._containers[broker]
        self.cluster.remove(container)
        return True

    def order(self, command: Any) -> None:
        once = self._world.rng.randbytes(16)
        match command:
            case Squash(log):
                message: ClientMessage = messages.Squash(log, once, "somebody")
            case Promote(log):
                message = messages.Promote(log, once)
            case ForkLog(parent, kind, name):
                message = messages.Fork(parent, kind, once, name)
            case _:
                raise AssertionError(command)
        self._users.ask("order", message, None, lambda _: None)

    def append(self, log: LogId, count: int) -> None:
        name = next(each.name for each in self.service.owned() if each.id == log)
        self._users.append(log, name, count)

    def found(self, name: str) -> Description | None:
        self._catch_up()
        found = self.service.describe(name)
        return found if isinstance(found, Description) else None

    def ask(
        self, ask: Ask, guard: tuple[str, int], turn: Turn, told: Callable[[Any], None]
    ) -> None:
        self.asked += 1

        def answered(outcome: Any) -> None:
            self._catch_up()
            told(outcome)

        drive(self._asker(guard).perform(ask), turn, answered)

    def look(self, turn: Turn, told: Callable[[Event], None]) -> None:
        drive(self._asker(("", 0)).look(), turn, told)

    def vitals(self, uid: str) -> Vitals | None:
        return Vitals(leading=uid == self.leading)

    def _asker(self, guard: tuple[str, int]) -> Asker:
        if guard not in self._askers:
            client = self._actor()
            if guard[0]:
                client._session.guard(*guard)
            asker = Asker("anabranch://sim:7420", "operator", _uncounted)
            asker._made = cast("Link", _Link(client))
            self._askers[guard] = asker
        return self._askers[guard]

    def _actor(self) -> SimClient:
        self._actors += 1
        return SimClient(self.cluster, self._account, self._actors)

    def _follow(self) -> None:
        self._catch_up()
        self._world.after(_FOLLOWS, self._follow)

    def _catch_up(self) -> None:
        """The truth is what is journaled."""
        entries = self.cluster.etcd.entries
        while self._followed < len(entries):
            group = entries[self._followed]
            self._followed += 1
            for entry in decode_group(group):
                self.service.now = max(self.service.now, entry.at)
                self.service.apply(entry)
