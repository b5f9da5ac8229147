"""One seed: faults while clients append through a lazy front, fork and read; then healing, after
which all that was acknowledged must be in the log once, in real-time order.

Safety is judged from what clients saw, and from the state of the log at every look; liveness by the
clock.
"""

from collections.abc import Callable
from functools import partial

from anabranch.core.bolt.state.invariants import broken
from anabranch.core.erwin.invariants.account import Account
from anabranch.core.history.lazy import TailCheck, judge_lazy
from anabranch.core.types import MS, LogId, Nanoseconds, Position
from anabranch_sim.erwin.client import ErwinClient
from anabranch_sim.erwin.history import ReadLog, history_of
from anabranch_sim.erwin.readers import TailAsker
from anabranch_sim.lazy.appender import Appender
from anabranch_sim.lazy.deployment import LazyDeployment
from anabranch_sim.lazy.faults import LazyFaults
from anabranch_sim.lazy.options import ENDS, Options
from anabranch_sim.lazy.user import LogUser
from anabranch_sim.world.events import SECOND, World
from anabranch_sim.world.faults import Resettable
from anabranch_sim.world.simulation import Tell

CONVERGENCE: Nanoseconds = 90 * SECOND
"""How long a healed deployment may take to finish everything."""

_LOOK: Nanoseconds = 20 * MS


