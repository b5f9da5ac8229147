"""One seed: faults while clients append and follow, then healing, after which all must come right.

Safety is judged from every word that was said (witness) and from what clients saw
(core/history/foretold); liveness by the clock.
"""

from collections.abc import Callable
from functools import partial

from anabranch.core.belfast.invariants.witness import Witness
from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.protocol.messages import Join, Leave, Trim, Where
from anabranch.core.history.foretold import judge
from anabranch.core.types import MS, Nanoseconds, Position
from anabranch_sim.belfast.deployment import BelfastDeployment
from anabranch_sim.belfast.faults import BelfastFaults
from anabranch_sim.belfast.idle import IdleCheck, rests
from anabranch_sim.belfast.log_client import LogClient
from anabranch_sim.belfast.message_clients import KEYS, Admin, Appender, Archive, Observer
from anabranch_sim.belfast.node_client import NodeClient
from anabranch_sim.belfast.options import Options
from anabranch_sim.world.events import SECOND, World
from anabranch_sim.world.simulation import Tell

CONVERGENCE: Nanoseconds = 30 * SECOND
"""How long a healed deployment may take to finish everything."""

_LOOK: Nanoseconds = 10 * MS


class BelfastPlugin:
    """A deployment, its clients and its faults."""

    def __init__(self, options: Options, tell: Tell | None = None) -> None:
        self.options = options
        self.world = World(options.seed, tell=tell)
        self.chaos: Nanoseconds = options.chaos_ms * MS
        self.witness = Witness()
        self.deployment = BelfastDeployment(self.world, options, self.witness.on_commit)
        self.deployment.around.overhear = self.witness.observe
        self.archive = Archive()
        self.appenders: list[Appender] = []
        self.observers: list[Observer] = []
        self.admins: list[Admin] = []
        self.log_clients: list[LogClient] = []
        self.clients: list[NodeClient | LogClient] = []
        self.faults = BelfastFaults(self.deployment, self.witness, self.clients)
        self.leaving: str | None = None
        self._violations: list[str] = []

    @staticmethod
    def of(seed: int, tell: Tell | None = None) -> "BelfastPlugin":
        return BelfastPlugin(Options.of(seed), tell)

    def violations(self) -> list[str]:
        return self._violations + self.witness.violations + self.archive.faults

    def counts(self) -> dict[str, int]:
        return {
            "records": len(self.archive.account.shard_of),
            "cuts": self.witness.cuts,
            "views": self.witness.ledger.view,
        }

    def start(self) -> None:
        self.deployment.start()
        self._start_shards()
        self._start_observers()
        self._start_appenders()
        self._start_log_clients()
        self._start_traits()

    def is_done(self) -> bool:
        return bool(self.witness.violations)

    def converge(self) -> bool:
        if not self.come(self._all_settled):
            self.fail(f"liveness: {self._unfinished()}")
            return False
        goal = self.witness.ledger.confirmed
        return self._await_all(self._all, goal)

    def check(self) -> None:
        self._read_all()

    @property
    def _all(self) -> list[Observer | LogClient]:
        return [*self.observers, *self.log_clients]

    def _start_shards(self) -> None:
        names = [chr(ord("a") + number) for number in range(self.options.shards)]
        late = set(names[1:]) if "joins" in self.options.traits else set[str]()
        for name in names:
            if name in late and self.world.chance(0.5):
                then = self.world.between(0, self.options.chaos_ms * MS)
                self.world.at(then, partial(self._join, name))
            else:
                self._join(name)

    def _join(self, name: str) -> None:
        quota = self.world.rng.choice((0, 0, 1, 3))
        self.deployment.add_shard(name, quota)
        for replica in self.deployment.shards[name]:
            self.witness.add_replica(replica, name)

    def _names(self) -> list[str]:
        return [chr(ord("a") + number) for number in range(self.options.shards)]

    def _start_appenders(self) -> None:
        rng = self.world.rng
        for number in range(1, self.options.appenders + 1):
            shard = rng.choice(self._names())
            in_flight = rng.choice((1, 2, 5))
            appender = Appender(self.deployment, self.archive, number, shard, in_flight)
            self.appenders.append(appender)
            self._begin(appender)
            self._append(appender, self.options.batches)

    def _start_log_clients(self) -> None:
        """Each with a subscription to the log, or to what it wants of it."""
        rng = self.world.rng
        for number in range(1, self.options.log_clients + 1):
            client = LogClient(self.deployment, self.archive, self.witness, 100 + number)
            self.log_clients.append(client)
            self.clients.append(client)
            shards = (rng.choice(self._names()),) if self.world.chance(0.2) else ()
            self.world.after(
                self.world.between(0, 50 * MS), partial(client.follow, 0, self._where(), shards)
            )
            self._append(client, self.options.batches)

    def _append(self, appender: Appender | LogClient, left: int) -> None:
        """The next batch, or a burst of them, and then what follows after a while."""
        rng, chaos = self.world.rng, self.options.chaos_ms * MS
        count = 1
        if "bursts" in self.options.traits and self.world.chance(0.2):
            count = min(left, 10)
        for _ in range(count):
            appender.append(rng.choice((1, 1, 2, 7)))
        left -= count
        if left > 0:
            pause = self.world.between(0, 2 * chaos // self.options.batches)
            if "lulls" in self.options.traits and self.world.chance(0.1):
                pause += chaos // 3
            self.world.after(pause, partial(self._append, appender, left))
        else:
            appender.finished = True

    def _start_observers(self) -> None:
        rng = self.world.rng
        for number in range(1, self.options.observers + 1):
            names = self._names() if self.world.chance(0.5) else [rng.choice(self._names())]
            where = self._where()
            for name in names:
                self.observe(f"observer-{number}-{name}", name, 0, where)

    def _where(self) -> Where | None:
        if "filters" in self.options.traits and self.world.chance(0.5):
            return Where(key_prefix=b"k%d" % self.world.rng.randrange(KEYS))
        return None

    def observe(self, name: str, shard: str, start: Position, where: Where | None) -> Observer:
        observer = Observer(self.deployment, self.archive, name, shard, start, where)
        self.observers.append(observer)
        self._begin(observer)
        return observer

    def _begin(self, client: NodeClient) -> None:
        self.clients.append(client)
        self.world.after(self.world.between(0, 5 * MS), client.begin)

    def _start_traits(self) -> None:
        traits, chaos = self.options.traits, self.options.chaos_ms * MS
        if "leaves" in traits and self.options.shards > 1:
            self.leaving = self._names()[-1]
            left = self.world.between(chaos // 4, chaos)
            self.world.at(left, self._leave)
            if self.world.chance(0.5):
                self.world.at(self.world.between(left, chaos), self._rejoin)
        if "trims" in traits:
            for _ in range(2):
                self.world.at(self.world.between(chaos // 4, chaos), self._trim)
        if "stalls" in traits:
            self.world.after(self.world.between(100 * MS, chaos // 2), self._stall)
        if "stragglers" in traits:
            self.world.after(self.world.between(0, chaos // 2), self._straggle)

    def _stall(self) -> None:
        """The machine that all processes share is overloaded: none of them runs for a while. The
        sequencers go on first, and wait for the shards for longer than these may be silent.
        """
        fails = self.options.rules.intervals(self.options.rules.fail_intervals)
        stalled = self.world.between(fails // 2, fails)
        for name in self.deployment.members:
            self.deployment.node(name).pause(stalled)
        for name in self.deployment.replicas():
            self.deployment.node(name).pause(self.world.between(2 * stalled, 5 * stalled // 2))
        if not self.faults.over:
            self.world.after(self.world.between(5 * stalled, 8 * stalled), self._stall)

    def _admin(self, name: str, message: Trim | Leave | Join) -> None:
        admin = Admin(self.deployment, f"{name}-{len(self.admins)}", message)
        self.admins.append(admin)
        self._begin(admin)

    def _leave(self) -> None:
        assert self.leaving is not None
        self._admin("leaver", Leave(self.leaving))

    def _rejoin(self) -> None:
        assert self.leaving is not None
        self._admin("joiner", Join(self.leaving))

    def _trim(self) -> None:
        """Nothing that anybody still follows."""
        behind = min(each.settled for each in self._all)
        if behind:
            self._admin("trimmer", Trim(self.world.between(1, behind)))

    def _straggle(self) -> None:
        """A primary is slow again and again, and never so slow that it counts as dead."""
        t_ord = self.options.rules.t_ord
        members = list(self.witness.ledger.members.values())
        if members:
            primary = members[-1].primary
            self.deployment.node(primary).pause(self.world.between(t_ord, 4 * t_ord))
        if not self.faults.over:
            self.world.after(self.world.between(5 * t_ord, 12 * t_ord), self._straggle)

    def come(self, done: Callable[[], bool]) -> bool:
        """Wait until it is so; a run that the witness objects to is stopped at once."""
        violations = self.witness.violations
        come = self.world.wait(lambda: bool(violations) or done(), CONVERGENCE, _LOOK)
        return come and not violations

    def _all_settled(self) -> bool:
        alive = all(process.alive for process in self.deployment.processes.values())
        settled = all(each.finished and each.idle for each in (*self.appenders, *self.log_clients))
        asked = all(each.over for each in self.admins)
        return alive and settled and asked and self._all_seated()

    def _all_seated(self) -> bool:
        """Every shard that was begun is known, and in, unless it was let go."""
        ledger = self.witness.ledger
        for name in self.deployment.shards:
            member = ledger.member(name)
            if member is None or member.standing in {Standing.WAITING, Standing.FAILED}:
                return False
        return len(self.deployment.shards) == self.options.shards

    def _unfinished(self) -> str:
        ledger = self.witness.ledger
        members = [(each.name, each.standing.name) for each in ledger.members.values()]
        appending = [*self.appenders, *self.log_clients]
        open_ = [each.name for each in appending if not (each.finished and each.idle)]
        asked = [each.name for each in self.admins if not each.over]
        down = [name for name, each in self.deployment.processes.items() if not each.alive]
        return f"shards {members}, appending {open_}, asking {asked}, down {down}"

    def _goal(self, observer: Observer | LogClient, goal: Position) -> Position:
        """So far it must come: a shard that has left has nothing behind its last window."""
        if isinstance(observer, LogClient):
            return goal
        member = self.witness.ledger.member(observer.shard)
        if member is None or member.standing is not Standing.LEFT:
            return goal
        windows = self.witness.windows
        last = max((n for n, each in enumerate(windows) if member.id in each.by_shard), default=-1)
        if last + 1 == len(windows):
            return goal
        return min(goal, windows[last + 1].start)

    def _followed(self, observer: Observer | LogClient, goal: Position) -> bool:
        return observer.settled >= self._goal(observer, goal)

    def _await_all(self, following: list[Observer | LogClient], goal: Position) -> bool:
        if self.come(lambda: all(self._followed(each, goal) for each in following)):
            return True
        late = next(each for each in following if not self._followed(each, goal))
        self.fail(f"liveness: {late.name} knows {late.settled} of {self._goal(late, goal)}")
        return False

    def _read_all(self) -> None:
        """All that the log holds, by readers that begin when all is well; then the judgement."""
        start, goal = self.witness.ledger.trimmed, self.witness.ledger.confirmed
        readers = [
            self.observe(f"reader-{name}", name, start, None) for name in self.deployment.shards
        ]
        if not self._await_all([*readers], goal):
            return
        account = self.archive.account
        account.start, account.end = start, goal
        for reader in readers:
            for position, record in reader.held().items():
                if position in account.final:
                    self.fail(f"F1: {position} holds two records")
                if position < goal:
                    account.final[position] = record
                    account.shard_of[record] = reader.shard
        for each in account.placings:
            if each.positions and min(each.positions) < start:
                account.final.update(zip(each.positions, each.records, strict=True))
        self._violations.extend(map(str, judge(account)))
        if not self.options.faults:
            self._check_calm()
        if rests(self.options.rules) and not self._violations:
            IdleCheck(self).run()

    def _check_calm(self) -> None:
        """Without a fault nothing is misspeculated, whatever joins, leaves or bursts."""
        if self.witness.ledger.view:
            self.fail(f"F5: {self.witness.ledger.view} view changes without a fault")
        failed = [each.name for each in self._all if each.fails]
        if failed:
            self.fail(f"F5: {failed} were failed without a fault")

    def fail(self, says: str) -> None:
        """Unless something was wrong before: a run that was stopped for it comes to nothing."""
        if not self.witness.violations:
            self._violations.append(says)
