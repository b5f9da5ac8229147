"""Processes on one network, each with its nodes and its disk: what every deployment is made of."""

from collections.abc import Callable
from functools import partial
from itertools import product

from anabranch.core.errors import StorageFailed, StorageFull
from anabranch.core.machine import Drain, Linked, Machine
from anabranch.core.types import MS, Nanoseconds
from anabranch_sim.world.disk import PowerCut, SimDisk
from anabranch_sim.world.events import SECOND, World
from anabranch_sim.world.network import Network
from anabranch_sim.world.node import Node, Surroundings

RESTART: Nanoseconds = SECOND // 2
"""How long until a process is started again that could not even begin."""
DRAINED_AT_LATEST: Nanoseconds = 15 * SECOND
"""A process that was told to end is killed after this."""


class Process:
    """Nodes that die and live again together. The disk is the machine's, and outlives them."""

    def __init__(self, deployment: "Deployment", name: str, knows: int = 0) -> None:
        self.deployment = deployment
        self.world = deployment.world
        self.name = name
        self.nodes: list[Node] = []
        self.disk: SimDisk | None = None
        self.deaths = 0
        self.knows = knows
        """The newest journal format that the installed version knows."""
        self._draining = 0

    @property
    def alive(self) -> bool:
        return all(node.alive for node in self.nodes)

    def join(self, node: Node) -> None:
        self.nodes.append(node)
        self.deployment.network.join(node.name, self.name)
        node.on_death = partial(self.die, down=RESTART)
        node.on_fenced = partial(self.die, down=RESTART, power=False)
        node.on_rest = self._drained

    def pause(self, duration: Nanoseconds) -> None:
        for node in self.nodes:
            node.pause(duration)

    def drain(self) -> None:
        """Tell it to end; kill it if it takes too long; then start it again."""
        if not self.alive or self._draining:
            return
        self.world.note(self.name, "drains")
        self._draining = len(self.nodes)
        for node in self.nodes:
            node.deliver(node.life, Drain())
        self.world.after(DRAINED_AT_LATEST, partial(self._kill, self.deaths))

    def die(self, *, down: Nanoseconds, power: bool = True) -> None:
        """Stop at once, and start again later."""
        if not any(node.alive for node in self.nodes):
            return
        self._draining = 0
        for node in self.nodes:
            node.stop()
        if self.disk is not None:
            if power:
                self.disk.cut_power()
            else:
                self.disk.kill()
        self.deaths += 1
        self.world.after(down, self.live)

    def live(self) -> None:
        if any(node.alive for node in self.nodes):
            return
        try:
            for node in self.nodes:
                node.start()
        except (PowerCut, StorageFailed, StorageFull) as error:
            self.world.note(self.name, "can't start:", error)
            for node in self.nodes:
                node.stop()
            if self.disk is not None:
                self.disk.cut_power()
            self.world.after(RESTART, self.live)
            return
        for node in self.nodes:
            self.deployment.link(node, self.deployment.nodes)

    def _drained(self) -> None:
        """A node has finished what it had in hand; or it was replaced, and has died of it."""
        self._draining -= 1
        if self._draining == 0:
            self.world.at(self.world.now, partial(self._kill, self.deaths))

    def _kill(self, deaths: int) -> None:
        if deaths == self.deaths:
            self.die(down=self.world.between(10 * MS, SECOND), power=False)


class Deployment:
    """All processes of one engine, and the connections between them."""

    reconnected: Nanoseconds = 5 * MS
    """How long until a node that lives again is connected, at the most."""

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self.world: World = around.world
        self.network: Network = around.network
        self.nodes: list[Node] = []
        self.processes: dict[str, Process] = {}

    def node(self, name: str) -> Node:
        return self.around.nodes[name]

    def machine(self, name: str) -> Machine | None:
        return self.around.nodes[name].machine

    def disks(self) -> list[SimDisk]:
        return [each.disk for each in self.processes.values() if each.disk is not None]

    def process_of(self, node: str) -> Process:
        """The process in which a node lives."""
        return next(
            each for each in self.processes.values() if node in [one.name for one in each.nodes]
        )

    def house(self, name: str, begin: Callable[[Node], Machine], process: Process) -> Node:
        """A node that lives in this process."""
        node = Node(self.around, name, begin)
        self.nodes.append(node)
        self.processes[process.name] = process
        process.join(node)
        return node

    def link(self, node: Node, others: list[Node]) -> None:
        """A node is connected again: what was sent on its connections before may be lost."""
        for one, other in ((node, each) for each in others if each is not node):
            for notified, about in ((one, other), (other, one)):
                linked = partial(notified.deliver, notified.life, Linked(about.name))
                self.world.after(self.world.between(0, self.reconnected), linked)

    def link_all(self) -> None:
        for node in self.nodes:
            self.link(node, self.nodes)

    def mend(self) -> None:
        """No link is cut any more."""
        cut = self.network.mend()
        for one, other in product(self.nodes, self.nodes):
            if one.name < other.name and {(one.name, other.name), (other.name, one.name)} & cut:
                self.link(one, [other])
