"""One seed: two operators, an API server, brokers and a log service, people, faults; then healing,
after which everything must come right, and cost nothing.
"""

from collections.abc import Callable
from functools import partial

from anabranch.core.types import MS, Nanoseconds
from anabranch_operator.api import names
from anabranch_operator.plan.election.candidate import Terms
from anabranch_operator.plan.engine.dependencies import MEMBERS
from anabranch_operator.plan.engine.world import Surroundings
from anabranch_operator.plan.log.forks import plan_fork
from anabranch_operator.plan.log.job_templates import GateSettings
from anabranch_operator.plan.log.logs import plan_log
from anabranch_operator.plan.log.orphans import plan_orphan
from anabranch_operator.plan.metadata.members import plan_members
from anabranch_operator.plan.pool.pools import plan_pool
from anabranch_sim.kubernetes.belfast import log
from anabranch_sim.kubernetes.belfast.ledger import BelfastLog
from anabranch_sim.kubernetes.belfast.log import BelfastPart
from anabranch_sim.kubernetes.belfast.users import BelfastUsers
from anabranch_sim.kubernetes.cluster.apiserver import ApiServer
from anabranch_sim.kubernetes.cluster.controllers import Controllers
from anabranch_sim.kubernetes.cluster.machines import MachinePlane
from anabranch_sim.kubernetes.cluster.objects import Change, Kube
from anabranch_sim.kubernetes.cluster.plane import Plane, StatePlane
from anabranch_sim.kubernetes.cluster.watches import KINDS, History
from anabranch_sim.kubernetes.erwin.log import ErwinLog
from anabranch_sim.kubernetes.faults import OperatorFaults
from anabranch_sim.kubernetes.final_checks import FinalChecks
from anabranch_sim.kubernetes.invariants import Invariants
from anabranch_sim.kubernetes.lazy.log import LazyFront
from anabranch_sim.kubernetes.lazy.users import LazyUsers
from anabranch_sim.kubernetes.log_model import LogModel
from anabranch_sim.kubernetes.operators import Around, SimOperator
from anabranch_sim.kubernetes.options import Options
from anabranch_sim.kubernetes.sandbox import BEGIN
from anabranch_sim.kubernetes.users import HOME, Users
from anabranch_sim.world.events import SECOND, World
from anabranch_sim.world.simulation import Tell

OPERATORS = 2
CALM: Nanoseconds = 700 * SECOND
"""Everything is looked at anew within 300 s, and nothing that was refused waits for longer."""
RETRY: Nanoseconds = 300 * SECOND
SETTLING: Nanoseconds = 2_400 * SECOND
"""How long a healed cluster may take to come right: pauses are of five minutes at most, and so is
every step by which a pool shrinks.
"""


