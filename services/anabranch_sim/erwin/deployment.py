"""A whole deployment of Erwin: sequencers, replicas of shards and controllers, each in its own
process.
"""

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from anabranch.core.erwin.controller.config import ControllerConfig, ShardNodes
from anabranch.core.erwin.controller.controller import Controller
from anabranch.core.erwin.invariants.witness import Witness
from anabranch.core.erwin.orderer.config import SequencerConfig
from anabranch.core.erwin.orderer.sequencer import Sequencer
from anabranch.core.erwin.protocol.rows import Mode
from anabranch.core.erwin.shard.config import ErwinShardConfig
from anabranch.core.erwin.shard.shard import ErwinShard
from anabranch.core.limits import Limits
from anabranch.core.machine import Machine
from anabranch.core.types import MS, Nanoseconds
from anabranch.shell.journal.black_box import BlackBoxJournal
from anabranch.shell.journal.file_journal import FileJournal
from anabranch_sim.erwin.options import STRAGGLERS, Options
from anabranch_sim.erwin.wire import CLUSTER, erwin_wire, sequencing_wire, shard_wire
from anabranch_sim.world.black_box import SimBlackBox
from anabranch_sim.world.coordinator import SimCoordinator
from anabranch_sim.world.deployment import Deployment, Process
from anabranch_sim.world.disk import SimDisk
from anabranch_sim.world.etcd import SimEtcd
from anabranch_sim.world.events import SECOND, World
from anabranch_sim.world.network import Network, NetworkFaults
from anabranch_sim.world.node import Node, Surroundings
from anabranch_sim.world.store import SimStore
from anabranch_sim.world.wire import ClientWire

_LEASE: Nanoseconds = SECOND // 2


class Host(Process):
    """A process whose node may lose what it held in memory when it dies."""

    deployment: "ErwinDeployment"

    def die(self, *, down: Nanoseconds, power: bool = True) -> None:
        if any(node.alive for node in self.nodes) and not self.deployment.options.fsync:
            self.deployment.witness.on_loss(self.name)
        super().die(down=down, power=power)


