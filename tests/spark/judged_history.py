"""Forks that are judged and promoted while others append to them, and a check of what was promoted.

`python -m tests.spark.judged_history ROUNDS SEED` also kills the service now and then. In each
round a fork is counted, read by a scan plan and promoted with that count, until that succeeds;
meanwhile threads append to the fork and to its parent. The parent must have exactly what was read
of the fork, in that order, and everything that was acknowledged.
"""

import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Event, Thread
from time import monotonic
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.spark.killed_services import Service, one_process

import anabranch
from anabranch.errors import AnabranchError, ForkMoved, OutcomeUnknown, Promoted, Squashed

PATIENCE_S = 60.0
APPENDERS = 3


class Own(NamedTuple):
    """A record, wherever it is read."""

    position: int
    value: bytes


@dataclass
class Tally:
    rounds: int = 0
    judged: int = 0
    moved: int = 0
    appended: int = 0
    refused: Counter[str] = field(default_factory=Counter[str])
    unknown: int = 0
    services: int = 0
    compared: int = 0


class Appender:
    """Appends to one log until it is refused there, or told to end."""

    def __init__(self, url: str, log: int, name: str, seed: int) -> None:
        self._url, self._log, self._name = url, log, name
        self._chance = random.Random(seed)
        self.acknowledged: list[bytes] = []
        self.unknown: list[bytes] = []
        self.refused = ""
        self._over = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        with anabranch.connect(self._url, timeout=PATIENCE_S) as service:
            log = service.log(self._log, engine="bolt")  # type: ignore[arg-type]
            for number in range(1 << 30):
                if self._over.wait(self._chance.choice((0, 0, 0.02, 0.2))):
                    return
                value = b"%s/%d" % (self._name.encode(), number)
                try:
                    log.append(value)
                    self.acknowledged.append(value)
                except OutcomeUnknown:
                    self.unknown.append(value)
                except AnabranchError as refused:
                    self.unknown.append(value)  # an earlier try may have appended it
                    self.refused = refused.code
                    return


def judged(fork: anabranch.Log) -> list[bytes]:
    """What the fork has of its own, counted first and read then."""
    there = fork.describe()
    with fork.plan_scan(there.fork_point, there.tail, speculative=True) as plan:
        own = _read(plan, there.id)
    assert len(own) == there.own_records, f"{len(own)} were read, {there.own_records} counted"
    return [each.value for each in own]


def _read(plan: anabranch.ScanPlan, origin: int | None = None) -> list[Own]:
    found: list[Own] = []
    for slices in plan.pages():
        for place in plan.sign(slices):
            with open(urlsplit(place.url).path, "rb") as file:
                content = file.read()
            for piece in slices:
                if piece.object == place.object and (origin is None or piece.origin == origin):
                    part = content[piece.offset : piece.offset + piece.length]
                    found += [Own(at, record.value or b"") for at, record in piece.records(part)]
    return sorted(set(found))


class Round:
    """One fork, from its creation to its promotion."""

    def __init__(self, service: Service, number: int, seed: int, tally: Tally) -> None:
        self._service, self._number, self._tally = service, number, tally
        self._chance = random.Random(seed)

    def play(self) -> None:
        tally, chance = self._tally, self._chance
        with anabranch.connect(self._service.url, timeout=PATIENCE_S) as client:
            parent = client.create(f"parent-{self._number}")
            parent.append_many([b"before/%d" % n for n in range(chance.randint(0, 5))])
            fork = parent.cfork("judged", promotable=True)
            fork_id, parent_id = fork.describe().id, parent.describe().id
            to_fork = [self._appender(fork_id, f"fork{n}") for n in range(APPENDERS)]
            to_parent = self._appender(parent_id, "parent")
            killing = self._killing() if chance.random() < 0.3 else None
            promoted = self._promote(fork, to_fork)
            if killing is not None:
                killing.join()
            for each in (*to_fork, to_parent):
                each.end()
            self._check(parent, promoted, to_fork, to_parent)
        tally.rounds += 1

    def _appender(self, log: int, name: str) -> Appender:
        return Appender(self._service.url, log, name, self._chance.getrandbits(30))

    def _killing(self) -> Thread:
        def kill() -> None:
            Event().wait(self._chance.uniform(0, 1))
            self._service.kill(self._chance)
            self._tally.services += 1

        thread = Thread(target=kill, daemon=True)
        thread.start()
        return thread

    def _promote(self, fork: anabranch.Log, appenders: Sequence[Appender]) -> list[bytes]:
        """What was judged when it was promoted. Appenders end one after the other, so that at last
        the fork stands still.
        """
        waiting = [*appenders]
        while True:
            Event().wait(self._chance.uniform(0, 0.2))
            own = judged(fork)
            self._tally.judged += 1
            try:
                fork.promote(expect_own=len(own))
            except ForkMoved as moved:
                self._tally.moved += 1
                if int(moved.facts["found"] or 0) <= len(own):
                    raise  # it only grows
                if waiting and self._chance.random() < 0.3:
                    waiting.pop().end()
            else:
                return own

    def _check(
        self,
        parent: anabranch.Log,
        promoted: list[bytes],
        to_fork: Sequence[Appender],
        to_parent: Appender,
    ) -> None:
        there = [record.value or b"" for record in parent.read()]
        own = [value for value in there if value.startswith(b"fork")]
        assert own == promoted, "other records were promoted than were judged"
        for each in (*to_fork, to_parent):
            assert each.refused in ("", Promoted.code, Squashed.code), each.refused
            lost = [value for value in each.acknowledged if there.count(value) != 1]
            assert not lost, f"acknowledged, and not there once: {lost[:5]}"
            self._tally.refused[each.refused] += 1
            self._tally.unknown += len(each.unknown)
            self._tally.appended += len(each.acknowledged)
        assert max(Counter(there).values(), default=1) == 1
        self._tally.compared += len(there)


def play(service: Service, rounds: int, seed: int) -> Tally:
    tally = Tally()
    for number in range(rounds):
        Round(service, number, seed * 1_000 + number, tally).play()
    return tally


def main(rounds: str, seed: str) -> None:
    begun = monotonic()
    with one_process() as service:
        tally = play(service, int(rounds), int(seed))
    sys.stdout.write(f"{seed} in {monotonic() - begun:.0f} s: {tally}\n")


if __name__ == "__main__":
    main(*sys.argv[1:3])