class OperatorPlugin:
    """Two operators, what they look after, and its users."""

    def __init__(self, options: Options, tell: Tell | None = None) -> None:
        self.options = options
        self.world = World(options.seed, tell=tell)
        self.chaos: Nanoseconds = options.chaos_s * SECOND
        self._violations: list[str] = []
        self.kube = Kube(collects=False, clock=lambda: (BEGIN + self.world.now) // MS)
        self.plane: Plane = (
            MachinePlane(self.world, options.seed)
            if options.deep
            else StatePlane(self.world, BEGIN)
        )
        self.invariants = Invariants(self.world, self.plane.service)
        self.plane.service.on_change = self.invariants.commanded
        self.history = History()
        self.controllers = Controllers(self.world, self.kube, self.plane)
        self.controllers.gc = options.gc_s * SECOND
        self.controllers.on_read = self.invariants.read
        self.belfast_part = self._belfast_part()
        self.around = self._around()
        self.operators = [SimOperator(self.around, number) for number in range(OPERATORS)]
        self.invariants.watch(self.operators)
        port = self.belfast_part
        self.users = Users(
            self.world,
            self.kube,
            self.plane,
            self.invariants,
            self.operators,
            None if port is None else port.belfast_users,
            gated=options.gated,
        )
        self.faults = OperatorFaults(
            self.around,
            self.controllers,
            self.operators,
            options.faults,
            None if port is None else port.belfast_faults,
        )
        self.kube.on_change = self._changed

    @staticmethod
    def of(seed: int, tell: Tell | None = None) -> "OperatorPlugin":
        return OperatorPlugin(Options.of(seed), tell)

    def violations(self) -> list[str]:
        return self.invariants.violations + self._violations

    def counts(self) -> dict[str, int]:
        return {"writes": self.invariants.writes, "acts": self.users.acts}

    def start(self) -> None:
        world = self.world
        self.users.begin()
        self.controllers.start()
        for operator in self.operators:
            operator.start()
        world.run(20 * SECOND)
        for _ in range(self.options.acts):
            world.after(world.between(0, self.chaos), self.users.act)

    def is_done(self) -> bool:
        return False

    def converge(self) -> bool:
        """Wait until nothing has been written for longer than anything waits."""
        self.users.rest()
        self.controllers.late_appends = 0.0
        world, until = self.world, self.world.now + SETTLING
        writes, since = self.invariants.writes, world.now
        while world.now < until and world.now < since + CALM:
            world.run(world.now + 10 * SECOND)
            if writes != self.invariants.writes:
                writes, since = self.invariants.writes, world.now
        if world.now < since + CALM:
            self._violations.append(f"liveness: it never comes to rest: {self.invariants.last}")
        return True

    def check(self) -> None:
        verdict = FinalChecks(self.kube, self.plane, self.invariants)
        self._violations += verdict.wrong()
        if self.belfast_part is not None:
            self._violations += self.belfast_part.wrong()
        self._stay_calm(verdict.troubled())

    def _belfast_part(self) -> BelfastPart | None:
        options = self.options
        if not (options.belfast or options.erwin or options.lazy):
            return None
        made: Callable[[], LogModel] = ErwinLog if options.erwin else BelfastLog
        if options.lazy:
            made = partial(LazyFront, self.plane.service)
        return BelfastPart(
            self.world,
            self.kube,
            self.invariants.fail,
            self.controllers.stuck,
            HOME,
            made,
            LazyUsers if options.lazy else BelfastUsers,
        )

    def _around(self) -> Around:
        options = self.options
        surroundings = Surroundings(
            namespace=HOME,
            release="demo",
            gates=GateSettings(enabled=True, logs=True),
            metadata="demo-metadata",
            look_ms=options.look_ms,
        )
        around = Around(
            self.world,
            ApiServer(self.world, self.kube),
            self.history,
            self.plane,
            self.invariants,
            surroundings,
        )
        around.planners = {
            names.LOG: plan_log,
            names.FORK: plan_fork,
            names.ORPHAN: plan_orphan,
            names.POOL: plan_pool,
            MEMBERS: plan_members,
        }
        if self.belfast_part is not None:
            around.planners |= log.PLANNERS
            around.kinds = (*KINDS, *log.KINDS)
            around.processes = self.belfast_part.processes
            around.belfast_invariants = self.belfast_part.belfast_invariants
        around.sweep_s = options.sweep_s
        around.terms = Terms(
            lease_s=options.lease_s, renew_s=options.lease_s * 2 / 3, retry_s=options.lease_s / 5
        )
        return around

    def _stay_calm(self, troubled: int) -> None:
        """Converged is no request but for the Lease, looks, and what was refused tried again."""
        calm_s = self.options.calm_s
        writes, asked = self.invariants.writes, self._asked
        self.world.run(self.world.now + calm_s * SECOND)
        if self.invariants.writes != writes:
            self._violations.append(f"calm: {self.invariants.last} though nothing had changed")
        again = self._asked - asked
        if again > troubled * (1 + calm_s * SECOND // RETRY):
            self._violations.append(f"calm: {again} requests, with {troubled} in trouble")

    @property
    def _asked(self) -> int:
        return self.plane.asked + (
            0 if self.belfast_part is None else self.belfast_part.processes.asked
        )

    def _changed(self, change: Change) -> None:
        if self.world.tracing:
            what = "gone" if change.gone else change.version
            self.world.note("kube", change.object.ref, what)
        self.history.add(change)
        self.invariants.changed(change)
        self.controllers.on_change(change)
        if self.belfast_part is not None:
            self.belfast_part.on_change(change)
        for operator in self.operators:
            if operator.alive:
                operator.watches.on_change(change)
