"""One seed of a consensus group: members that crash and lose the network and their disks' trust."""

from collections.abc import Mapping
from functools import partial

import msgspec

from anabranch.core.consensus.consensus import ConsensusConfig, ConsensusTiming
from anabranch.core.consensus.invariants import GroupInvariants
from anabranch.core.consensus.letters import ConsensusLetter
from anabranch.core.machine import Effect, Machine, Send
from anabranch.core.types import MS, Nanoseconds
from anabranch.shell.journal.file_journal import FileJournal
from anabranch_sim.consensus.machine import GroupMember
from anabranch_sim.consensus.options import Options
from anabranch_sim.world.deployment import Deployment, Process
from anabranch_sim.world.disk import SimDisk
from anabranch_sim.world.events import SECOND, World
from anabranch_sim.world.faults import DeploymentFaults, Pace, Way
from anabranch_sim.world.network import Network, NetworkFaults
from anabranch_sim.world.node import Node, Surroundings
from anabranch_sim.world.simulation import Tell
from anabranch_sim.world.store import SimStore
from anabranch_sim.world.wire import Wire

CLUSTER = "sim"
CONVERGENCE: Nanoseconds = 30 * SECOND
"""How long a healed group may take until all members have all entries."""
PACE = Pace(
    strikes=(5 * MS, 120 * MS),
    down=(5 * MS, 300 * MS),
    pauses=(10 * MS, 300 * MS),
    cut=300 * MS,
    disk=100 * MS,
    held=300 * MS,
)
_LOOK: Nanoseconds = 5 * MS
_SETTLED = 10
"""Entries that are committed after the healing."""


class Group(Deployment):
    """The members, each in a process with a disk of its own."""

    def __init__(self, world: World, options: Options, invariants: GroupInvariants) -> None:
        wire = Wire(letter=msgspec.msgpack.Decoder(ConsensusLetter).decode)
        network = Network(world, NetworkFaults())
        super().__init__(Surroundings(world, CLUSTER, network, SimStore(world), wire))
        self.options = options
        self.invariants = invariants
        self.around.overhear = self._overhear
        self.members = tuple(f"member-{number}" for number in range(options.members))
        for name in self.members:
            process = Process(self, name)
            process.disk = SimDisk(world, f"/{name}")
            self.house(name, self._member, process).sync_delay = MS

    def start(self) -> None:
        for process in self.processes.values():
            process.live()

    def machines(self) -> list[GroupMember]:
        """The members that are alive."""
        machines = [node.machine for node in self.nodes]
        return [each for each in machines if isinstance(each, GroupMember)]

    def leader(self) -> str | None:
        leading = [each.consensus for each in self.machines() if each.consensus.leads]
        return max(leading, key=lambda each: each.term).node if leading else None

    def _member(self, node: Node) -> Machine:
        options, disk = self.options, self.process_of(node.name).disk
        assert disk is not None
        config = ConsensusConfig(
            node=node.name,
            members=self.members,
            no_op=b"",
            timing=ConsensusTiming(
                heartbeat_ms=options.heartbeat_ms, election_ms=options.election_ms
            ),
            kept_entries=options.kept_entries,
            snapshot_entries=options.snapshot_entries,
        )
        member = GroupMember(
            config,
            options.propose_ms,
            partial(self.invariants.on_commit, node.name),
            partial(self.invariants.on_lead, node.name),
        )
        segment = options.segment_bytes
        node.journal = FileJournal(disk, CLUSTER, segment_bytes=segment, ahead_bytes=1 << 10)
        member.recover(node.journal.recover())
        return member

    def _overhear(self, node: str, effect: Effect) -> None:
        if isinstance(effect, Send):
            self.invariants.on_letter(node, effect.message)


class GroupFaults(DeploymentFaults):
    def __init__(self, group: Group) -> None:
        self.group = group
        super().__init__(group, (), group.options.faults, PACE)

    def own_ways(self) -> Mapping[str, Way]:
        return {
            "drains": self._drain,
            "elections": self._disturb_election,
            "leaders": self._kill_leader,
            "power": self._cut_power,
        }

    def heal(self) -> None:
        super().heal()
        for node in self.group.nodes:
            self.group.link(node, self.group.nodes)

    def _drain(self) -> None:
        self.any_process().drain()

    def _kill_leader(self) -> None:
        leader = self.group.leader()
        if leader is not None:
            self.kill(self.processes[leader])

    def _disturb_election(self) -> None:
        """The leader dies, and while another is elected voters do, who are soon back."""
        self._kill_leader()
        election: Nanoseconds = self.group.options.election_ms * MS
        for _ in range(6):
            self.world.after(self.world.between(0, 3 * election), self._bounce)

    def _bounce(self) -> None:
        if not self.over:
            self.any_process().die(down=self.world.between(MS // 10, 4 * MS))

    def _cut_power(self) -> None:
        """One machine's, or that of all."""
        if self.world.chance(0.5):
            self.kill(self.any_process())
        else:
            for process in self.processes.values():
                process.die(down=self.down())


class ConsensusPlugin:
    """A group and its faults."""

    def __init__(self, options: Options, tell: Tell | None = None) -> None:
        self.options = options
        self.world = World(options.seed, tell=tell)
        self.chaos: Nanoseconds = options.chaos_ms * MS
        self.invariants = GroupInvariants()
        self.group = Group(self.world, options, self.invariants)
        self.faults = GroupFaults(self.group)
        self._violations: list[str] = []

    @staticmethod
    def of(seed: int, tell: Tell | None = None) -> "ConsensusPlugin":
        return ConsensusPlugin(Options.of(seed), tell)

    def start(self) -> None:
        self.group.start()

    def is_done(self) -> bool:
        return bool(self.invariants.violations)

    def converge(self) -> bool:
        """All members have all that was committed in the faults, and what comes after them."""
        goal = len(self.invariants.committed) + _SETTLED
        if self.world.wait(lambda: self.is_done() or self._have(goal), CONVERGENCE, _LOOK):
            return True
        have = [len(each.applied) for each in self.group.machines()]
        self._violations.append(f"liveness: of {goal} entries the members have {have}")
        return False

    def check(self) -> None:
        committed = self.invariants.committed
        for machine in self.group.machines():
            if machine.applied != committed[: len(machine.applied)]:
                self._violations.append(f"one log: {machine.consensus.node} holds another")

    def violations(self) -> list[str]:
        return self._violations + self.invariants.violations

    def counts(self) -> dict[str, int]:
        leaders = len(self.invariants.leaders)
        return {"entries": len(self.invariants.committed), "terms": leaders}

    def _have(self, goal: int) -> bool:
        machines = self.group.machines()
        return len(machines) == self.options.members and all(
            len(each.applied) >= goal for each in machines
        )
