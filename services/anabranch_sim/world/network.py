"""Messages between nodes: late, lost, repeated, out of order, cut off, or held for long."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from anabranch.core.types import MS, Nanoseconds
from anabranch_sim.world.events import World


@dataclass(frozen=True, slots=True)
class NetworkFaults:
    """How a network behaves while faults are on; all zero is a good day."""

    delay: Nanoseconds = MS // 2
    """The longest ordinary way of a message."""
    tail: float = 0.0
    """How many messages take up to a hundred times as long."""
    loss: float = 0.0
    duplicate: float = 0.0
    held: float = 0.0
    """How many messages come seconds later."""
    held_for: Nanoseconds = 5_000 * MS


class Network:
    """Links are named by the two nodes they join, in the direction in which they carry."""

    def __init__(self, world: World, faults: NetworkFaults) -> None:
        self.world = world
        self.faults = faults
        self.dropped = 0
        self._cut: dict[tuple[str, str], None] = {}
        self._slow: dict[str, Nanoseconds] = {}
        self._local: dict[str, str] = {}

    def join(self, node: str, process: str) -> None:
        """Nodes of one process speak through a queue, which loses and delays nothing."""
        self._local[node] = process

    def cut(self, sender: str, receiver: str) -> None:
        self._cut[sender, receiver] = None

    def mend(self) -> set[tuple[str, str]]:
        """What was cut until now."""
        cut = set(self._cut)
        self._cut.clear()
        return cut

    def slow(self, node: str, delay: Nanoseconds) -> None:
        """All that this node says or hears comes so much later."""
        self._slow[node] = delay

    def heal(self) -> None:
        self.mend()
        self._slow.clear()
        self.faults = NetworkFaults()

    def cuts(self, sender: str, receiver: str) -> bool:
        return (sender, receiver) in self._cut

    def carry(self, sender: str, receiver: str, arrive: Callable[[], None]) -> None:
        """A datagram: nothing is promised."""
        world, faults, local = self.world, self.faults, self._local
        if local.get(sender, sender) == local.get(receiver, receiver):
            world.at(world.now, arrive)
            return
        if (sender, receiver) in self._cut or world.chance(faults.loss):
            self.dropped += 1
            return
        slow = self._slowness(sender, receiver)
        world.after(self._delay() + slow, arrive)
        if world.chance(faults.duplicate):
            world.after(self._delay() * 3 + slow, arrive)

    def _delay(self) -> Nanoseconds:
        world, faults = self.world, self.faults
        delay = world.between(MS // 20, faults.delay)
        if world.chance(faults.held):
            return delay + world.between(faults.held_for // 10, faults.held_for)
        if world.chance(faults.tail):
            return delay * world.between(2, 100)
        return delay

    def stream_delay(self, *ends: str) -> Nanoseconds:
        """Of a piece of a connection, which is never lost while the connection lasts."""
        return self._delay() + self._slowness(*ends)

    def _slowness(self, *ends: str) -> Nanoseconds:
        if not self._slow:
            return 0
        return sum(self._slow.get(end, 0) for end in ends)


class Pipe:
    """One direction of a connection: everything once and in order, until it breaks."""

    def __init__(
        self, network: Network, sender: str, receiver: str, broken: Callable[[str], None]
    ) -> None:
        self._network = network
        self._ends = (sender, receiver)
        self._broken = broken
        self._last: Nanoseconds = 0
        self.open = True

    def carry(self, arrive: Callable[[], None]) -> None:
        network, world = self._network, self._network.world
        self._last = max(self._last, world.now + network.stream_delay(*self._ends))
        world.at(self._last, partial(self._arrive, arrive))

    def _arrive(self, arrive: Callable[[], None]) -> None:
        if not self.open:
            return
        if self._network.cuts(*self._ends):
            self._broken("the network is cut")
        else:
            arrive()
