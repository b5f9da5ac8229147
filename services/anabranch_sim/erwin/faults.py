"""Faults of an Erwin deployment: of roles, whole shards, paused leaders and lost disks."""

from collections.abc import Mapping, Sequence
from functools import partial

from anabranch.core.erwin.invariants.witness import Witness
from anabranch.core.types import MS, Nanoseconds
from anabranch_sim.erwin.deployment import ErwinDeployment
from anabranch_sim.erwin.noops import NoopTrap
from anabranch_sim.erwin.options import DEAFNESS, RECOVERIES, RENEWALS, STRAGGLERS
from anabranch_sim.erwin.recoveries import RecoveryTrap
from anabranch_sim.world.events import SECOND
from anabranch_sim.world.faults import DeploymentFaults, Pace, Resettable, Way

PACE = Pace(
    strikes=(20 * MS, 300 * MS),
    down=(50 * MS, SECOND),
    pauses=(50 * MS, 300 * MS, 2 * SECOND),
    cut=SECOND,
    disk=SECOND // 2,
    held=SECOND // 2,
)
_TRIAL: Nanoseconds = 1_500 * MS
"""How long a log has to recover from a lost disk before the next is lost."""


class ErwinFaults(DeploymentFaults):
    def __init__(
        self, deployment: ErwinDeployment, witness: Witness, clients: Sequence[Resettable]
    ) -> None:
        self.deployment = deployment
        self.witness = witness
        self.slow = ""
        """A sequencer that straggles as long as there are faults."""
        self._trial_until: Nanoseconds = 0
        self._trap = RecoveryTrap(deployment)
        self._noop_trap = NoopTrap(deployment, self._lose_deaf)
        self._deaf: list[str] = []
        """A shard's replicas; the first of them hears from no client."""
        super().__init__(deployment, clients, deployment.options.faults, PACE)
        if STRAGGLERS in deployment.options.faults:
            self.world.after(SECOND // 2, self._straggle)
        if RENEWALS in deployment.options.faults:
            self.world.after(SECOND // 2, self._renew)
        if DEAFNESS in deployment.options.faults:
            self.world.after(SECOND // 2, self._deafen)

    def own_ways(self) -> Mapping[str, Way]:
        return {
            "backups": self._kill_backup,
            "blackouts": self._black_out,
            "controllers": self._kill_controller,
            "drains": self._drain,
            "leaders": self._kill_leader,
            "outages": self._cut_off,
            "primaries": self._kill_primary,
            RECOVERIES: self._kill_within_recovery,
            "sequencers": self._kill_sequencer,
            "shards": self._kill_shard,
            "successions": self._succeed,
            "wipes": self._wipe,
            "zombies": self._pause_leader,
        }

    def heal(self) -> None:
        super().heal()
        self.deployment.box_faults = 0.0
        for box in self.deployment.boxes.values():
            box.faults = 0.0
        self._trap.disarm()
        self._noop_trap.disarm()
        self.deployment.link_all()

    def _leader(self) -> str | None:
        """Of the latest view that anybody speaks of."""
        views = self.witness.views
        return views[max(views)].leader if views else None

    def _shard(self) -> tuple[str, list[str]] | None:
        """A shard's primary as it is configured, and its other nodes."""
        configuration = self.witness.configuration
        shards = [each for each in configuration.shards if each.primary] if configuration else []
        if not shards:
            return None
        shard = self.rng.choice(shards)
        return shard.primary, [each for each in shard.nodes if each != shard.primary]

    def _kill_leader(self) -> None:
        leader = self._leader()
        if leader is not None:
            self.kill_node(leader)

    def _pause_leader(self) -> None:
        """For longer than it takes to replace it: its pushes come late."""
        leader = self._leader()
        if leader is not None:
            self.processes[leader].pause(self.world.between(50 * MS, 1_500 * MS))

    def _kill_within_recovery(self) -> None:
        """Something begins to recover, and dies with it, or another one does."""
        self._trap.arm()
        shard = self._shard()
        if shard is not None and self.world.chance(0.3):
            self.kill_node(shard[0])
        elif self.world.chance(0.6):
            self._kill_leader()
        else:
            self._kill_sequencer()

    def _straggle(self) -> None:
        leader = self._leader()
        others = self.rng.choice(self.deployment.sequencers)
        self.slow = leader if leader is not None and self.world.chance(0.5) else others
        self.network.slow(self.slow, self.world.between(90 * MS, 130 * MS))
        self.world.note("slow from now on:", self.slow)

    def _renew(self) -> None:
        """Clients reach a shard and the sequencers, which don't reach one another: all that is
        acknowledged now has no row. Meanwhile the backup is away for long enough to be done
        without, comes back, and becomes the primary.
        """
        shard = self._shard()
        if shard is None:
            return
        primary, backups = shard
        self.sever([primary, *backups], self.deployment.sequencers)
        away = self.deployment.silence + self.world.between(100 * MS, 300 * MS)
        self.processes[self.rng.choice(backups)].die(down=away)
        back = away + 4 * self.deployment.silence
        self.world.after(back, lambda: self.processes[primary].die(down=SECOND))
        self.world.after(back + SECOND, self.mend)

    def _deafen(self) -> None:
        """A shard's primary hears from no client, and its backups do: it binds rows to no-ops whose
        data they have.
        """
        shard = self._shard()
        if shard is None:
            return
        primary, backups = shard
        self._deaf = [primary, *backups]
        self._noop_trap.arm(primary)
        self.sever([primary], [client.name for client in self._clients], "to")

    def _lose_deaf(self) -> None:
        """It dies, and clients reach its backups before any sequencer does."""
        primary = self._deaf[0]
        self.sever(self._deaf, self.deployment.sequencers)
        away = self.deployment.silence + self.world.between(100 * MS, 300 * MS)
        self.world.at(self.world.now, partial(self.processes[primary].die, down=away))
        self.world.after(4 * self.deployment.silence, self.mend)
        self.world.after(SECOND, self._deafen_again)

    def _deafen_again(self) -> None:
        if not self.over:
            self._deafen()

    def _kill_sequencer(self) -> None:
        self.kill_node(self.rng.choice(self.deployment.sequencers))

    def _kill_controller(self) -> None:
        self.kill_node(self.rng.choice(self.deployment.controllers))

    def _drain(self) -> None:
        """Somebody restarts a process in an orderly way."""
        self.any_process().drain()

    def _kill_primary(self) -> None:
        shard = self._shard()
        if shard is not None:
            self.kill_node(shard[0])

    def _kill_backup(self) -> None:
        shard = self._shard()
        if shard is not None and shard[1]:
            self.kill_node(self.rng.choice(shard[1]))

    def _kill_shard(self) -> None:
        """As a whole, until rings may be full."""
        shard = self._shard()
        if shard is not None:
            down = self.down()
            for replica in (shard[0], *shard[1]):
                self.kill_node(replica, down)

    def _succeed(self) -> None:
        """Two recoveries in a row: the leader is cut off, and then whoever leads next dies."""
        leader = self._leader()
        if leader is None:
            return
        others = [each for each in self.addresses() if each != leader]
        self.sever([leader], others)
        self.later(PACE.cut, self.mend)
        after = self.deployment.silence + self.world.between(0, 200 * MS)
        self.world.after(after, self._kill_next)

    def _kill_next(self) -> None:
        if not self.over:
            self._kill_leader()

    def _cut_off(self) -> None:
        """A shard from the sequencers, while its clients still reach it."""
        shard = self._shard()
        if shard is not None:
            self.sever([shard[0], *shard[1]], self.deployment.sequencers)
            self.later(PACE.cut, self.mend)

    def _wipe(self) -> None:
        """One node loses its disk, while all others are well."""
        names = [*self.deployment.sequencers]
        if self.deployment.options.copies > 1:
            names += self.deployment.replicas
        alive = all(process.alive for process in self.processes.values())
        if self.world.now < self._trial_until or not alive or not self._settled():
            return
        self.deployment.wipe(self.rng.choice(names), self.world.between(5 * MS, SECOND))
        self._trial_until = self.world.now + _TRIAL

    def _settled(self) -> bool:
        """All sequencers are members, and all shards have all their replicas."""
        configuration = self.witness.configuration
        if configuration is None or configuration.view is None:
            return False
        whole = all(len(each.replicas) == len(each.nodes) for each in configuration.shards)
        return whole and len(configuration.view.members) == self.deployment.options.sequencers

    def _black_out(self) -> None:
        """All sequencers at once: with `memory`, what they held is gone."""
        for name in self.deployment.sequencers:
            self.processes[name].die(down=self.world.between(5 * MS, 300 * MS))
