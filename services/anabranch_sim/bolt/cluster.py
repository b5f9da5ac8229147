"""A whole cluster: metadata on a disk or a group on etcd, brokers, the object store, and who shares
a process.
"""

from functools import partial
from itertools import product
from typing import Protocol

from anabranch.core.bolt.broker.broker import Broker
from anabranch.core.bolt.metadata.leader import Metadata
from anabranch.core.bolt.metadata.member import Member
from anabranch.core.bolt.protocol.commands import FORMAT
from anabranch.core.bolt.state.state import State
from anabranch.core.errors import StorageFailed, StorageFull
from anabranch.core.machine import Drain, Linked, Machine
from anabranch.core.types import MS, Nanoseconds
from anabranch.ports import Recovered
from anabranch.shell.journal.file_journal import FileJournal
from anabranch_sim.bolt.coordinator import SimCoordinator
from anabranch_sim.bolt.node import Node, Surroundings
from anabranch_sim.bolt.options import Options
from anabranch_sim.world.disk import PowerCut, SimDisk
from anabranch_sim.world.etcd import SimEtcd
from anabranch_sim.world.events import SECOND, World
from anabranch_sim.world.network import Network, Weather
from anabranch_sim.world.store import SimStore

CLUSTER = "sim"
METADATA = "metadata"
RESTART: Nanoseconds = SECOND // 2
"""After a life that could not even begin."""
DRAINED_AT_LATEST: Nanoseconds = 15 * SECOND
"""Who was told to end is ended after this."""


class Housing(Protocol):
    """Where processes live."""

    world: World
    network: Network
    nodes: list[Node]

    def link(self, node: Node, others: list[Node]) -> None:
        """The node lives again: what was sent on connections to it before may be lost."""
        ...


