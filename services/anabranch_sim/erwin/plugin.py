"""One seed: faults while clients append, read and follow, then healing, after which everything that
was acknowledged must be readable once, in real-time order.

Safety is judged from every word that was said (witness) and from what clients were told (account);
liveness by the clock.
"""

from collections.abc import Callable, Sequence
from functools import partial

from anabranch.core.erwin.controller.controller import Controller
from anabranch.core.erwin.invariants.account import Account
from anabranch.core.erwin.invariants.witness import Witness
from anabranch.core.history.lazy import judge_lazy
from anabranch.core.types import MS, Nanoseconds
from anabranch_sim.erwin.appender import Appender
from anabranch_sim.erwin.client import ErwinClient
from anabranch_sim.erwin.departures import Departures
from anabranch_sim.erwin.deployment import ErwinDeployment
from anabranch_sim.erwin.faults import ErwinFaults
from anabranch_sim.erwin.history import ReadLog, history_of
from anabranch_sim.erwin.options import STRAGGLERS, Options
from anabranch_sim.erwin.readers import Follower, Reader, Scanner, TailAsker, Trimmer
from anabranch_sim.world.events import SECOND, World
from anabranch_sim.world.simulation import Tell

CONVERGENCE: Nanoseconds = 30 * SECOND
"""How long a healed deployment may take to finish everything."""

_LOOK: Nanoseconds = 10 * MS