class LazyPlugin:
    """A cluster, a front, its clients and their faults."""

    def __init__(self, options: Options, tell: Tell | None = None) -> None:
        self.options = options
        self.world = World(options.seed, tell=tell)
        self.chaos: Nanoseconds = options.chaos_ms * MS
        self.deployment = LazyDeployment(self.world, options)
        self.account = Account()
        self.appenders: list[Appender] = []
        self.tails: list[TailAsker] = []
        self.clients: list[Resettable] = []
        self.user = LogUser(self.deployment)
        self.clients.append(self.user.client)
        self.faults = LazyFaults(self.deployment, self.clients)
        self.lost_view = 0
        self._end: Position = -1
        self._violations: list[str] = []
        self._names = 0

    @staticmethod
    def of(seed: int, tell: Tell | None = None) -> "LazyPlugin":
        return LazyPlugin(Options.of(seed), tell)

    def violations(self) -> list[str]:
        return self._violations + self.account.faults + self.user.refused

    def counts(self) -> dict[str, int]:
        front = self.deployment.front
        return {
            "appends": len(self.account.appends),
            "committed": front.records if front is not None else 0,
            "views": front.epoch.view if front is not None else 0,
            "forks promoted": self.user.promoted,
            "views lost": self.lost_view > 0,
            "fronts ended": front is not None and front.ended,
        }

    def start(self) -> None:
        self.deployment.start()
        self.user.create(self._created)

    def is_done(self) -> bool:
        return bool(self._violations)

    def converge(self) -> bool:
        if not self.come(self._all_settled):
            self.fail(f"liveness: {self._unfinished()}")
            return False
        if not self.come(self._drained):
            self.fail(f"liveness: the front isn't drained: {self._unfinished()}")
            return False
        return True

    def check(self) -> None:
        """Read all there is, redeem all receipts, and judge."""
        self._look()
        since = self.world.stamp()
        for call in self.account.appends:
            if call.receipt is not None:
                self.user.redeem(call)
        self.user.read(0, self._page)
        if not self.come(lambda: self._end >= 0 and not self.user.unanswered):
            self.fail("liveness: the log can't be read to its end, or receipts can't be redeemed")
            return
        log = ReadLog()
        log.calls.extend(self.user.reads)
        final = log.final(start=0, end=self._end, since=since)
        history = history_of(self.account, log, final, self.lost_view)
        if self.user.promoted:
            # A tail counts what came through the front, and the log has others' records as well.
            history.calls = [each for each in history.calls if not isinstance(each, TailCheck)]
        self._violations.extend(map(str, judge_lazy(history)))
        front = self.deployment.front
        if not self.options.faults and front is not None and front.epoch.view > 1:
            self.fail(f"{front.epoch.view} views without a fault")

    def come(self, done: Callable[[], bool]) -> bool:
        """Wait until it is so; a run in which something is wrong is stopped at once."""
        broke = self._violations
        return self.world.wait(lambda: bool(broke) or done(), CONVERGENCE, _LOOK) and not broke

    def fail(self, says: str) -> None:
        """Unless something was wrong before: a run that was stopped for it comes to nothing."""
        if not self._violations:
            self._violations.append(says)

    def _created(self, log: LogId) -> None:
        options, world = self.options, self.world
        self.deployment.start_front(log)
        self._look_often()
        for number in range(1, options.appenders + 1):
            self._start_appender(number)
        for _ in range(options.questions):
            world.at(world.between(world.now, self.chaos), self._question)
        if ENDS in options.traits:
            world.at(world.between(self.chaos // 2, self.chaos), self.user.end_front)
        if "forks" in options.traits:
            for _ in range(4):
                at = world.between(world.now, self.chaos)
                world.at(at, self.user.fork)
                world.at(at + world.between(0, SECOND), self.user.decide)

    def _look_often(self) -> None:
        self._look()
        if not self._violations:
            self.world.after(_LOOK, self._look_often)

    def _look(self) -> None:
        """The state is right at every moment, and no view is given up that has a member left."""
        replica, front = self.deployment.replica, self.deployment.front
        if replica is None or front is None:
            return
        for each in broken(replica):
            self.fail(f"{each.rule} state: {each.log}: {each.what}")
        configuration = front.configuration
        lost = {view for view, _ in configuration.lost_views}
        self.lost_view = max(lost, default=self.lost_view)
        for name in self.deployment.sequencers:
            machine = self.deployment.sequencer(name)
            view = machine.replica.view if machine is not None else None
            if view is not None and view.number in lost:
                self.fail(f"E1: view {view.number} was given up, and {name} is a member of it")

    def _start_appender(self, number: int) -> None:
        rng = self.world.rng
        appender = Appender(
            self.deployment,
            self.account,
            number,
            self.deployment.sequencers,
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

    def _question(self) -> None:
        if self.world.chance(0.4):
            self._names += 1
            name, nodes = f"asker-{self._names}", self.deployment.sequencers
            asker = TailAsker(self.deployment, name, nodes, self.account)
            self.tails.append(asker)
            self._begin(asker)
        else:
            known = max((read.upto for read in self.user.reads), default=0)
            self.user.read(self.world.between(0, known))

    def _page(self, upto: Position, tail: Position) -> None:
        if upto < tail:
            self.user.read(upto, self._page)
        else:
            self._end = upto

    def _all_settled(self) -> bool:
        if self.user.forks:
            self.user.decide()  # reads past their points wait for that
            return False
        front = self.deployment.front
        if front is not None and front.ended:
            for each in self.appenders:
                each.stop()
            for asker in self.tails:
                asker.finished = True
        alive = all(process.alive for process in self.deployment.processes.values())
        settled = all(each.finished and each.idle for each in self.appenders)
        asked = all(each.finished for each in self.tails)
        return alive and settled and asked and front is not None and not self.user.unanswered

    def _drained(self) -> bool:
        """Everything in the rings is committed, and dropped everywhere; or the front has ended."""
        front = self.deployment.front
        if ENDS in self.options.traits:
            return front is not None and front.ended
        machines = [self.deployment.sequencer(name) for name in self.deployment.sequencers]
        replicas = [each.replica for each in machines if each is not None]
        if front is None or len(replicas) < len(machines):
            return False
        return all(not len(each.ring) and each.ordered == front.records for each in replicas)

    def _unfinished(self) -> str:
        appending = [each.name for each in self.appenders if not (each.finished and each.idle)]
        asking = [each.name for each in self.tails if not each.finished]
        down = [name for name, each in self.deployment.processes.items() if not each.alive]
        front = self.deployment.front
        known = (front.records, front.epoch, front.configuration) if front is not None else ()
        return (
            f"appending {appending}, asking {asking}, {self.user.unanswered} calls of the user "
            f"({self.user.put_off}), "
            f"down {down}, front {known}"
        )
