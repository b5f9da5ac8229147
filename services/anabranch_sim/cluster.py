"""A whole cluster: metadata on its disk, brokers, the object store, and who shares a process."""

from functools import partial

from anabranch.core.bolt.broker import Broker
from anabranch.core.bolt.metadata import Metadata
from anabranch.core.errors import StorageFailed, StorageFull
from anabranch.core.machine import Machine
from anabranch.core.types import Nanoseconds
from anabranch.shell.wal import FileJournal
from anabranch_sim.disk import PowerCut, SimDisk
from anabranch_sim.network import Network, Weather
from anabranch_sim.node import Node, Surroundings
from anabranch_sim.options import Options
from anabranch_sim.store import SimStore
from anabranch_sim.world import SECOND, World

CLUSTER = "sim"
METADATA = "metadata"
RESTART: Nanoseconds = SECOND // 2
"""After a life that could not even begin."""


class Process:
    """Nodes that die and live again together. The disk is the machine's, and outlives them."""

    def __init__(self, cluster: "Cluster", name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.nodes: list[Node] = []
        self.disk: SimDisk | None = None
        self.deaths = 0

    @property
    def alive(self) -> bool:
        return all(node.alive for node in self.nodes)

    def join(self, node: Node) -> None:
        self.nodes.append(node)
        self.cluster.network.join(node.name, self.name)
        node.on_death = partial(self.die, down=RESTART)
        node.on_fenced = partial(self.die, down=RESTART, power=False)

    def die(self, *, down: Nanoseconds, power: bool = True) -> None:
        """Stop at once, and start again later."""
        if not any(node.alive for node in self.nodes):
            return
        for node in self.nodes:
            node.stop()
        if self.disk is not None:
            if power:
                self.disk.cut_power()
            else:
                self.disk.kill()
        self.deaths += 1
        self.cluster.world.after(down, self.live)

    def live(self) -> None:
        if any(node.alive for node in self.nodes):
            return
        try:
            for node in self.nodes:
                node.start()
        except (PowerCut, StorageFailed, StorageFull) as error:
            self.cluster.world.note(self.name, "can't start:", error)
            for node in self.nodes:
                node.stop()
            if self.disk is not None:
                self.disk.cut_power()
            self.cluster.world.after(RESTART, self.live)


class Cluster:
    """One metadata leader and some brokers, each in a process of its own or all in one."""

    def __init__(self, world: World, options: Options) -> None:
        self.world = world
        self.options = options
        self.network = Network(world, Weather())
        self.store = SimStore(world)
        self.around = Surroundings(world, CLUSTER, self.network, self.store)
        self.disk = SimDisk(world, "/journal")
        self.metadata = Node(self.around, METADATA, self._metadata)
        self.brokers = [
            Node(self.around, f"broker-{number}", self._broker)
            for number in range(1, options.brokers + 1)
        ]
        self.processes = [Process(self, "up" if options.embedded else METADATA)]
        self.processes[0].join(self.metadata)
        self.processes[0].disk = self.disk
        for broker in self.brokers:
            if not options.embedded:
                self.processes.append(Process(self, broker.name))
            self.processes[-1].join(broker)

    def start(self) -> None:
        for process in self.processes:
            process.live()

    def leader(self) -> Metadata:
        machine = self.metadata.machine
        assert isinstance(machine, Metadata)
        return machine

    def recover(self) -> Metadata:
        """The metadata as a new life would find them."""
        return self._recovered(self._journal())

    def _recovered(self, journal: FileJournal) -> Metadata:
        found = journal.recover()
        image = found.snapshot.content if found.snapshot else None
        limits = self.options.limits
        return Metadata.recovered(CLUSTER, limits, image, found.entries, found.last)

    def _journal(self) -> FileJournal:
        return FileJournal(
            self.disk,
            CLUSTER,
            segment_bytes=self.options.segment_bytes,
            ahead_bytes=self.options.ahead_bytes,
        )

    def _metadata(self, node: Node) -> Machine:
        node.journal = journal = self._journal()
        return self._recovered(journal)

    def _broker(self, node: Node) -> Machine:
        life = self.world.rng.randbytes(16)
        return Broker(node.name, CLUSTER, self.options.limits, (METADATA,), life)
