"""Long histories of every call, drawn from a seed, against the naive model (spec 12.2)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from anabranch.core.bolt.commands import (
    Batch,
    CommitCursor,
    CreateLog,
    DeleteLog,
    Expire,
    ForkLog,
    Promote,
    Squash,
    Trim,
)
from anabranch.core.limits import Limits
from anabranch.core.types import Kind, LogId, OnParentDelete

LOGS_MAX = 14


class Walk:
    """Draws calls, mostly sensible ones, and makes them."""

    def __init__(self, pair: Any, seed: int) -> None:
        self.pair = pair
        self.chance = random.Random(seed)
        self.sent: list[tuple[LogId, Batch]] = []
        self.next: dict[tuple[LogId, int, int], int] = {}

    def any_log(self) -> Any:
        return self.chance.choice([*self.pair.naive.logs.values()])

    def any_id(self) -> LogId:
        """Usually of a live log."""
        if self.chance.random() < 0.03:
            return LogId(self.chance.randrange(1, self.pair.naive.next_id + 1))
        return self.any_log().id

    def step(self) -> None:
        naive = self.pair.naive
        if not naive.logs:
            self.create()
            return
        weights = {
            self.commit: 40,
            self.fork: 16 if len(naive.logs) < LOGS_MAX else 2,
            self.promote: 7,
            self.squash: 5 if len(naive.logs) > LOGS_MAX // 2 else 1,
            self.trim: 3,
            self.expire: 3,
            self.cursor: 2,
            self.create: 1,
            self.delete: 1,
            self.restart: 1,
        }
        (call,) = self.chance.choices([*weights], [*weights.values()])
        call()

    def commit(self) -> None:
        rows = [(self.any_id(), self.batches()) for _ in range(self.chance.randrange(1, 4))]
        rows = [(log, self.produced(log, batches)) for log, batches in rows]
        self.pair.commit(rows)

    def batches(self) -> list[Batch]:
        chance = self.chance
        return [
            Batch(chance.randrange(20, 90), chance.choice((1, 1, 2, 3, 5)))
            for _ in range(chance.choice((1, 1, 1, 2, 3)))
        ]

    def produced(self, log: LogId, batches: list[Batch]) -> list[Batch]:
        """Some come from producers: in order, again, or after a gap."""
        found: list[Batch] = []
        for batch in batches:
            draw = self.chance.random()
            if draw < 0.5:
                found.append(batch)
                continue
            mine = [sent for to, sent in self.sent if to == log]
            if draw < 0.62 and mine:
                found.append(self.chance.choice(mine[-40:]))
                continue
            producer, epoch = self.chance.randrange(3), int(self.chance.random() < 0.1)
            key = (log, producer, epoch)
            sequence = self.next.get(key, 0) + (self.chance.random() < 0.05)
            self.next[key] = sequence + batch.count
            sent = Batch(batch.length, batch.count, producer, epoch, sequence)
            self.sent.append((log, sent))
            found.append(sent)
        return found

    def create(self) -> None:
        self.pair.apply(CreateLog(f"log{self.pair.naive.next_id}"))

    def fork(self) -> None:
        chance, parent = self.chance, self.any_log()
        kind = chance.choice((Kind.CONTINUOUS, Kind.CONTINUOUS, Kind.SEVERED))
        past = at = None
        if kind is Kind.SEVERED and chance.random() < 0.6:
            past = chance.randrange(-1, len(parent.records) + 2)
        elif kind is Kind.SEVERED and chance.random() < 0.5:
            at = chance.randrange(990, self.pair.now + 10)
        self.pair.apply(
            ForkLog(
                parent.id,
                kind,
                past=past,
                at=at,
                promotable=kind is Kind.CONTINUOUS and chance.random() < 0.45,
                ttl_ms=chance.choice((None, None, None, 40, 150)),
                on_parent_delete=chance.choice([*OnParentDelete]),
            )
        )

    def promote(self) -> None:
        promotable = [log.id for log in self.pair.naive.logs.values() if log.promotable]
        if promotable and self.chance.random() < 0.9:
            self.pair.apply(Promote(self.chance.choice(promotable)))
        else:
            self.pair.apply(Promote(self.any_id()))

    def squash(self) -> None:
        self.pair.apply(Squash(self.any_id()))

    def delete(self) -> None:
        self.pair.apply(DeleteLog(self.any_id(), force=self.chance.random() < 0.3))

    def trim(self) -> None:
        log = self.any_log()
        self.pair.apply(Trim(log.id, self.chance.randrange(-1, len(log.records) + 2)))

    def cursor(self) -> None:
        log = self.any_log()
        position = self.chance.randrange(-1, len(log.records) + 2)
        self.pair.apply(CommitCursor(log.id, self.chance.choice("ab"), position))

    def expire(self) -> None:
        self.pair.now += self.chance.choice((0, 20))
        due = self.pair.state.replica.expired(self.pair.now + 2)
        self.pair.apply(Expire([*due, self.any_id()]))

    def restart(self) -> None:
        self.pair.restart()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("segments_max", [65_536, 3])
def test_any_history_gives_every_log_the_records_that_copied_lists_have(
    pairs: Any, seed: int, segments_max: int
) -> None:
    pair = pairs(Limits(lineage_segments_max=segments_max))
    walk = Walk(pair, seed)
    for _ in range(120):
        walk.step()
        pair.compare()
    pair.replay()
