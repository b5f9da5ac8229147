"""Faults of a Bolt cluster: of its metadata group, etcd and the object store, beside all others."""

from collections.abc import Mapping, Sequence

from anabranch.core.bolt.protocol.commands import FORMAT
from anabranch.core.types import MS
from anabranch_sim.bolt.cluster import Cluster
from anabranch_sim.world.deployment import Process
from anabranch_sim.world.etcd import ETCD
from anabranch_sim.world.events import SECOND
from anabranch_sim.world.faults import DIES_WITHIN, DeploymentFaults, Pace, Resettable, Way
from anabranch_sim.world.store import StoreFaults

PACE = Pace(
    strikes=(50 * MS, 1_500 * MS),
    down=(100 * MS, 3 * SECOND),
    pauses=(6 * SECOND,),
    cut=4 * SECOND,
    disk=2 * SECOND,
    held=5 * SECOND,
)


class BoltFaults(DeploymentFaults):
    def __init__(self, cluster: Cluster, clients: Sequence[Resettable]) -> None:
        self.cluster = cluster
        faults = cluster.options.faults
        super().__init__(cluster, clients, faults, PACE)
        rng = self.rng
        if "store" in faults:
            cluster.store.faults = StoreFaults(
                delay=rng.choice((2 * MS, 20 * MS)),
                slow=rng.choice((0, 0.05, 0.3)),
                refuses=rng.choice((0, 0.02, 0.2)),
                lies=rng.choice((0, 0.02, 0.1)),
            )

    def own_ways(self) -> Mapping[str, Way]:
        if not self.cluster.is_group:
            return {"power": self._cut_power}
        return {
            "drains": self._drain,
            "full": self._fill_etcd,
            "journal": self._stop_etcd,
            "upgrades": self._upgrade,
            "zombies": self._isolate_leader,
        }

    def addresses(self) -> list[str]:
        return super().addresses() + [ETCD] * self.cluster.is_group

    def heal(self) -> None:
        super().heal()
        self.cluster.etcd.heal()
        self.cluster.store.heal()
        newest = max(process.knows for process in self.processes.values())
        for process in self.processes.values():
            if process.knows < newest:
                self._install(process, newest)

    def _cut_power(self) -> None:
        """Now, or in the midst of one of the next operations of the disk."""
        process = self.any_process()
        if process.disk is not None and self.world.chance(0.7):
            process.disk.dies_in = self.world.between(0, DIES_WITHIN)
        else:
            process.die(down=self.down())

    def _drain(self) -> None:
        """One process, the leader's rather often, or all of them one after the other."""
        way = self.rng.random()
        if way < 0.3:
            for turn, process in enumerate(self.processes.values()):
                self.world.after(turn * SECOND // 2, process.drain)
        elif way < 0.6:
            self._leader().drain()
        else:
            self.any_process().drain()

    def _upgrade(self) -> None:
        """One process gets a version that knows a later format."""
        old = [process for process in self.processes.values() if process.knows == FORMAT]
        if old:
            self._install(self.rng.choice(old), FORMAT + 1)

    def _install(self, process: Process, knows: int) -> None:
        process.knows = knows
        process.drain()

    def _leader(self) -> Process:
        """The process of the member that leads by what etcd says."""
        name = self.cluster.etcd.leader
        return self.processes[name] if name else next(iter(self.processes.values()))

    def _isolate_leader(self) -> None:
        """From etcd and the rest, with some brokers: it goes on believing that it leads."""
        brokers = [node.name for node in self.cluster.brokers]
        believers = self.rng.sample(brokers, self.rng.randrange(0, len(brokers)))
        here = [self._leader().name, *believers]
        nodes = [node.name for node in self.cluster.nodes]
        self.sever(here, [ETCD, *(name for name in nodes if name not in here)])
        self.world.after(self.world.between(SECOND, 12 * SECOND), self.mend)

    def _stop_etcd(self) -> None:
        self.cluster.etcd.go_down(self.world.between(100 * MS, 10 * SECOND))

    def _fill_etcd(self) -> None:
        self.cluster.etcd.full = True
        self.later(2 * SECOND, self._empty_etcd)

    def _empty_etcd(self) -> None:
        self.cluster.etcd.full = False
