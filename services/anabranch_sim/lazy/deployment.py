"""A cluster of Bolt, and before one of its logs a lazy front, each node in its own process."""

from collections.abc import Callable

import msgspec

from anabranch.core.bolt.broker.broker import Broker
from anabranch.core.bolt.broker.control import OtherEngines
from anabranch.core.bolt.front.config import FrontControllerConfig, FrontSequencerConfig
from anabranch.core.bolt.front.controller import FrontController
from anabranch.core.bolt.front.letters import FrontControl, FrontLeads
from anabranch.core.bolt.front.questions import LOG, AskLog
from anabranch.core.bolt.front.sequencer import FrontSequencer
from anabranch.core.bolt.logs.front import Front
from anabranch.core.bolt.protocol.fronts import FrontConfiguration
from anabranch.core.bolt.protocol.letters import FromMetadata, ToMetadata
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.machine import Machine
from anabranch.core.sequencing.protocol.letters import SequencingLetter
from anabranch.core.types import MS, LogId
from anabranch.shell.journal.file_journal import FileJournal
from anabranch_sim.bolt.cluster import CLUSTER, Cluster
from anabranch_sim.erwin.wire import sequencing_wire
from anabranch_sim.lazy.door import FrontDoor
from anabranch_sim.lazy.options import Options
from anabranch_sim.world.deployment import Process
from anabranch_sim.world.disk import SimDisk
from anabranch_sim.world.events import World
from anabranch_sim.world.node import Node
from anabranch_sim.world.wire import ClientWire, Wire

_letter = msgspec.msgpack.Decoder(
    ToMetadata | FromMetadata | SequencingLetter | FrontConfiguration | FrontControl | FrontLeads
).decode


class FrontProcess(Process):
    """A process of the front: what it has asked of the log dies with it."""

    deployment: "LazyDeployment"

    def die(self, *, down: int, power: bool = True) -> None:
        super().die(down=down, power=power)
        for node in self.nodes:
            door = self.deployment.doors.pop(node.name, None)
            if door is not None:
                door.close()


class LazyDeployment(Cluster):
    """The front's nodes start when its log has been created."""

    def __init__(self, world: World, options: Options) -> None:
        super().__init__(world, options.bolt)
        self.lazy = options
        self.limits = options.bolt.limits
        self.log = LogId(0)
        self.doors: dict[str, FrontDoor] = {}
        self.around.wire = Wire(letter=_letter, clients=self.around.wire.clients)
        self.around.doors[LOG] = self._asked
        self.sequencers = tuple(f"sequencer-{n}" for n in range(options.sequencers))
        self.controllers = tuple(f"controller-{n}" for n in range(options.controllers))
        self.front_processes: list[Process] = []
        for name in self.sequencers:
            self._front(name, self._sequencer, sequencing_wire(self.limits))
        for name in self.controllers:
            self._front(name, self._controller, None)

    def start(self) -> None:
        for process in self.processes.values():
            if process not in self.front_processes:
                process.live()

    def start_front(self, log: LogId) -> None:
        self.log = log
        for process in self.front_processes:
            self.world.after(self.world.between(0, 5 * MS), process.live)

    @property
    def replica(self) -> Replica | None:
        """The state of the metadata, if somebody leads them."""
        leading = self.leading()
        return leading.state.replica if leading is not None else None

    @property
    def front(self) -> Front | None:
        replica = self.replica
        log = replica.forest.logs.get(self.log) if replica is not None else None
        return log.front if log is not None else None

    def sequencer(self, name: str) -> FrontSequencer | None:
        machine = self.machine(name)
        return machine if isinstance(machine, FrontSequencer) else None

    def _front(
        self, name: str, begin: Callable[[Node], Machine], clients: ClientWire | None
    ) -> None:
        process = FrontProcess(self, name)
        process.disk = SimDisk(self.world, f"/{name}")
        node = self.house(name, begin, process)
        node.sync_delay = MS
        node.clients = clients
        self.front_processes.append(process)

    def _asked(self, node: Node, letter: AskLog) -> None:
        door = self.doors.get(node.name)
        if door is None:
            door = self.doors[node.name] = FrontDoor(self, node)
        assert door.life == node.life, "a process has its door closed when it dies"
        door.ask(letter)

    def _broker(self, node: Node) -> Machine:
        life = self.world.rng.randbytes(16)
        members = [member.name for member in self.members]
        address = f"{node.name}:1" if self.is_group else ""
        apart = OtherEngines.SUPERVISOR
        return Broker(node.name, CLUSTER, self.limits, members, life, address, others=apart)

    def _sequencer(self, node: Node) -> Machine:
        config = FrontSequencerConfig(
            node=node.name,
            log=self.log,
            controllers=self.controllers,
            fsync=self.lazy.fsync,
            hands_over=True,
        )
        machine = FrontSequencer(config, self.limits)
        disk = self.processes[node.name].disk
        assert disk is not None
        segment = self.lazy.bolt.segment_bytes
        journal = FileJournal(disk, CLUSTER, segment_bytes=segment, ahead_bytes=1 << 10)
        node.journal = journal
        journal.recover_into(machine.recover, machine.replayed)
        return machine

    def _controller(self, node: Node) -> Machine:
        config = FrontControllerConfig(
            node=node.name,
            log=self.log,
            sequencers=self.sequencers,
            controllers=self.controllers,
            accept_loss=not self.lazy.fsync,
        )
        return FrontController(config, self.limits)
