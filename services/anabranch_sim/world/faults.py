"""Faults: those that a run's options allow, at random times, until the healing begins."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from anabranch.core.types import MS, Nanoseconds
from anabranch_sim.world.deployment import Deployment, Process
from anabranch_sim.world.disk import DiskFaults, SimDisk
from anabranch_sim.world.events import SECOND, World
from anabranch_sim.world.network import NetworkFaults

CLOCK_ERROR_MAX: Nanoseconds = 5 * SECOND
DIES_WITHIN = 12
"""Operations of a disk, in the midst of one of which the power goes."""

Way = Callable[[], None]


class Resettable(Protocol):
    """A client, whose connections may be broken."""

    name: str

    def reset(self, reason: str) -> None: ...


class Faults:
    """Strikes every now and then in one of its ways, until `heal`."""

    def __init__(self, world: World, pauses: tuple[Nanoseconds, Nanoseconds]) -> None:
        self.world = world
        self.over = False
        self.strikes = 0
        self.ways: list[Way] = []
        self._pauses = pauses

    def start(self) -> None:
        if self.ways:
            self._again()

    def heal(self) -> None:
        """From now on everything works, and what is down comes back."""
        self.over = True
        self.world.note("the healing begins")

    def allow(self, ways: Mapping[str, Way], faults: Sequence[str]) -> None:
        self.ways += [ways[fault] for fault in faults if fault in ways]

    def _again(self) -> None:
        self.world.after(self.world.between(*self._pauses), self._strike)

    def _strike(self) -> None:
        if not self.over:
            self.strikes += 1
            self.world.rng.choice(self.ways)()
            self._again()


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How long faults last: shorter and longer than an engine takes to notice them."""

    strikes: tuple[Nanoseconds, Nanoseconds]
    """Between two faults."""
    down: tuple[Nanoseconds, ...]
    """How long a process is down: up to one of these."""
    pauses: tuple[Nanoseconds, ...]
    """How long a node is paused: up to one of these."""
    cut: Nanoseconds
    """How long the network is cut, at the most."""
    disk: Nanoseconds
    """How long a disk fails, at the most."""
    held: Nanoseconds
    """How long the network holds a message, at the most."""


class DeploymentFaults(Faults):
    """Faults of processes, clocks, disks and the network, whatever the processes run."""

    def __init__(
        self,
        deployment: Deployment,
        clients: Sequence[Resettable],
        faults: Sequence[str],
        pace: Pace,
    ) -> None:
        super().__init__(deployment.world, pace.strikes)
        self.processes = deployment.processes
        self.network = deployment.network
        self.rng = deployment.world.rng
        self._deployment = deployment
        self._clients = clients
        self._pace = pace
        shared = {
            "clocks": self._set_clock,
            "crashes": self._crash,
            "cuts": self._cut,
            "disk": self._trouble_disk,
            "full": self._fill_disk,
            "pauses": self._pause,
            "resets": self._reset,
        }
        self.allow({**shared, **self.own_ways()}, faults)
        if "network" in faults:
            self.network.faults = self._network_faults()

    def own_ways(self) -> Mapping[str, Way]:
        """Faults of this engine alone, and those that it has in another way."""
        return {}

    def addresses(self) -> list[str]:
        """What the network may be cut between."""
        nodes = [node.name for node in self._deployment.nodes]
        return nodes + [client.name for client in self._clients]

    def heal(self) -> None:
        super().heal()
        self._deployment.mend()
        self.network.heal()
        for disk in self._deployment.disks():
            disk.faults = DiskFaults()
            disk.dies_in = None

    def later(self, longest: Nanoseconds, undo: Way) -> None:
        self.world.after(self.world.between(20 * MS, longest), undo)

    def down(self) -> Nanoseconds:
        return self.world.between(5 * MS, self.rng.choice(self._pace.down))

    def any_process(self) -> Process:
        return self.rng.choice(list(self.processes.values()))

    def kill_node(self, name: str, down: Nanoseconds | None = None) -> None:
        self.kill(self.processes[name], down)

    def kill(self, process: Process, down: Nanoseconds | None = None) -> None:
        """The process alone, the whole machine, or that in the midst of one of its operations."""
        way = self.rng.random()
        if process.disk is not None and way < 0.3 and down is None:
            process.disk.dies_in = self.world.between(0, DIES_WITHIN)
        else:
            process.die(down=self.down() if down is None else down, power=way < 0.7)

    def sever(self, here: Sequence[str], there: Sequence[str], ways: str = "both") -> None:
        """Cut one group of nodes off from another: what goes `to` it, `from` it, or `both`."""
        for one in here:
            for other in there:
                if ways != "from":
                    self.network.cut(other, one)
                if ways != "to":
                    self.network.cut(one, other)
        self.world.note("cut", ways, *here, "and", *there)

    def mend(self) -> None:
        self._deployment.mend()

    def _crash(self) -> None:
        """The process dies, the machine's page cache lives on."""
        self.any_process().die(down=self.down(), power=False)

    def _pause(self) -> None:
        duration = self.world.between(5 * MS, self.rng.choice(self._pace.pauses))
        if self.world.chance(0.5):
            self.any_process().pause(duration)
        else:
            self.rng.choice(self._deployment.nodes).pause(duration)

    def _set_clock(self) -> None:
        """A life that runs follows it slowly and never goes back; the next one begins with it."""
        process = self.any_process()
        error = self.world.between(0, 2 * CLOCK_ERROR_MAX) - CLOCK_ERROR_MAX
        for node in process.nodes:
            node.clock.step(self.world.now, error)
        if self.world.chance(0.5):
            self.kill(process)

    def _reset(self) -> None:
        if self._clients:
            self.rng.choice(self._clients).reset("reset by the network")

    def _cut(self) -> None:
        """One way, both ways, or everything of one node."""
        one = self.rng.choice(self._deployment.nodes).name
        others = [name for name in self.addresses() if name != one]
        if others and self.world.chance(0.7):
            others = [self.rng.choice(others)]
        self.sever([one], others, self.rng.choice(("to", "from", "both")))
        self.later(self._pace.cut, self.mend)

    def _any_disk(self) -> SimDisk | None:
        disks = self._deployment.disks()
        return self.rng.choice(disks) if disks else None

    def _trouble_disk(self) -> None:
        disk, rng = self._any_disk(), self.rng
        if disk is not None:
            disk.faults = DiskFaults(
                write_fails=rng.choice((0, 0.05, 0.5)),
                sync_fails=rng.choice((0, 0.05, 0.5)),
                flips=rng.choice((0, 0.2)),
            )
            self._mend_later(disk)

    def _fill_disk(self) -> None:
        disk = self._any_disk()
        if disk is not None:
            disk.faults = DiskFaults(bytes_max=disk.used() + self.world.between(0, 3_000))
            self._mend_later(disk)

    def _mend_later(self, disk: SimDisk) -> None:
        def mend() -> None:
            disk.faults = DiskFaults()

        self.world.note("a disk has trouble:", disk.where, disk.faults)
        self.later(self._pace.disk, mend)

    def _network_faults(self) -> NetworkFaults:
        rng = self.rng
        return NetworkFaults(
            delay=rng.choice((MS, 5 * MS)),
            tail=rng.choice((0, 0.01, 0.1)),
            loss=rng.choice((0, 0.01, 0.05, 0.2)),
            duplicate=rng.choice((0, 0.02, 0.1)),
            held=rng.choice((0, 0.005, 0.03)),
            held_for=self._pace.held,
        )
