"""A sink under everything that Spark may do to it, and a check of what the log has then.

`python -m tests.spark.sink_history KIND EXECUTIONS SEED [brokers]` plays histories of drivers that
die, of tasks, planners and commits that are killed at any moment or go on though Spark gave them
up, of commits that are repeated, aborts after commits, commit logs that lose their last entry, and
of a service, or with `brokers` one of two brokers, that is killed. KIND is `direct`, `fork`,
`mixed` (streams) or `runs` (batch writes).

It knows of the sink what `docs/howto/spark-write.md` promises, and nothing of its code.
"""

import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Thread
from time import monotonic

from tests.spark import imitated_spark as spark
from tests.spark.imitated_spark import How, Rows, Worker, Write
from tests.spark.killed_services import Service, brokers, one_process

import anabranch

ATTEMPTS_MAX = 4
CALM_TRIES = 5
"""Executions without a fault of which one must succeed."""
PATIENCE_S = 120.0
REFUSALS = ("WriterConflict", "PartDiffers", "ForkMoved", "BadRequest", "TooMany")
"""Data are always the same here, so none of these may come."""


@dataclass
class Tally:
    executions: int = 0
    killed: Counter[str] = field(default_factory=Counter[str])
    given_up: Counter[str] = field(default_factory=Counter[str])
    raised: Counter[str] = field(default_factory=Counter[str])
    drivers: int = 0
    forgotten: int = 0
    repeated_commits: int = 0
    late_aborts: int = 0
    services: int = 0
    checks: int = 0
    compared: int = 0
    """Records."""


@dataclass(frozen=True)
class Batch:
    """What Spark is to write at once; `name` is unique in a log."""

    name: str
    mode: str
    parts: tuple[Rows, ...]

    @property
    def values(self) -> list[bytes]:
        return sorted(value for part in self.parts for _, value in part)


def make_batch(name: str, mode: str, chance: random.Random) -> Batch:
    """Of one to four parts, of which some are empty and few are large."""
    parts = []
    for part in range(chance.randint(1, 4)):
        rows = chance.choice((0, 1, 3, 10, 10, 120))
        pad = b"x" * (chance.choice((0, 0, 0, 9_000)))
        parts.append(
            tuple(
                (f"k{row}", b"%s/%d/%d %s" % (name.encode(), part, row, pad)) for row in range(rows)
            )
        )
    return Batch(name, mode, tuple(parts))


class Killer:
    """Kills the service now and then, once for some executions."""

    def __init__(self, service: Service, tally: Tally, seed: int) -> None:
        self._chance = random.Random(seed)
        self._service, self._tally = service, tally
        self._thread: Thread | None = None
        self._failure: BaseException | None = None

    def __call__(self) -> None:
        """Is told of each execution that begins."""
        if self._chance.random() < 0.08:
            self.join()
            self._thread = Thread(target=self._kill, daemon=True)
            self._thread.start()

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join()
            assert self._failure is None, self._failure

    def _kill(self) -> None:
        Event().wait(self._chance.uniform(0, 0.5))
        try:
            self._service.kill(self._chance)
            self._tally.services += 1
        except BaseException as failure:
            self._failure = failure
            raise


class Oracle:
    """What a log may hold, and whether it does."""

    def __init__(self, url: str, log: str, tally: Tally) -> None:
        self._url, self._log, self._tally = url, log, tally
        self.meant: dict[str, Batch] = {}
        """In the order in which they were begun."""
        self._seen: list[bytes] = []

    def check(self, complete: set[str], *, end: bool = False) -> None:
        """`complete`: batches whose commit Spark knows of."""
        with anabranch.connect(self._url, timeout=PATIENCE_S) as service:
            log = service.log(self._log, engine="bolt")
            if end:
                self._decide(service, log)
            end_at = log.describe().settled
            for record in log.read(len(self._seen)):
                assert record.position == len(self._seen)
                self._seen.append(record.value or b"")
        assert len(self._seen) >= end_at
        self._judge(complete)

    def _decide(self, service: anabranch.Service, log: anabranch.Log) -> None:
        """Forks that executions left which Spark gave up would stay until `forkTtl`."""
        while (fork := log.describe().undecided) is not None:
            service.log(fork, engine="bolt").squash()

    def _judge(self, complete: set[str]) -> None:
        found: dict[str, list[bytes]] = {}
        order: list[str] = []
        for value in self._seen:
            name = value.split(b"/", 1)[0].decode()
            found.setdefault(name, []).append(value)
            if not order or order[-1] != name:
                order.append(name)
        self._tally.checks += 1
        self._tally.compared += len(self._seen)
        assert len(order) == len(set(order)), f"batches are mixed: {order}"
        ranks = [*self.meant]
        assert order == sorted(order, key=ranks.index), f"batches are in another order: {order}"
        for name, values in found.items():
            twice = [value for value, times in Counter(values).items() if times > 1]
            assert not twice, f"{name}: twice: {twice[:5]}"
            batch = self.meant[name]
            strange = set(values) - set(batch.values)
            assert not strange, f"{name}: never meant: {[*strange][:5]}"
            if batch.mode == "fork":
                assert len(values) == len(batch.values), f"{name}: seen in part"
            else:
                _in_order(batch, values)
        for name in complete:
            meant = self.meant[name].values
            assert sorted(found.get(name, [])) == meant, f"{name}: committed, and not whole"


