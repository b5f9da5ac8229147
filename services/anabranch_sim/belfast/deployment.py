"""A whole deployment of Belfast: sequencers and replicas of shards, each in its own process."""

from collections.abc import Callable
from functools import partial

from anabranch.core.belfast.sequencer.sequencer import Sequencer
from anabranch.core.belfast.shard.config import ShardConfig
from anabranch.core.belfast.shard.shard import Shard
from anabranch.core.consensus.consensus import ConsensusTiming
from anabranch.core.limits import Limits
from anabranch.core.machine import Machine
from anabranch.core.types import MS
from anabranch.shell.journal.file_journal import FileJournal
from anabranch_sim.belfast.options import Options
from anabranch_sim.belfast.wire import CLUSTER, belfast_wire
from anabranch_sim.world.deployment import Deployment, Process
from anabranch_sim.world.disk import SimDisk
from anabranch_sim.world.events import World
from anabranch_sim.world.network import Network, NetworkFaults
from anabranch_sim.world.node import Node, Surroundings
from anabranch_sim.world.store import SimStore


def observe_commits(sequencer: Sequencer, observe: Callable[[int, bytes], None]) -> None:
    """In place before the machine's first step."""
    commit = sequencer.consensus.on_commit

    def committed(index: int, entry: bytes) -> None:
        observe(index, entry)
        commit(index, entry)

    sequencer.consensus.on_commit = committed


class BelfastDeployment(Deployment):
    """Sequencers and replicas."""

    def __init__(
        self, world: World, options: Options, on_commit: Callable[[str, int, bytes], None]
    ) -> None:
        """`on_commit` receives every entry that a sequencer commits, before the sequencer's own
        machine.
        """
        self.options = options
        self.limits = Limits()
        network, wire = Network(world, NetworkFaults()), belfast_wire(self.limits)
        super().__init__(Surroundings(world, CLUSTER, network, SimStore(world), wire))
        self._on_commit = on_commit
        self.members = tuple(f"seq-{number}" for number in range(options.sequencers))
        self.shards: dict[str, tuple[str, ...]] = {}
        """The replicas of all shards that were ever started."""
        for name in self.members:
            self._house(name, partial(self._sequencer, name))

    def start(self) -> None:
        for name in self.members:
            self.processes[name].live()

    def add_shard(self, name: str, quota: int) -> None:
        """Its replicas begin their first life, each in its own time."""
        replicas = tuple(f"{name}-{number}" for number in range(self.options.copies))
        self.shards[name] = replicas
        for replica in replicas:
            self._house(replica, partial(self._shard, name, replica, replicas, quota))
            self.world.after(self.world.between(0, 5 * MS), self.processes[replica].live)

    def sequencers(self) -> list[Sequencer]:
        """Those that are alive."""
        machines = [self.machine(name) for name in self.members]
        return [each for each in machines if isinstance(each, Sequencer)]

    def leader(self) -> str | None:
        """Who leads; of those who believe that they do, the one of the last term."""
        leading = [
            (machine.consensus.term, name)
            for name in self.members
            if isinstance(machine := self.machine(name), Sequencer) and machine.consensus.leads
        ]
        return max(leading)[1] if leading else None

    def replicas(self) -> list[str]:
        return [name for replicas in self.shards.values() for name in replicas]

    def _house(self, name: str, begin: partial[Machine]) -> None:
        process = Process(self, name)
        process.disk = SimDisk(self.world, f"/{name}")
        self.house(name, begin, process).sync_delay = MS

    def _journal(self, name: str) -> FileJournal:
        disk = self.processes[name].disk
        assert disk is not None
        segment = self.options.segment_bytes
        return FileJournal(disk, CLUSTER, segment_bytes=segment, ahead_bytes=1 << 10)

    def _sequencer(self, name: str, node: Node) -> Machine:
        node.journal = journal = self._journal(name)
        options, kept = self.options, self.options.kept_entries
        timing = ConsensusTiming(
            heartbeat_ms=options.heartbeat_ms, election_ms=10 * options.heartbeat_ms
        )
        sequencer = Sequencer(
            name,
            self.members,
            options.rules,
            self.limits,
            timing,
            kept_entries=kept,
            snapshot_entries=max(1, kept // 2),
        )
        observe_commits(sequencer, partial(self._on_commit, name))
        sequencer.recover(journal.recover())
        return sequencer

    def _shard(
        self, shard: str, name: str, replicas: tuple[str, ...], quota: int, node: Node
    ) -> Machine:
        config = ShardConfig(
            shard=shard,
            node=name,
            replicas=replicas,
            sequencers=self.members,
            quota=quota,
            cache_bytes=self.options.cache_bytes,
        )
        machine = Shard(config, self.limits)
        node.journal = journal = self._journal(name)
        journal.recover_into(machine.recover, machine.replayed)
        return machine