class ErwinPlugin:
    """A deployment, its clients and its faults."""

    def __init__(self, options: Options, tell: Tell | None = None) -> None:
        self.options = options
        self.world = World(options.seed, tell=tell)
        self.chaos: Nanoseconds = options.chaos_ms * MS
        self.witness = Witness()
        self.account = Account()
        self.log = ReadLog()
        self.deployment = ErwinDeployment(self.world, options, self.witness)
        self.appenders: list[Appender] = []
        self.followers: list[Follower] = []
        self.readers: list[Reader] = []
        self.tails: list[TailAsker] = []
        self.trimmers: list[Trimmer] = []
        self.clients: list[ErwinClient] = []
        self.faults = ErwinFaults(self.deployment, self.witness, self.clients)
        Departures(self.deployment)
        self._violations: list[str] = []
        self._names = 0

    @staticmethod
    def of(seed: int, tell: Tell | None = None) -> "ErwinPlugin":
        return ErwinPlugin(Options.of(seed), tell)

    def violations(self) -> list[str]:
        told = [fault for each in self.followers for fault in each.faults]
        return self._violations + self.witness.violations + self.account.faults + told

    def counts(self) -> dict[str, int]:
        return {
            "appends": len(self.account.appends),
            "final": len(self.witness.order.final),
            "views": len(self.witness.views),
        }

    def start(self) -> None:
        self.deployment.start()
        for number in range(1, self.options.appenders + 1):
            self._start_appender(number)
        for _ in range(self.options.followers):
            self._follow(self.world.rng.choice(self.deployment.shard_names), 0)
        for _ in range(self.options.questions):
            self.world.at(self.world.between(0, self.chaos), self._question)
        if STRAGGLERS in self.options.faults:
            self.world.at(self.chaos - MS, self._check_straggler)
        if "trims" in self.options.traits:
            for _ in range(3):
                self.world.at(self.world.between(self.chaos // 4, self.chaos), self._trim)

    def is_done(self) -> bool:
        return bool(self.witness.violations)

    def converge(self) -> bool:
        if not self.come(self._all_settled):
            self.fail(f"liveness: {self._unfinished()}")
            return False
        return self._drain()

    def check(self) -> None:
        """Read all there is, from clients that begin when all is well; then judge."""
        start, goal = self.witness.order.trimmed, self.witness.order.stable
        since = self.world.stamp()
        scanners: list[Scanner | Follower] = []
        for name in self.deployment.shard_names:
            if self.world.chance(0.5):
                scanners.append(self._follow(name, start))
            else:
                scanners.append(self._scan(name, start, goal))
        if not self.come(lambda: all(each.upto >= goal for each in [*scanners, *self.followers])):
            late = [(each.name, each.upto) for each in [*scanners, *self.followers]]
            self.fail(f"liveness: of {goal} positions these have come: {late}")
            return
        self._check_reads()
        for row in self.witness.order.between(start, goal):
            if row.first >= start and row.id not in self.witness.reads.contents:
                self.fail(f"E4: nobody was shown {row}")
        self._violations.extend(self.account.judge(self.witness))
        final = self.log.final(start=start, end=goal, since=since)
        lost = max(self.witness.lost, default=0)
        history = history_of(self.account, self.log, final, lost)
        self._violations.extend(map(str, judge_lazy(history)))
        if not self.options.faults and len(self.witness.views) > 1:
            self.fail(f"{len(self.witness.views)} views without a fault")

    def come(self, done: Callable[[], bool]) -> bool:
        """Wait until it is so; a run that the witness objects to is stopped at once."""
        violations = self.witness.violations
        come = self.world.wait(lambda: bool(violations) or done(), CONVERGENCE, _LOOK)
        return come and not violations

    def fail(self, says: str) -> None:
        """Unless something was wrong before: a run that was stopped for it comes to nothing."""
        if not self.witness.violations:
            self._violations.append(says)

    def _start_appender(self, number: int) -> None:
        rng = self.world.rng
        appender = Appender(
            self.deployment,
            self.account,
            number,
            self.deployment.addresses,
            in_flight=rng.choice((1, 4, 30)),
            receipts=rng.choice((0.0, 0.2, 1.0)),
            mortal="mortals" in self.options.traits and self.world.chance(0.5),
        )
        self.appenders.append(appender)
        self._begin(appender)
        self._append(appender, self.options.batches)

    def _append(self, appender: Appender, left: int) -> None:
        """The next append, or a burst of them, and then what follows after a while."""
        burst = "bursts" in self.options.traits and self.world.chance(0.2)
        count = min(left, 10) if burst else 1
        for _ in range(count):
            appender.append(self.world.rng.choice((1, 1, 2, 7)))
        left -= count
        if left > 0 and not appender.finished:
            pause = self.world.between(0, 2 * self.chaos // self.options.batches)
            self.world.after(pause, partial(self._append, appender, left))
        else:
            appender.finished = True

    def _begin(self, client: ErwinClient) -> None:
        self.clients.append(client)
        self.world.after(self.world.between(0, 5 * MS), client.begin)

    def _name(self, what: str) -> str:
        self._names += 1
        return f"{what}-{self._names}"

    def _follow(self, shard: str, start: int) -> Follower:
        follower = Follower(
            self.deployment,
            self._name("follower"),
            self.deployment.addresses,
            shard,
            start,
            self.witness,
            self.log,
        )
        self.followers.append(follower)
        self._begin(follower)
        return follower

    def _scan(self, shard: str, start: int, goal: int) -> Scanner:
        scanner = Scanner(
            self.deployment,
            self._name("scanner"),
            self.deployment.addresses,
            shard,
            start,
            goal,
            self.log,
        )
        self.readers.append(scanner)
        self._begin(scanner)
        return scanner

    def _question(self) -> None:
        """A read behind, at or beyond the tail; or for the tail."""
        rng, order = self.world.rng, self.witness.order
        if self.world.chance(0.4):
            self._ask_tail()
            return
        start = self.world.between(0, order.end + 2)
        if self.world.chance(0.5):
            start = order.stable
        shard, wait_ms = rng.choice(self.deployment.shard_names), rng.choice((0, 50, 200))
        reader = Reader(
            self.deployment,
            self._name("reader"),
            self.deployment.addresses,
            shard,
            start,
            self.log,
            wait_ms,
        )
        self.readers.append(reader)
        self._begin(reader)

    def _ask_tail(self) -> TailAsker:
        asker = TailAsker(
            self.deployment, self._name("asker"), self.deployment.addresses, self.account
        )
        self.tails.append(asker)
        self._begin(asker)
        return asker

    def _trim(self) -> None:
        stable = self.witness.order.stable
        if stable:
            position = self.world.between(1, stable)
            trimmer = Trimmer(
                self.deployment,
                self._name("trimmer"),
                self.deployment.addresses,
                position,
                self.log,
            )
            self.trimmers.append(trimmer)
            self._begin(trimmer)

    def _drain(self) -> bool:
        """Everything in the rings becomes stable."""
        asker = self._ask_tail()
        if not self.come(lambda: asker.finished):
            self.fail("liveness: nobody tells the tail")
            return False
        order = self.witness.order
        if not self.come(lambda: order.stable >= asker.tail):
            self.fail(f"liveness: the tail is {asker.tail}, stable is {order.stable}")
            return False
        return True

    def _all_settled(self) -> bool:
        alive = all(process.alive for process in self.deployment.processes.values())
        settled = all(each.finished and each.idle for each in self.appenders)
        asking: Sequence[Reader | TailAsker | Trimmer]
        asking = [*self.readers, *self.tails, *self.trimmers]
        return alive and settled and all(each.finished for each in asking)

    def _unfinished(self) -> str:
        appending = [each.name for each in self.appenders if not (each.finished and each.idle)]
        asking = [*self.readers, *self.tails, *self.trimmers]
        open_ = [each.name for each in asking if not each.finished]
        down = [name for name, each in self.deployment.processes.items() if not each.alive]
        order = self.witness.order
        return (
            f"appending {appending}, asking {open_}, down {down}, stable {order.stable} of "
            f"{order.end}, configuration {self.witness.configuration}"
        )

    def _check_straggler(self) -> None:
        """Appends wait for every member, so one that is slow for long is taken out (5.5)."""
        machines = [self.deployment.machine(name) for name in self.deployment.controllers]
        leads = [each for each in machines if isinstance(each, Controller)]
        if not any(controller.counters.stragglers for controller in leads):
            self.fail(f"liveness: nobody takes {self.faults.slow} for a straggler")

    def _check_reads(self) -> None:
        """Only what was trimmed is refused to readers."""
        for each in self.readers:
            if each.error is None:
                continue
            if each.error.code != "position-trimmed" or each.start >= self.witness.order.trimmed:
                self.fail(f"E5: {each.name} at {each.start} is refused: {each.error.message}")
        for each in self.trimmers:
            if each.done and each.position > self.witness.order.trimmed:
                self.fail(f"D-E5: {each.position} was trimmed, as {each.name} was told")
