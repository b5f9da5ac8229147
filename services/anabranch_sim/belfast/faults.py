"""Faults of a Belfast deployment: of roles, whole shards and single replicas, beside all others."""

from collections.abc import Mapping, Sequence

from anabranch.core.belfast.invariants.witness import Witness
from anabranch.core.types import MS, Nanoseconds
from anabranch_sim.belfast.deployment import BelfastDeployment
from anabranch_sim.world.disk import SimDisk
from anabranch_sim.world.events import SECOND
from anabranch_sim.world.faults import DeploymentFaults, Pace, Resettable, Way

PACE = Pace(
    strikes=(20 * MS, 250 * MS),
    down=(50 * MS, SECOND),
    pauses=(50 * MS, 300 * MS, 2 * SECOND),
    cut=SECOND,
    disk=SECOND // 2,
    held=SECOND // 2,
)


class BelfastFaults(DeploymentFaults):
    def __init__(
        self, deployment: BelfastDeployment, witness: Witness, clients: Sequence[Resettable]
    ) -> None:
        self.deployment = deployment
        self.witness = witness
        self._trial_until: Nanoseconds = 0
        """A trial of one replica lasts: nothing else happens meanwhile."""
        super().__init__(deployment, clients, deployment.options.faults, PACE)

    def own_ways(self) -> Mapping[str, Way]:
        return {
            "absences": self._keep_away,
            "backups": self._kill_backup,
            "leaders": self._kill_leader,
            "outages": self._cut_off,
            "power": self._cut_power,
            "primaries": self._kill_primary,
            "sequencers": self._kill_sequencer,
            "shards": self._kill_shard,
            "wipes": self._wipe,
        }

    def heal(self) -> None:
        super().heal()
        self.deployment.link_all()

    def _shard(self) -> str | None:
        shards = list(self.deployment.shards)
        return self.rng.choice(shards) if shards else None

    def _parts(self) -> tuple[str, list[str]] | None:
        """A shard's primary, as it is decided, and its other replicas."""
        shard = self._shard()
        member = self.witness.ledger.member(shard) if shard is not None else None
        if member is None:
            return None
        others = [each for each in self.deployment.shards[member.name] if each != member.primary]
        return member.primary, others

    def _kill_sequencer(self) -> None:
        self.kill_node(self.rng.choice(self.deployment.members))

    def _kill_leader(self) -> None:
        leader = self.deployment.leader()
        if leader is not None:
            self.kill_node(leader)

    def _kill_primary(self) -> None:
        parts = self._parts()
        if parts is not None:
            self.kill_node(parts[0])

    def _kill_backup(self) -> None:
        parts = self._parts()
        if parts is not None and parts[1]:
            self.kill_node(self.rng.choice(parts[1]))

    def _kill_shard(self) -> None:
        """As a whole, for longer or shorter than it takes to be given up."""
        shard = self._shard()
        if shard is not None:
            down = self.down()
            for replica in self.deployment.shards[shard]:
                self.kill_node(replica, down)

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
        self.processes[away].die(down=absence)
        for nth in range(2):
            for each in rest:
                self._later_die(lone + nth * (failed + back), each, failed)
        self._later_die(absence + self.world.between(50 * MS, 400 * MS), primary, 3 * silent // 2)
        self._trial_until = self.world.now + absence + 4 * silent

    def _wipe(self) -> None:
        """A backup loses its disk, and its primary falls before it has learned all, or after."""
        whole, rules = self._whole(), self.deployment.options.rules
        if whole is None:
            return
        primary, backup = whole
        silent = rules.intervals(rules.silent_intervals)
        process = self.processes[backup]
        process.die(down=self.world.between(5 * MS, 3 * silent))
        process.disk = SimDisk(self.world, f"/{backup}")
        self._later_die(self.world.between(20 * MS, 5 * silent), primary, 3 * silent // 2)
        self._trial_until = self.world.now + 9 * silent

    def _whole(self) -> tuple[str, str] | None:
        """The primary and a backup of a shard that has all its replicas, which are there."""
        parts = self._parts() if self.world.now >= self._trial_until else None
        if parts is None:
            return None
        primary, others = parts
        member = self.witness.ledger.member(self._shard_of(primary))
        alive = all(self.processes[each].alive for each in (primary, *others))
        if member is None or len(member.replicas) <= len(others) or not alive:
            return None
        return primary, self.rng.choice(others)

    def _shard_of(self, replica: str) -> str:
        return next(name for name, each in self.deployment.shards.items() if replica in each)

    def _later_die(self, after: Nanoseconds, name: str, down: Nanoseconds) -> None:
        def die() -> None:
            if not self.over:
                self.processes[name].die(down=down)

        self.world.after(after, die)

    def _cut_power(self) -> None:
        """Of everything."""
        for process in self.processes.values():
            process.die(down=self.world.between(5 * MS, 50 * MS))

    def _cut_off(self) -> None:
        """A shard from the sequencers, while its clients still reach it."""
        shard = self._shard()
        if shard is not None:
            self.sever(self.deployment.shards[shard], self.deployment.members)
            self.later(PACE.cut, self.mend)
