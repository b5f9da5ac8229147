"""Faults of a deployment of Belfast: what a run's options allow, until the healing begins."""

from collections.abc import Callable, Sequence
from typing import Protocol

from anabranch.core.types import MS, Nanoseconds
from anabranch_sim.belfast.deployment import Deployment
from anabranch_sim.belfast.witness import Witness
from anabranch_sim.world.disk import SimDisk, Troubles
from anabranch_sim.world.events import SECOND
from anabranch_sim.world.network import Weather

CLOCK_ERROR_MAX: Nanoseconds = 5 * SECOND


class Resettable(Protocol):
    """A client, whose connections may be broken."""

    def reset(self) -> None: ...


class Nemesis:
    """Strikes every now and then. After `heal` everything works, and what was down comes back."""

    def __init__(
        self, deployment: Deployment, witness: Witness, clients: Sequence[Resettable]
    ) -> None:
        self.deployment = deployment
        self.world = deployment.world
        self.witness = witness
        self.clients = clients
        self.over = False
        self.strikes = 0
        self._tried_until: Nanoseconds = 0
        """An ordeal lasts: nothing else happens meanwhile."""
        ways: dict[str, Callable[[], None]] = {
            "absences": self._keep_away,
            "backups": self._kill_backup,
            "clocks": self._set_clock,
            "cuts": self._cut,
            "disk": self._trouble_disk,
            "full": self._fill_disk,
            "leaders": self._kill_leader,
            "outages": self._cut_off,
            "pauses": self._pause,
            "power": self._cut_power,
            "primaries": self._kill_primary,
            "resets": self._reset,
            "sequencers": self._kill_sequencer,
            "shards": self._kill_shard,
            "wipes": self._wipe,
        }
        faults = deployment.options.faults
        self._ways = [ways[fault] for fault in faults if fault in ways]
        rng = self.world.rng
        if "network" in faults:
            deployment.network.weather = Weather(
                delay=rng.choice((MS, 5 * MS)),
                tail=rng.choice((0, 0.01, 0.1)),
                loss=rng.choice((0, 0.01, 0.05, 0.2)),
                duplicate=rng.choice((0, 0.02, 0.1)),
                held=rng.choice((0, 0.005, 0.03)),
                held_for=SECOND // 2,
            )

    def start(self) -> None:
        if self._ways:
            self._again()

    def heal(self) -> None:
        self.over = True
        self.world.note("the healing begins")
        self.deployment.network.heal()
        for process in self.deployment.processes.values():
            assert process.disk is not None
            process.disk.troubles = Troubles()
            process.disk.dies_in = None
        for node in self.deployment.nodes:
            self.deployment.link(node, self.deployment.nodes)

    def _again(self) -> None:
        self.world.after(self.world.between(20 * MS, 250 * MS), self._strike)

    def _strike(self) -> None:
        if self.over:
            return
        self.strikes += 1
        self.world.rng.choice(self._ways)()
        self._again()

    def _down(self) -> Nanoseconds:
        return self.world.between(5 * MS, self.world.rng.choice((50 * MS, SECOND)))

    def _later(self, longest: Nanoseconds, undo: Callable[[], None]) -> None:
        self.world.after(self.world.between(20 * MS, longest), undo)

    def _kill(self, name: str, down: Nanoseconds | None = None) -> None:
        """The process alone, the whole machine, or that in the midst of one of its operations."""
        process, way = self.deployment.processes[name], self.world.rng.random()
        if way < 0.3 and down is None:
            assert process.disk is not None
            process.disk.dies_in = self.world.between(0, 12)
        else:
            process.die(down=self._down() if down is None else down, power=way < 0.7)

    def _shard(self) -> str | None:
        shards = list(self.deployment.shards)
        return self.world.rng.choice(shards) if shards else None

    def _parts(self) -> tuple[str, list[str]] | None:
        """A shard's primary, as it is decided, and its other replicas."""
        shard = self._shard()
        member = self.witness.ledger.member(shard) if shard is not None else None
        if member is None:
            return None
        others = [each for each in self.deployment.shards[member.name] if each != member.primary]
        return member.primary, others

    def _any_node(self) -> str:
        return self.world.rng.choice(self.deployment.nodes).name

    def _kill_sequencer(self) -> None:
        self._kill(self.world.rng.choice(self.deployment.members))

    def _kill_leader(self) -> None:
        leader = self.deployment.leader()
        if leader is not None:
            self._kill(leader)

    def _kill_primary(self) -> None:
        parts = self._parts()
        if parts is not None:
            self._kill(parts[0])

    def _kill_backup(self) -> None:
        parts = self._parts()
        if parts is not None and parts[1]:
            self._kill(self.world.rng.choice(parts[1]))

    def _kill_shard(self) -> None:
        """As a whole, for longer or shorter than it takes to be given up."""
        shard = self._shard()
        if shard is not None:
            down = self._down()
            for replica in self.deployment.shards[shard]:
                self._kill(replica, down)

    def _keep_away(self) -> None:
        """A backup, while the rest of its shard fails and is back, twice; then it has to lead."""
        whole, rules = self._whole(), self.deployment.options.rules
        if whole is None:
            return
        primary, away = whole
        rest = [each for each in self.deployment.shards[self._shard_of(away)] if each != away]
        silent = rules.intervals(rules.silent_intervals)
        failed = rules.intervals(rules.fail_intervals) * 5 // 4
        lone, back = 2 * silent, failed + 300 * MS
        absence = lone + 2 * (failed + back)
        self.deployment.processes[away].die(down=absence)
        for nth in range(2):
            for each in rest:
                self._later_die(lone + nth * (failed + back), each, failed)
        self._later_die(absence + self.world.between(50 * MS, 400 * MS), primary, 3 * silent // 2)
        self._tried_until = self.world.now + absence + 4 * silent

    def _wipe(self) -> None:
        """A backup loses its disk, and its primary falls before it has learned all, or after."""
        whole, rules = self._whole(), self.deployment.options.rules
        if whole is None:
            return
        primary, backup = whole
        silent = rules.intervals(rules.silent_intervals)
        process = self.deployment.processes[backup]
        process.die(down=self.world.between(5 * MS, 3 * silent))
        process.disk = SimDisk(self.world, f"/{backup}")
        self._later_die(self.world.between(20 * MS, 5 * silent), primary, 3 * silent // 2)
        self._tried_until = self.world.now + 9 * silent

    def _whole(self) -> tuple[str, str] | None:
        """The primary and a backup of a shard that has all its replicas, which are there."""
        parts = self._parts() if self.world.now >= self._tried_until else None
        if parts is None:
            return None
        primary, others = parts
        member = self.witness.ledger.member(self._shard_of(primary))
        alive = all(self.deployment.processes[each].alive for each in (primary, *others))
        if member is None or len(member.replicas) <= len(others) or not alive:
            return None
        return primary, self.world.rng.choice(others)

    def _shard_of(self, replica: str) -> str:
        return next(name for name, each in self.deployment.shards.items() if replica in each)

    def _later_die(self, after: Nanoseconds, name: str, down: Nanoseconds) -> None:
        def die() -> None:
            if not self.over:
                self.deployment.processes[name].die(down=down)

        self.world.after(after, die)

    def _cut_power(self) -> None:
        """Of everything."""
        for process in self.deployment.processes.values():
            process.die(down=self.world.between(5 * MS, 50 * MS))

    def _pause(self) -> None:
        longest = self.world.rng.choice((50 * MS, 300 * MS, 2 * SECOND))
        self.deployment.node(self._any_node()).pause(self.world.between(5 * MS, longest))

    def _set_clock(self) -> None:
        """A life that runs follows it slowly; the next one begins with it."""
        name = self._any_node()
        error = self.world.between(0, 2 * CLOCK_ERROR_MAX) - CLOCK_ERROR_MAX
        self.deployment.node(name).clock.step(self.world.now, error)
        if self.world.chance(0.3):
            self._kill(name)

    def _reset(self) -> None:
        if self.clients:
            self.world.rng.choice(self.clients).reset()

    def _cut(self) -> None:
        """One way, both ways, or everything of one node."""
        one = self._any_node()
        others = [node.name for node in self.deployment.nodes if node.name != one]
        if not others:
            return
        if self.world.chance(0.7):
            others = [self.world.rng.choice(others)]
        self._sever([one], others, self.world.rng.choice(("to", "from", "both")))

    def _cut_off(self) -> None:
        """A shard from the sequencers, while its clients still reach it."""
        shard = self._shard()
        if shard is not None:
            here = list(self.deployment.shards[shard])
            self._sever(here, list(self.deployment.members), "both")

    def _sever(self, here: list[str], there: list[str], ways: str) -> None:
        network = self.deployment.network
        for one in here:
            for other in there:
                if ways != "from":
                    network.cut(other, one)
                if ways != "to":
                    network.cut(one, other)
        self.world.note("cut", ways, *here, "and", *there)
        self._later(SECOND, self.deployment.mend)

    def _trouble_disk(self) -> None:
        rng, disk = self.world.rng, self.deployment.processes[self._any_node()].disk
        assert disk is not None
        disk.troubles = Troubles(
            write_fails=rng.choice((0, 0.05, 0.5)),
            sync_fails=rng.choice((0, 0.05, 0.5)),
            flips=rng.choice((0, 0.2)),
        )
        self._later(SECOND // 2, lambda: setattr(disk, "troubles", Troubles()))

    def _fill_disk(self) -> None:
        disk = self.deployment.processes[self._any_node()].disk
        assert disk is not None
        disk.troubles = Troubles(bytes_max=disk.used() + self.world.between(0, 3_000))
        self._later(SECOND // 2, lambda: setattr(disk, "troubles", Troubles()))
