"""Faults of a lazy front, and of the brokers, metadata and store behind it."""

from collections.abc import Mapping, Sequence

from anabranch.core.types import MS
from anabranch_sim.lazy.deployment import LazyDeployment
from anabranch_sim.world.events import SECOND
from anabranch_sim.world.faults import DeploymentFaults, Pace, Resettable, Way
from anabranch_sim.world.store import StoreFaults

PACE = Pace(
    strikes=(20 * MS, 300 * MS),
    down=(50 * MS, SECOND),
    pauses=(50 * MS, 300 * MS, 2 * SECOND),
    cut=SECOND,
    disk=SECOND // 2,
    held=SECOND // 2,
)


class LazyFaults(DeploymentFaults):
    def __init__(self, deployment: LazyDeployment, clients: Sequence[Resettable]) -> None:
        self.deployment = deployment
        faults = deployment.lazy.faults
        super().__init__(deployment, clients, faults, PACE)
        if "store" in faults:
            rng = self.rng
            deployment.store.faults = StoreFaults(
                delay=rng.choice((2 * MS, 20 * MS)),
                slow=rng.choice((0, 0.05, 0.3)),
                refuses=rng.choice((0, 0.02, 0.2)),
                lies=rng.choice((0, 0.02, 0.1)),
            )

    def own_ways(self) -> Mapping[str, Way]:
        return {
            "away": self._cut_off_log,
            "blackouts": self._black_out,
            "brokers": self._kill_broker,
            "controllers": self._kill_controller,
            "drains": self._drain,
            "leaders": self._kill_leader,
            "sequencers": self._kill_sequencer,
            "successions": self._succeed,
            "zombies": self._pause_leader,
        }

    def heal(self) -> None:
        super().heal()
        self.deployment.etcd.heal()
        self.deployment.store.heal()
        self.deployment.link_all()

    def _leader(self) -> str | None:
        """Of the view that the log knows."""
        front = self.deployment.front
        view = front.configuration.view if front is not None else None
        return view.leader if view is not None else None

    def _kill_leader(self) -> None:
        leader = self._leader()
        if leader is not None:
            self.kill(self.processes[leader])

    def _pause_leader(self) -> None:
        """For longer than it takes to replace it: its batches come late."""
        leader = self._leader()
        if leader is not None:
            self.processes[leader].pause(self.world.between(50 * MS, 1_500 * MS))

    def _kill_sequencer(self) -> None:
        self.kill(self.processes[self.rng.choice(self.deployment.sequencers)])

    def _kill_controller(self) -> None:
        self.kill(self.processes[self.rng.choice(self.deployment.controllers)])

    def _kill_broker(self) -> None:
        self.kill(self.deployment.process_of(self.rng.choice(self.deployment.brokers).name))

    def _drain(self) -> None:
        """Somebody restarts a process in an orderly way."""
        deployment = self.deployment
        alone = () if deployment.is_group else {node.name for node in deployment.members}
        processes = [each for name, each in self.processes.items() if name not in alone]
        self.rng.choice(processes).drain()

    def _succeed(self) -> None:
        """Two view changes in a row: the leader dies, and then whoever leads next."""
        self._kill_leader()
        after = self.deployment.limits.silent_ms * MS + self.world.between(0, 200 * MS)
        self.world.after(after, self._kill_next)

    def _kill_next(self) -> None:
        if not self.over:
            self._kill_leader()

    def _cut_off_log(self) -> None:
        """The front from all brokers: nothing is ordered, and rings fill."""
        brokers = [node.name for node in self.deployment.brokers]
        front = [*self.deployment.sequencers, *self.deployment.controllers]
        self.sever(front, brokers)
        self.later(2 * SECOND, self.mend)

    def _black_out(self) -> None:
        """All sequencers at once: with `memory`, what they held is gone."""
        for name in self.deployment.sequencers:
            self.processes[name].die(down=self.world.between(5 * MS, 300 * MS))
