"""A whole cluster: metadata on a disk or a group on etcd, brokers, the object store, and who shares
a process.
"""

from collections.abc import Callable
from functools import partial

import msgspec

from anabranch.core.bolt.broker.broker import Broker
from anabranch.core.bolt.metadata.leader import Metadata
from anabranch.core.bolt.metadata.member import Member
from anabranch.core.bolt.protocol.codec import CODEC
from anabranch.core.bolt.protocol.commands import FORMAT
from anabranch.core.bolt.protocol.letters import FromMetadata, ToMetadata
from anabranch.core.bolt.protocol.messages import (
    PROTOCOL_VERSION,
    Confirmed,
    Delivered,
    Failed,
    Hello,
    Welcome,
)
from anabranch.core.bolt.state.state import State
from anabranch.core.limits import Limits
from anabranch.core.machine import Machine
from anabranch.core.types import MS
from anabranch.ports import Recovered
from anabranch.shell.journal.file_journal import FileJournal
from anabranch_sim.bolt.options import Options
from anabranch_sim.world.coordinator import SimCoordinator
from anabranch_sim.world.deployment import Deployment, Process
from anabranch_sim.world.disk import SimDisk
from anabranch_sim.world.etcd import SimEtcd
from anabranch_sim.world.events import World
from anabranch_sim.world.network import Network, NetworkFaults
from anabranch_sim.world.node import Node, Surroundings
from anabranch_sim.world.store import SimStore
from anabranch_sim.world.wire import ClientWire, Wire

METADATA = "metadata"
CLUSTER = "sim"


class Cluster(Deployment):
    """Metadata and some brokers, each in a process of its own, or one of each in one."""

    reconnected = 50 * MS

    def __init__(self, world: World, options: Options) -> None:
        self.options = options
        network, self.store = Network(world, NetworkFaults()), SimStore(world)
        self.disk = SimDisk(world, "/journal")
        around = Surroundings(world, CLUSTER, network, self.store, bolt_wire(options.limits))
        around.is_fenced = _is_fenced
        super().__init__(around)
        lease = options.lease_ms * MS
        self.etcd = SimEtcd(world, self.network, lease, options.kept_entries)
        names = [f"{METADATA}-{n}" for n in range(options.members)] or [METADATA]
        self.members = [self._house(name, self._metadata) for name in names]
        self.brokers = [
            self._house(f"broker-{number}", self._broker)
            for number in range(1, options.brokers + 1)
        ]
        if not options.members:
            self.process_of(METADATA).disk = self.disk

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

    def start(self) -> None:
        for process in self.processes.values():
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
        """Nodes of one process speak through a queue, which is never cut."""
        if self.is_group:
            super().link(node, others)

    def _house(self, name: str, begin: Callable[[Node], Machine]) -> Node:
        process = "up" if self.options.embedded else name
        return self.house(
            name, begin, self.processes.get(process) or Process(self, process, FORMAT)
        )

    def _recovered(self, found: Recovered) -> Metadata:
        image = found.snapshot.content if found.snapshot else None
        # Upgrades in this world are to versions that know more than this one.
        knows = max(process.knows for process in self.processes.values())
        return Metadata.recovered(
            CLUSTER, self.options.limits, image, found.entries, found.last, knows=knows
        )

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
        return Member(CLUSTER, self.options.limits, self.process_of(node.name).knows)

    def _broker(self, node: Node) -> Machine:
        life = self.world.rng.randbytes(16)
        members = [member.name for member in self.members]
        address = _address(node) if self.is_group else ""
        return Broker(node.name, CLUSTER, self.options.limits, members, life, address)


def _address(node: Node) -> str:
    return f"{node.name}:1"


def _is_fenced(machine: Machine) -> bool:
    return isinstance(machine, Broker) and machine.fenced is not None


def bolt_wire(limits: Limits) -> Wire:
    return Wire(
        letter=msgspec.msgpack.Decoder(ToMetadata | FromMetadata).decode,
        clients=ClientWire(
            codec=CODEC,
            frame_bytes_max=limits.frame_bytes_max,
            hello=Hello,
            welcome=partial(_welcome, limits),
            pushed=(Delivered, Confirmed, Failed),
        ),
    )


def _welcome(limits: Limits, node: str) -> Welcome:
    return Welcome(
        version=PROTOCOL_VERSION,
        cluster=CLUSTER,
        server=node,
        record_bytes_max=limits.record_bytes_max,
        batch_bytes_max=limits.batch_bytes_max,
        batch_records_max=limits.batch_records_max,
    )