class ErwinDeployment(Deployment):
    """Sequencers, replicas and controllers."""

    def __init__(self, world: World, options: Options, witness: Witness) -> None:
        self.options = options
        self.witness = witness
        self.limits = limits_of(options)
        network = Network(world, NetworkFaults())
        super().__init__(Surroundings(world, CLUSTER, network, SimStore(world), erwin_wire()))
        self.around.overhear, self.around.on_event = witness.observe, witness.on_event
        self.boxes: dict[str, SimBlackBox] = {}
        self.box_faults = options.boxes
        self.etcd = SimEtcd(world, network, _LEASE, 1_000)
        self.sequencers = _numbered("sequencer", options.sequencers)
        self.controllers = _numbered("controller", options.controllers)
        self.shards = {
            chr(ord("a") + number): _numbered(chr(ord("a") + number), options.copies)
            for number in range(options.shards)
        }
        later = "joins" in options.traits
        self.late = frozenset(list(self.shards)[1:] if later else ())
        """Shards that are added to the log when it runs."""
        for name in self.sequencers:
            self._house(name, self._sequencer, sequencing_wire(self.limits))
        for shard, replicas in self.shards.items():
            for name in replicas:
                self._house(name, partial(self._shard, shard), shard_wire(self.limits))
        for name in self.controllers:
            self._house(name, self._controller, None)

    @property
    def shard_names(self) -> list[str]:
        return list(self.shards)

    @property
    def replicas(self) -> list[str]:
        return [name for replicas in self.shards.values() for name in replicas]

    @property
    def addresses(self) -> tuple[str, ...]:
        """The nodes that clients speak to."""
        return (*self.sequencers, *self.replicas)

    @property
    def silence(self) -> Nanoseconds:
        """After this a silent node is done without."""
        return self.limits.silent_ms * MS

    def start(self) -> None:
        late = {replica: name for name in self.late for replica in self.shards[name]}
        begins = {
            name: self.world.between(0, self.options.chaos_ms * MS) for name in sorted(self.late)
        }
        for name, process in self.processes.items():
            after = begins[late[name]] if name in late else 0
            self.world.after(after + self.world.between(0, 5 * MS), process.live)

    def wipe(self, name: str, down: Nanoseconds) -> None:
        """A node dies, and comes back with an empty disk."""
        process = self.processes[name]
        process.die(down=down)
        process.disk = SimDisk(self.world, f"/{name}")
        self.witness.on_loss(name)

    def _house(
        self, name: str, begin: Callable[[Node], Machine], clients: ClientWire | None
    ) -> None:
        process = Host(self, name)
        process.disk = SimDisk(self.world, f"/{name}")
        node = self.house(name, begin, process)
        node.sync_delay = MS
        node.clients = clients

    def _journal(self, name: str) -> FileJournal:
        disk = self.processes[name].disk
        assert disk is not None
        segment = self.options.segment_bytes
        return FileJournal(disk, CLUSTER, segment_bytes=segment, ahead_bytes=1 << 10)

    def _box_journal(self, shard: str, writer: str) -> BlackBoxJournal:
        """A new life of its writer. The box is somebody else's, and outlives everything."""
        box = self.boxes.setdefault(shard, SimBlackBox(self.world.rng))
        box.faults = self.box_faults
        box.on_held_up = partial(self._on_held_up, writer)
        life = 1 + self.world.rng.getrandbits(60)
        return BlackBoxJournal(box, shard, life, now=lambda: self.world.now / SECOND)

    def _on_held_up(self, writer: str) -> None:
        """Its writer dies before it sends them again: they arrive in the midst of a later life."""
        if self.options.faults:
            down = self.world.between(MS, 100 * MS)
            self.world.at(self.world.now, partial(self.processes[writer].die, down=down))

    def _sequencer(self, node: Node) -> Machine:
        config = SequencerConfig(
            node=node.name,
            controllers=self.controllers,
            fsync=self.options.fsync,
            mode=Mode(self.options.mode),
            hands_over=True,
        )
        machine = Sequencer(config, self.limits)
        node.journal = journal = self._journal(node.name)
        journal.recover_into(machine.recover, machine.replayed)
        return machine

    def _shard(self, shard: str, node: Node) -> Machine:
        config = ErwinShardConfig(
            shard=shard,
            node=node.name,
            replicas=self.shards[shard],
            controllers=self.controllers,
            hands_over=True,
            far=bool(self.options.boxes),
        )
        machine = ErwinShard(config, self.limits)
        node.journal = journal = (
            self._box_journal(shard, node.name) if self.options.boxes else self._journal(node.name)
        )
        journal.recover_into(machine.recover, machine.replayed)
        return machine

    def _controller(self, node: Node) -> Machine:
        alone = len(self.controllers) == 1
        config = ControllerConfig(
            node=node.name,
            sequencers=self.sequencers,
            shards=tuple(
                ShardNodes(name=name, nodes=nodes)
                for name, nodes in self.shards.items()
                if name not in self.late
            ),
            mode=Mode(self.options.mode),
            fsync=self.options.fsync,
            accept_loss=not self.options.fsync,
            alone=alone,
        )
        machine = Controller(config, self.limits)
        if alone:
            node.journal = journal = self._journal(node.name)
            journal.recover_into(machine.recover, machine.replayed)
        else:
            life = node.life
            act, deliver = partial(node.act, life), partial(node.deliver, life)
            node.coordinator = SimCoordinator(self.etcd, node.name, node.now, act, deliver)
        return machine


def limits_of(options: Options) -> Limits:
    limits = Limits()
    silent_ms = 8 * options.present_ms
    # One that is slow is heard all the same, and clients that wait for it are patient enough.
    slow = STRAGGLERS in options.faults
    return replace(
        limits,
        ring_bytes_max=options.ring_bytes,
        batch_bytes_max=min(limits.batch_bytes_max, options.ring_bytes // 2),
        present_ms=options.present_ms,
        silent_ms=silent_ms,
        return_ms=2 * silent_ms,
        noop_ms=200,
        straggle_ms=silent_ms // 2 if slow else 2 * silent_ms,
        straggles_ms=10 * silent_ms if slow else 20 * silent_ms,
    )


def _numbered(what: str, count: int) -> tuple[str, ...]:
    return tuple(f"{what}-{number}" for number in range(count))
