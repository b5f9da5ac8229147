"""Faults: what a run's options allow, at random times, until the healing begins."""

from collections.abc import Callable
from itertools import product

from anabranch.core.bolt.protocol.commands import FORMAT
from anabranch.core.types import MS, Nanoseconds
from anabranch_sim.bolt.client import Actor
from anabranch_sim.bolt.cluster import Cluster, Process
from anabranch_sim.world.disk import Troubles
from anabranch_sim.world.etcd import ETCD
from anabranch_sim.world.events import SECOND
from anabranch_sim.world.network import Weather
from anabranch_sim.world.store import Moods

CLOCK_ERROR_MAX: Nanoseconds = 5 * SECOND


class Nemesis:
    """Strikes every now and then. After `heal` everything works, and what was down comes back."""

    def __init__(self, cluster: Cluster, actors: list[Actor]) -> None:
        self.cluster = cluster
        self.world = cluster.world
        self.actors = actors
        self.over = False
        self.strikes = 0
        faults = cluster.options.faults
        ways: dict[str, Callable[[], None]] = {
            "cuts": self._cut,
            "clocks": self._set_clock,
            "crashes": self._crash,
            "full": self._fill_disk,
            "pauses": self._pause,
            "resets": self._reset,
        }
        if cluster.is_group:
            ways |= {
                "drains": self._drain,
                "full": self._fill_etcd,
                "journal": self._stop_etcd,
                "upgrades": self._upgrade,
                "zombies": self._isolate_leader,
            }
        else:
            ways |= {"disk": self._trouble_disk, "power": self._cut_power}
        self._ways = [ways[fault] for fault in faults if fault in ways]
        rng = self.world.rng
        if "network" in faults:
            cluster.network.weather = Weather(
                delay=rng.choice((MS, 5 * MS)),
                tail=rng.choice((0, 0.01, 0.1)),
                loss=rng.choice((0, 0.01, 0.05, 0.2)),
                duplicate=rng.choice((0, 0.02, 0.1)),
                held=rng.choice((0, 0.005, 0.03)),
            )
        if "store" in faults:
            cluster.store.moods = Moods(
                delay=rng.choice((2 * MS, 20 * MS)),
                slow=rng.choice((0, 0.05, 0.3)),
                refuses=rng.choice((0, 0.02, 0.2)),
                lies=rng.choice((0, 0.02, 0.1)),
            )

    def start(self) -> None:
        if self._ways:
            self._again()

    def heal(self) -> None:
        self.over = True
        self.world.note("the healing begins")
        self.cluster.mend()
        self.cluster.network.heal()
        self.cluster.etcd.heal()
        self.cluster.store.heal()
        self.cluster.disk.troubles = Troubles()
        self.cluster.disk.dies_in = None
        newest = max(process.knows for process in self.cluster.processes)
        for process in self.cluster.processes:
            if process.knows < newest:
                self._install(process, newest)

    def _again(self) -> None:
        self.world.after(self.world.between(50 * MS, 1_500 * MS), self._strike)

    def _strike(self) -> None:
        if self.over:
            return
        self.strikes += 1
        self.world.rng.choice(self._ways)()
        self._again()

    def _later(self, longest: Nanoseconds, undo: Callable[[], None]) -> None:
        self.world.after(self.world.between(20 * MS, longest), undo)

    def _down(self) -> Nanoseconds:
        return self.world.between(20 * MS, self.world.rng.choice((100 * MS, 3 * SECOND)))

    def _process(self) -> Process:
        return self.world.rng.choice(self.cluster.processes)

    def _crash(self) -> None:
        """The process dies, the machine's page cache lives on."""
        self._process().die(down=self._down(), power=False)

    def _cut_power(self) -> None:
        """Now, or in the midst of one of the next operations of the disk."""
        process = self._process()
        if process.disk is not None and self.world.chance(0.7):
            process.disk.dies_in = self.world.between(0, 12)
        else:
            process.die(down=self._down())

    def _pause(self) -> None:
        duration = self.world.between(100 * MS, 6 * SECOND)
        if self.world.chance(0.5):
            self._process().pause(duration)
        else:
            self.world.rng.choice(self.cluster.nodes).pause(duration)

    def _set_clock(self) -> None:
        """A life that runs follows it slowly and never goes back; the next one begins with it."""
        process = self._process()
        error = self.world.between(0, 2 * CLOCK_ERROR_MAX) - CLOCK_ERROR_MAX
        for node in process.nodes:
            node.clock.step(self.world.now, error)
        if self.world.chance(0.5):
            process.die(down=self._down(), power=False)

    def _drain(self) -> None:
        """One process, the leader's rather often, or all of them one after the other."""
        processes, way = self.cluster.processes, self.world.rng.random()
        if way < 0.3:
            for turn, process in enumerate(processes):
                self.world.after(turn * SECOND // 2, process.drain)
        elif way < 0.6:
            self._leader().drain()
        else:
            self._process().drain()

    def _upgrade(self) -> None:
        """One process gets a version that knows a later format."""
        processes = self.cluster.processes
        old = [process for process in processes if process.knows == FORMAT]
        if old:
            self._install(self.world.rng.choice(old), FORMAT + 1)

    def _install(self, process: Process, knows: int) -> None:
        process.knows = knows
        process.drain()

    def _leader(self) -> Process:
        """Of the one that etcd says leads."""
        name = self.cluster.etcd.leader
        processes = self.cluster.processes
        return next((each for each in processes if each.name == name), processes[0])

    def _isolate_leader(self) -> None:
        """From etcd and the rest, with some brokers: it goes on believing that it leads."""
        rng, brokers = self.world.rng, [node.name for node in self.cluster.brokers]
        believers = rng.sample(brokers, rng.randrange(0, len(brokers)))
        here = [self._leader().name, *believers]
        there = [ETCD, *(node.name for node in self.cluster.nodes if node.name not in here)]
        for one, other in product(here, there):
            self.cluster.network.cut(one, other)
            self.cluster.network.cut(other, one)
        self.world.note("isolated", *here)
        self.world.after(self.world.between(SECOND, 12 * SECOND), self.cluster.mend)

    def _stop_etcd(self) -> None:
        self.cluster.etcd.go_down(self.world.between(100 * MS, 10 * SECOND))

    def _fill_etcd(self) -> None:
        self.cluster.etcd.full = True
        self._later(2 * SECOND, self._empty_etcd)

    def _empty_etcd(self) -> None:
        self.cluster.etcd.full = False

    def _reset(self) -> None:
        if self.actors:
            self.world.rng.choice(self.actors).reset("reset by the network")

    def _cut(self) -> None:
        """One way, both ways, or everything of one node."""
        network, rng = self.cluster.network, self.world.rng
        nodes = [node.name for node in self.cluster.nodes]
        names = nodes + [actor.name for actor in self.actors]
        if self.cluster.is_group:
            names.append(ETCD)
        one = rng.choice(nodes)
        others = [name for name in names if name != one]
        if self.world.chance(0.7):
            others = [rng.choice(others)]
        ways = rng.choice(("to", "from", "both"))
        for other in others:
            if ways != "from":
                network.cut(other, one)
            if ways != "to":
                network.cut(one, other)
        self.world.note("cut", ways, one, *others)
        self._later(4 * SECOND, self.cluster.mend)

    def _trouble_disk(self) -> None:
        rng = self.world.rng
        self.cluster.disk.troubles = Troubles(
            write_fails=rng.choice((0, 0.05, 0.5)),
            sync_fails=rng.choice((0, 0.05, 0.5)),
            flips=rng.choice((0, 0.2)),
        )
        self.world.note("the disk troubles", self.cluster.disk.troubles)
        self._later(2 * SECOND, self._mend_disk)

    def _fill_disk(self) -> None:
        disk = self.cluster.disk
        full = Troubles(bytes_max=disk.used() + self.world.between(0, 3_000))
        disk.troubles = full
        self.world.note("the disk has room for", disk.room())
        self._later(2 * SECOND, self._mend_disk)

    def _mend_disk(self) -> None:
        self.cluster.disk.troubles = Troubles()