def _in_order(batch: Batch, values: list[bytes]) -> None:
    """Each part's records are a prefix of it, in order."""
    for part, rows in enumerate(batch.parts):
        mark = b"%s/%d/" % (batch.name.encode(), part)
        there = [value for value in values if value.startswith(mark)]
        assert there == [value for _, value in rows[: len(there)]], f"{batch.name}: part {part}"


class Faults:
    """What goes wrong next."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.calm = False
        self._lasts: dict[str, float] = {}

    def happens(self, percent: int) -> bool:
        return not self.calm and self.chance.random() * 100 < percent

    def moment(self, what: str) -> float:
        """At random in the time that such a process takes."""
        return self.chance.uniform(0, 1.2 * self._lasts.get(what, 0.1))

    def lasted(self, what: str, seconds: float) -> None:
        before = self._lasts.get(what, seconds)
        self._lasts[what] = 0.8 * before + 0.2 * min(seconds, 2.0)


class DriverDied(Exception):
    pass


class QueryFailed(Exception):
    pass


class Execution:
    """One try of one batch by one driver."""

    def __init__(
        self, write: Write, batch: Batch, faults: Faults, tally: Tally, left: list[Worker]
    ) -> None:
        self._write, self._batch, self._faults, self._tally = write, batch, faults, tally
        self._left = left
        """Processes that Spark has given up, and that go on."""
        self._parts = batch.parts
        if batch.mode == "fork" and faults.happens(50):
            self._parts = _shuffled(batch.parts, faults.chance)

    def run(self) -> None:
        self._tally.executions += 1
        writer = self._one("plan", spark.plan, self._write)
        if writer is None:
            raise QueryFailed
        messages = self._tasks(writer)
        if any(message is None for message in messages):
            self._end(writer, messages, abort=True)
            raise QueryFailed
        committed = self._end(writer, messages, abort=False)
        if committed and self._faults.happens(10):
            self._tally.repeated_commits += 1
            committed = self._end(writer, messages, abort=False)
        if not committed or self._faults.happens(10):
            self._tally.late_aborts += committed
            self._end(writer, messages, abort=True)
            raise QueryFailed
        if self._faults.happens(10):
            self._tally.drivers += 1
            raise DriverDied

    def _one(self, what: str, function: Callable[..., object], *given: object) -> object:
        """What a process made, if it was not killed and raised nothing."""
        faults = self._faults
        at = faults.moment(what) if faults.happens(25) else None
        begun = monotonic()
        worker = Worker(function, *given, killed_after=at)
        if what != "plan" and faults.happens(6):
            Event().wait(faults.moment(what))
            self._left.append(worker)
            self._tally.drivers += 1
            raise DriverDied
        if what != "plan" and faults.happens(6):
            Event().wait(faults.moment(what))
            self._left.append(worker)
            self._tally.given_up[what] += 1
            return None
        return self._outcome(what, worker, begun)

    def _outcome(self, what: str, worker: Worker, begun: float) -> object:
        ended = worker.ended()
        if ended.how is How.KILLED:
            self._tally.killed[what] += 1
            return None
        if ended.how is How.RAISED:
            self._judge_error(what, ended.answer)
            return None
        self._faults.lasted(what, monotonic() - begun)
        return ended.answer

    def _judge_error(self, what: str, said: str) -> None:
        self._tally.raised[f"{what} {said.split(':', maxsplit=1)[0]}"] += 1
        say(f"{what} of {self._batch.name} ({self._batch.mode}): {said[:300]}")
        assert not said.startswith(REFUSALS), said

    def _tasks(self, writer: object) -> list[object]:
        """All parts at once, each as often as Spark tries."""
        faults, tally = self._faults, self._tally
        messages: list[object] = [None] * len(self._parts)
        dies_in = faults.moment("task") if faults.happens(8) else None
        for attempt in range(ATTEMPTS_MAX):
            running: list[tuple[int, Worker, float]] = []
            for part, rows in enumerate(self._parts):
                if messages[part] is None:
                    at = faults.moment("task") if faults.happens(25) else None
                    given = (self._write, writer, part, attempt, rows)
                    worker = Worker(spark.run_task, *given, killed_after=at)
                    running.append((part, worker, monotonic()))
            if dies_in is not None:
                Event().wait(dies_in)
                for _, worker, _ in running:
                    if faults.happens(50):
                        worker.kill()
                self._left += [worker for _, worker, _ in running]
                tally.drivers += 1
                raise DriverDied
            for part, worker, begun in running:
                if faults.happens(8):
                    tally.given_up["task"] += 1
                    self._left.append(worker)
                else:
                    messages[part] = self._outcome("task", worker, begun)
            if all(message is not None for message in messages):
                break
        return messages

    def _end(self, writer: object, messages: list[object], *, abort: bool) -> bool:
        what = "abort" if abort else "commit"

        return self._one(what, spark.end, self._write, writer, messages, abort) is not None


def _shuffled(parts: tuple[Rows, ...], chance: random.Random) -> tuple[Rows, ...]:
    """The same rows, otherwise distributed, as after a shuffle."""
    rows = [row for part in parts for row in part]
    chance.shuffle(rows)
    count = chance.randint(1, 4)
    return tuple(tuple(rows[nth::count]) for nth in range(count))


class History:
    """One log, and all that is written to it."""

    def __init__(
        self, service: Service, kind: str, name: str, seed: int, tally: Tally, killer: Killer
    ) -> None:
        self._service, self._kind, self._name, self._tally = service, kind, name, tally
        self._killer = killer
        self._chance = random.Random(seed)
        self._faults = Faults(self._chance)
        self._left: list[Worker] = []
        self._oracle = Oracle(service.url, name, tally)
        self._complete: set[str] = set()

    def play(self, executions: int) -> None:
        with anabranch.connect(self._service.url, timeout=PATIENCE_S) as client:
            client.create(self._name)
        until = self._tally.executions + executions
        while self._tally.executions < until:
            self._write_next()
        self._end_those_left()
        self._oracle.check(self._complete, end=True)

    def _write_next(self) -> None:
        number = len(self._oracle.meant)
        modes = ("direct", "fork") if self._kind in ("mixed", "runs") else (self._kind,)
        batch = make_batch(f"b{number}", self._chance.choice(modes), self._chance)
        self._oracle.meant[batch.name] = batch
        self._until_committed(batch, number)
        self._complete.add(batch.name)
        if self._kind == "runs":
            while self._chance.random() < 0.3:
                older = self._chance.choice([*self._oracle.meant])
                self._until_committed(self._oracle.meant[older], int(older[1:]))
        else:
            while self._chance.random() < 0.3:
                self._tally.forgotten += 1
                self._until_committed(batch, number)
        if len(self._left) > 8:
            self._end_those_left()

    def _until_committed(self, batch: Batch, number: int) -> None:
        tries = 0
        while True:
            # A run that is under faults for ever never ends.
            tries += 1
            self._faults.calm = tries > 12
            assert tries <= 12 + CALM_TRIES, f"{batch.name} is never written"
            if not self._faults.calm:
                self._killer()
            try:
                write = self._write(batch, number)
                Execution(write, batch, self._faults, self._tally, self._left).run()
            except (DriverDied, QueryFailed):
                self._oracle.check(self._complete)
            else:
                self._oracle.check(self._complete | {batch.name})
                self._faults.calm = False
                say(f"{batch.name} after {tries} at {monotonic():.1f}")
                return

    def _write(self, batch: Batch, number: int) -> Write:
        options = {"service": self._service.url, "log": self._name, "mode": batch.mode}
        if self._kind == "runs":
            return Write({**options, "runId": batch.name})
        return Write(options, f"query-{self._name}", number)

    def _end_those_left(self) -> None:
        for worker in self._left:
            worker.ended()
        self._left.clear()


def play(service: Service, kind: str, executions: int, seed: int, each: int = 150) -> Tally:
    """Histories one after the other, until there were so many executions."""
    tally = Tally()
    killer = Killer(service, tally, seed)
    nth = 0
    while tally.executions < executions:
        name = f"{kind}-{seed}-{nth}"
        History(service, kind, name, seed * 1_000 + nth, tally, killer).play(min(each, executions))
        killer.join()
        nth += 1
        say(f"{name}: {tally}")
    return tally


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def main(kind: str, executions: str, seed: str, where: str = "process") -> None:
    begun = monotonic()
    with {"process": one_process, "brokers": brokers}[where]() as service:
        tally = play(service, kind, int(executions), int(seed))
    say(f"{kind} {seed} in {monotonic() - begun:.0f} s: {tally}")


if __name__ == "__main__":
    main(*sys.argv[1:5])
