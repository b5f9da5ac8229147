"""Faults: what a run's options allow, at random times, until the healing begins."""

from collections.abc import Callable

from anabranch.core.types import MS, Nanoseconds
from anabranch_sim.actor import Actor
from anabranch_sim.cluster import Cluster, Process
from anabranch_sim.disk import Troubles
from anabranch_sim.network import Weather
from anabranch_sim.store import Moods
from anabranch_sim.world import SECOND

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
            "disk": self._trouble_disk,
            "full": self._fill_disk,
            "pauses": self._pause,
            "power": self._cut_power,
            "resets": self._reset,
        }
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
        self.cluster.network.heal()
        self.cluster.store.heal()
        self.cluster.disk.troubles = Troubles()
        self.cluster.disk.dies_in = None

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
        node = self.world.rng.choice([*self.cluster.brokers, self.cluster.metadata])
        node.pause(self.world.between(100 * MS, 6 * SECOND))

    def _set_clock(self) -> None:
        """A clock is wrong from the node's next life on: within one it never goes back."""
        process = self._process()
        for node in process.nodes:
            node.clock_error = self.world.between(0, 2 * CLOCK_ERROR_MAX) - CLOCK_ERROR_MAX
        process.die(down=self._down(), power=False)

    def _reset(self) -> None:
        if self.actors:
            self.world.rng.choice(self.actors).reset("reset by the network")

    def _cut(self) -> None:
        """One way, both ways, or everything of one node."""
        network, rng = self.cluster.network, self.world.rng
        nodes = [node.name for node in (*self.cluster.brokers, self.cluster.metadata)]
        names = nodes + [actor.name for actor in self.actors]
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
        self._later(4 * SECOND, network.mend)

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