class Process:
    """Nodes that die and live again together. The disk is the machine's, and outlives them."""

    def __init__(self, cluster: Housing, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.nodes: list[Node] = []
        self.disk: SimDisk | None = None
        self.deaths = 0
        self.knows = FORMAT
        """The format of the version that is installed here."""
        self._resting = 0

    @property
    def alive(self) -> bool:
        return all(node.alive for node in self.nodes)

    def join(self, node: Node) -> None:
        self.nodes.append(node)
        self.cluster.network.join(node.name, self.name)
        node.on_death = partial(self.die, down=RESTART)
        node.on_fenced = partial(self.die, down=RESTART, power=False)
        node.on_rest = self._rested

    def pause(self, duration: Nanoseconds) -> None:
        for node in self.nodes:
            node.pause(duration)

    def drain(self) -> None:
        """Told to end; ended, if it takes too long; then it begins anew."""
        if not self.alive or self._resting:
            return
        self.cluster.world.note(self.name, "drains")
        self._resting = len(self.nodes)
        for node in self.nodes:
            node.deliver(node.life, Drain())
        self.cluster.world.after(DRAINED_AT_LATEST, partial(self._kill, self.deaths))

    def _rested(self) -> None:
        """Or it was replaced, and has died of it."""
        self._resting -= 1
        if self._resting == 0:
            again = partial(self._kill, self.deaths)
            self.cluster.world.at(self.cluster.world.now, again)

    def _kill(self, deaths: int) -> None:
        if deaths == self.deaths:
            self.die(down=self.cluster.world.between(10 * MS, SECOND), power=False)

    def die(self, *, down: Nanoseconds, power: bool = True) -> None:
        """Stop at once, and start again later."""
        if not any(node.alive for node in self.nodes):
            return
        self._resting = 0
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
            return
        for node in self.nodes:
            self.cluster.link(node, self.cluster.nodes)


class Cluster:
    """Metadata and some brokers, each in a process of its own, or one of each in one."""

    def __init__(self, world: World, options: Options) -> None:
        self.world = world
        self.options = options
        self.network = Network(world, Weather())
        self.store = SimStore(world)
        self.around = Surroundings(world, CLUSTER, self.network, self.store)
        self.disk = SimDisk(world, "/journal")
        lease = options.lease_ms * MS
        self.etcd = SimEtcd(world, self.network, lease, options.kept_entries)
        names = [f"{METADATA}-{n}" for n in range(options.members)] or [METADATA]
        self.members = [Node(self.around, name, self._metadata) for name in names]
        self.brokers = [
            Node(self.around, f"broker-{number}", self._broker)
            for number in range(1, options.brokers + 1)
        ]
        self.nodes = [*self.members, *self.brokers]
        self.processes: list[Process] = []
        for node in self.nodes:
            if not options.embedded or not self.processes:
                self.processes.append(Process(self, "up" if options.embedded else node.name))
            self.processes[-1].join(node)
        if not options.members:
            self.processes[0].disk = self.disk

    @property
    def is_group(self) -> bool:
        return self.options.members > 0

    @property
    def addresses(self) -> list[str]:
        """What a client is given: brokers of a pool by their own, one process as it is."""
        return [_address(node) for node in self.brokers] if self.is_group else [""]

    def at(self, address: str) -> Node | None:
        """Which broker listens there; without an address, any that chance will."""
        if not address:
            return self.world.rng.choice(self.brokers)
        return next((node for node in self.brokers if _address(node) == address), None)

    def process(self, node: str) -> Process:
        """In which it lives."""
        return next(each for each in self.processes if node in [one.name for one in each.nodes])

    def start(self) -> None:
        for process in self.processes:
            process.live()

    def leading(self) -> Metadata | None:
        """Who leads: of a group, the one that etcd says does, if it knows already."""
        if not self.is_group:
            machine = self.members[0].machine
            return machine if isinstance(machine, Metadata) else None
        name = self.etcd.leader
        machine = self.around.nodes[name].machine if name else None
        return machine.leader if isinstance(machine, Member) else None

    def leader(self) -> Metadata:
        found = self.leading()
        assert found is not None, "asked for when it is sure that somebody leads"
        return found

    def states(self) -> list[tuple[int, State]]:
        """Every replica that is alive, by the entry up to which it knows the journal."""
        machines = [node.machine for node in self.members]
        fit = [each for each in machines if isinstance(each, Member) and not each.unfit]
        alone = [each for each in machines if isinstance(each, Metadata)]
        return [(each.index, each.state) for each in (*fit, *alone)]

    def recover(self) -> Metadata:
        """The metadata as a new life would find them."""
        if not self.is_group:
            return self._recovered(self._journal().recover())
        return self._recovered(Recovered(None, 1, self.etcd.entries))

    def link(self, node: Node, others: list[Node]) -> None:
        """Connections between processes come back; those of a queue are never away."""
        if not self.is_group:
            return
        for one, other in ((node, each) for each in others if each is not node):
            for told, about in ((one, other), (other, one)):
                linked = partial(told.deliver, told.life, Linked(about.name))
                self.world.after(self.world.between(0, 50 * MS), linked)

    def mend(self) -> None:
        """No link is cut any more."""
        cut = self.network.mend()
        for one, other in product(self.nodes, self.nodes):
            if one.name < other.name and {(one.name, other.name), (other.name, one.name)} & cut:
                self.link(one, [other])

    def _recovered(self, found: Recovered) -> Metadata:
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
        if not self.is_group:
            node.journal = journal = self._journal()
            return self._recovered(journal.recover())
        life = node.life
        node.coordinator = SimCoordinator(
            self.etcd, node.name, node.now, partial(node.act, life), partial(node.deliver, life)
        )
        process = next(each for each in self.processes if node in each.nodes)
        return Member(CLUSTER, self.options.limits, process.knows)

    def _broker(self, node: Node) -> Machine:
        life = self.world.rng.randbytes(16)
        members = [member.name for member in self.members]
        address = _address(node) if self.is_group else ""
        return Broker(node.name, CLUSTER, self.options.limits, members, life, address)


def _address(node: Node) -> str:
    return f"{node.name}:1"
