"""Long histories of every call, drawn from a seed, against the naive model (spec 12.2)."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from anabranch.core.bolt.logs import comparison
from anabranch.core.bolt.protocol.commands import (
    Adopt,
    Batch,
    CommitCursor,
    CreateLog,
    DeleteCursor,
    DeleteLog,
    EngineSettings,
    Expire,
    ForkLog,
    Guarded,
    Promote,
    PromoteIf,
    SetAppends,
    SetQuota,
    SetSettings,
    Squash,
    Trim,
)
from anabranch.core.bolt.protocol.compaction import SwapExtents
from anabranch.core.bolt.protocol.fronts import (
    NO_EPOCH,
    ConfigureFront,
    FrontConfiguration,
    FrontEpoch,
    FrontMark,
    LeadFront,
    OpenFront,
)
from anabranch.core.bolt.protocol.scans import (
    AS_FAR,
    BeginPlan,
    EndPlan,
    EraseGarbage,
    LapsePlans,
    PlanId,
    RenewPlan,
)
from anabranch.core.limits import Limits
from anabranch.core.quota import Quota
from anabranch.core.sequencing.view import Ballot, View
from anabranch.core.types import Kind, LogId, OnParentDelete, OnPromote
from anabranch_sim.bolt.naive_logs import Front, List
from anabranch_sim.bolt.twin_questions import compare_sum, compare_two
from anabranch_sim.bolt.twins import Twins

LOGS_MAX = 12

TEMPERS: list[dict[str, int]] = [
    {"commit": 40, "fork": 16, "promote": 7, "squash": 3},
    {"commit": 25, "fork": 16, "promote": 10, "squash": 4, "severed": 30},
    {"commit": 25, "fork": 20, "promote": 3, "squash": 10, "trim": 10, "severed": 75},
    {"commit": 25, "fork": 16, "promote": 10, "squash": 4, "trim": 12, "severed": 40},
]
FRONTED: dict[str, int] = {
    "order": 40,
    "open_front": 4,
    "lead_front": 2,
    "set_appends": 2,
    "create": 2,
    "delete": 0,
}
"""Of these, where logs have lazy fronts."""
COMPACTED: dict[str, int] = {"copy": 12, "swap": 12}
"""And of these, where extents are compacted."""
PLANNED: dict[str, int] = {**COMPACTED, "plan": 8, "renew": 4, "end_plans": 4}
"""And of these, where scans are planned."""

"""Weights of the calls, and of a hundred forks how many are severed."""


class Walk:
    """Draws calls, mostly sensible ones, and makes them."""

    def __init__(self, twins: Twins, seed: int) -> None:
        self.twins = twins
        self.chance = random.Random(seed)
        self.glances = random.Random(seed)
        """Apart, so that questions don't change what happens."""
        self.summed = 0
        self.by_page = False
        self.temper = TEMPERS[seed % len(TEMPERS)]
        self.copied: SwapExtents | None = None
        self.sent: list[tuple[LogId, Batch]] = []
        self.appends = 0
        """Through fronts; each is another producer's."""
        self.next: dict[tuple[LogId, int, int], int] = {}

    def any_log(self) -> List:
        return self.chance.choice([*self.twins.naive.logs.values()])

    def any_id(self) -> LogId:
        """Usually of a live log."""
        if self.chance.random() < 0.03:
            return LogId(self.chance.randrange(1, self.twins.naive.next_id + 1))
        return self.any_log().id

    def step(self) -> None:
        naive = self.twins.naive
        if not naive.logs:
            self.create()
            return
        usual: dict[Callable[[], None], int] = {
            self.commit: 0,
            self.fork: 0,
            self.promote: 0,
            self.squash: 0,
            self.trim: 1,
            self.expire: 2,
            self.cursor: 4,
            self.uncursor: 1,
            self.quota: 1,
            self.adopt: 1,
            self.create: 1,
            self.declare: 1,
            self.set_settings: 1,
            self.delete: 1,
            self.restart: 1,
            self.copy: 0,
            self.swap: 0,
            self.order: 0,
            self.open_front: 0,
            self.lead_front: 0,
            self.set_appends: 0,
            self.plan: 0,
            self.renew: 0,
            self.end_plans: 0,
        }
        weights = {call: self.temper.get(call.__name__, often) for call, often in usual.items()}
        if len(naive.logs) > LOGS_MAX:
            weights[self.fork], weights[self.squash] = 1, 10
        (call,) = self.chance.choices([*weights], [*weights.values()])
        call()

    def commit(self) -> None:
        rows = [(self.any_id(), self.batches()) for _ in range(self.chance.randrange(1, 4))]
        rows = [(log, self.produced(log, batches)) for log, batches in rows]
        self.twins.commit(rows)

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
        made = CreateLog(f"log{self.twins.naive.next_id}", owner=self.owner())
        if "order" in self.temper and self.chance.random() < 0.8:
            made = replace(made, front=EngineSettings(durability="memory"))
        guarded = Guarded("scope", self.chance.randrange(1, 9), made)
        self.twins.apply(guarded if self.twins.naive.logs and self.chance.random() < 0.5 else made)

    def set_appends(self) -> None:
        """Any log that takes direct appends, or a fork of one, or one that has a front."""
        self.twins.apply(SetAppends(self.any_id(), EngineSettings(durability="memory")))

    def fronted(self) -> LogId:
        logs = [log.id for log in self.twins.naive.logs.values() if log.front is not None]
        return self.chance.choice(logs) if logs else self.any_id()

    def order(self) -> None:
        """A batch of a front: the next one, one that was sent before, or one behind a gap."""
        id, chance = self.fronted(), self.chance
        log = self.twins.naive.logs.get(id)
        front = log.front if log is not None and log.front is not None else Front()
        epoch, number = front.epoch, front.number + 1
        if chance.random() < 0.15:
            epoch = FrontEpoch(chance.randrange(4), chance.randrange(3))
        if chance.random() < 0.15:
            number += chance.choice((-1, 1))
        released = chance.randrange(len(front.records) + 1)
        batches = list[Batch]()
        for batch in self.batches():
            self.appends += 1
            batches.append(Batch(batch.length, batch.count, self.appends, 0, 0))
        self.twins.order(id, batches, FrontMark(epoch, number, released))

    def open_front(self) -> None:
        id, chance = self.fronted(), self.chance
        log = self.twins.naive.logs.get(id)
        known = log.front.epoch if log is not None and log.front is not None else NO_EPOCH
        choices = (
            FrontEpoch(known.view, known.begun + 1),
            FrontEpoch(known.view + 1, 0),
            FrontEpoch(chance.randrange(3), chance.randrange(3)),
        )
        self.twins.apply(OpenFront(id, chance.choice(choices)))

    def lead_front(self) -> None:
        """A controller begins; now and then one of an earlier term decides something."""
        id, chance = self.fronted(), self.chance
        log = self.twins.naive.logs.get(id)
        front = log.front if log is not None and log.front is not None else Front()
        if chance.random() < 0.5:
            self.twins.apply(LeadFront(id, ("a",)))
            return
        term = front.term - (chance.random() < 0.3)
        number = max(1, front.epoch.view)
        view = View(ballot=Ballot(number, term), members=(), leader="a")
        asked = FrontConfiguration(version=front.version + 1, term=term, view=view)
        self.twins.apply(ConfigureFront(id, asked))

    def declare(self) -> None:
        """A log that another engine serves."""
        engine = self.chance.choice(("belfast", "belfast", "erwin", "erwin", "bolt", "other"))
        name = f"log{self.twins.naive.next_id}"
        settings = self.chance.choice((None, self.settings()))
        self.twins.apply(CreateLog(name, owner=self.owner(), engine=engine, settings=settings))

    def set_settings(self) -> None:
        foreign = [log.id for log in self.twins.naive.logs.values() if log.engine]
        log = self.chance.choice([*foreign, self.any_id()])
        self.twins.apply(SetSettings(log, replace(self.settings(), embedded=False)))

    def settings(self) -> EngineSettings:
        chance = self.chance
        addresses = chance.choice(((), ("here:1", "there:2")))
        embedded = not addresses and chance.random() < 0.5
        mode = chance.choice(("", "", "m", "st"))
        return EngineSettings(chance.randrange(4), 1, 1, addresses, "", embedded, mode)

    def owner(self) -> str:
        return self.chance.choice(("", "", "", "", "ann", "bob", f"c{self.chance.randrange(99)}"))

    def adopt(self) -> None:
        self.twins.apply(Adopt(self.any_id(), self.owner()))

    def fork(self) -> None:
        chance, parent = self.chance, self.any_log()
        severed = chance.randrange(100) < self.temper.get("severed", 30)
        kind = Kind.SEVERED if severed else Kind.CONTINUOUS
        past = at = None
        if severed and chance.random() < 0.6:
            past = chance.randrange(-1, len(parent.records) + 2)
        elif severed and chance.random() < 0.5 and not self.twins.spans:
            at = chance.randrange(990, self.twins.now + 10)
        self.twins.apply(
            ForkLog(
                parent.id,
                kind,
                past=past,
                at=at,
                promotable=not severed and chance.random() < 0.45,
                ttl_ms=chance.choice((None, None, None, None, 40, 250)),
                on_parent_delete=chance.choices([*OnParentDelete], (3, 1))[0],
                owner=self.owner(),
            )
        )

    def promote(self) -> None:
        promotable = [log for log in self.twins.naive.logs.values() if log.promotable]
        if promotable and self.chance.random() < 0.9:
            fork = self.chance.choice(promotable)
            expected = fork.own_records + self.chance.choice((-1, 0, 0, 1))
            conditional = self.chance.random() < 0.5
            self.twins.apply(PromoteIf(fork.id, expected) if conditional else Promote(fork.id))
        else:
            id = self.any_id()
            self.twins.apply(Promote(id) if self.chance.random() < 0.5 else PromoteIf(id, 0))

    def squash(self) -> None:
        self.twins.apply(Squash(self.any_id()))

    def delete(self) -> None:
        self.twins.apply(DeleteLog(self.any_id(), force=self.chance.random() < 0.5))

    def trim(self) -> None:
        log = self.any_log()
        past = len(log.records) if self.chance.random() < 0.1 else log.settled()
        self.twins.apply(Trim(log.id, self.chance.randrange(-1, past + 2)))

    def cursor(self) -> None:
        log = self.any_log()
        position = log.settled()  # where a consumer is that keeps up, and promotions begin
        if self.chance.random() < 0.5:
            position = self.chance.randrange(-1, len(log.records) + 2)
        choice = self.chance.choice((None, None, *OnPromote))
        self.twins.apply(CommitCursor(log.id, self.chance.choice("ab"), position, choice))

    def uncursor(self) -> None:
        self.twins.apply(DeleteCursor(self.any_id(), self.chance.choice("ab")))

    def quota(self) -> None:
        rate = self.chance.choice((None, 1, 1_000))
        quota = Quota(rate, None, rate, burst_ms=self.chance.choice((0, 1_000)))
        self.twins.apply(SetQuota(self.any_id(), quota))

    def expire(self) -> None:
        self.twins.now += self.chance.choice((0, 20))
        due = self.twins.state.replica.expired(self.twins.now + 2)
        self.twins.apply(Expire([*due, self.any_id()]))
        self.twins.state.replica.next_expiry()  # as the leader does, and nobody who replays

    def copy(self) -> None:
        """Copy neighbours; by the time they are swapped they may no longer be there."""
        held = [log for log in self.twins.naive.logs.values() if log.undecided()]
        log = self.chance.choice(held) if held and self.chance.random() < 0.5 else self.any_log()
        index = self.twins.state.replica.forest.logs[log.id].index
        if self.copied is not None or not len(index):
            return
        since = self.chance.randrange(len(index))
        joined: list[int] = []
        while since < len(index) and len(joined) < 4:
            end = self.chance.randrange(since, min(len(index), since + 6)) + 1
            while index.inherited_before(since) != index.inherited_before(end - 1):
                end -= 1
            joined.append(end - since)
            since = end
        self.copied = self.twins.copied(log.id, since - sum(joined), joined)

    def swap(self) -> None:
        if self.copied is not None:
            self.twins.swap(self.copied)
            self.copied = None

    def plan(self) -> None:
        log, chance = self.any_log(), self.chance
        start, end = (
            chance.choice((AS_FAR, AS_FAR, chance.randrange(-2, len(log.records) + 2)))
            for _ in range(2)
        )
        command = BeginPlan(
            plan=PlanId(1 + chance.getrandbits(62)),
            secret=chance.randbytes(16),
            log=log.id if chance.random() < 0.95 else self.any_id(),
            lease_ms=chance.choice((20, 200, 600_000)),
            start=start,
            end=end,
            speculative=chance.random() < 0.4,
            by="walk",
        )
        self.twins.apply(command)

    def any_plan(self) -> tuple[LogId, PlanId]:
        live = [(plan.log, id) for id, plan in self.twins.naive.plans.live.items()]
        return self.chance.choice([*live, (self.any_id(), PlanId(1))])

    def renew(self) -> None:
        self.twins.apply(RenewPlan(*self.any_plan(), self.chance.choice((20, 200))))

    def end_plans(self) -> None:
        draw, live = self.chance.random(), [*self.twins.naive.plans.live]
        if draw < 0.5:
            self.twins.apply(EndPlan(*self.any_plan()))
        elif draw < 0.95:
            self.twins.apply(LapsePlans(live, held_too_much=draw < 0.55))
        else:
            self.twins.apply(EraseGarbage())

    def glance(self) -> None:
        """Read a part of one log: what look-ups keep is at times far behind."""
        own = [log for log in self.twins.naive.logs.values() if not log.engine]
        if self.chance.random() < 0.3 and own:
            log = self.chance.choice(own)
            start = self.chance.randrange(log.start, len(log.records) + 1)
            self.twins.compare_part(log.id, start, self.chance.randrange(1, 9))
            compare_two(self.twins, log.id, self.chance.choice(own).id, by_page=self.by_page)
            first = self.glances.randrange(log.start, log.settled() + 1)
            end = self.glances.randrange(first, log.settled() + 1)
            self.summed += compare_sum(self.twins, log.id, first, end).summed

    def restart(self) -> None:
        self.twins.restart()


@pytest.mark.parametrize("seed", range(16))
def test_any_history_gives_every_log_the_records_that_copied_lists_have(seed: int) -> None:
    _play(seed, {})


@pytest.mark.parametrize("seed", range(16))
def test_any_history_in_which_extents_are_compacted_gives_the_same(seed: int) -> None:
    twins = _play(seed, COMPACTED)
    assert twins.copies, "some were copied"


@pytest.mark.parametrize("seed", range(8))
def test_pages_of_a_plan_name_the_records_that_were_planned_whatever_comes_between(
    seed: int,
) -> None:
    twins = _play(seed, PLANNED)
    assert twins.state.replica.plans.live or twins.state.replica.plans.ended


@pytest.mark.parametrize("seed", range(12))
def test_any_history_in_which_logs_have_lazy_fronts_gives_the_same(seed: int) -> None:
    twins = _play(seed, FRONTED)
    assert any(log.front.records for log in twins.naive.logs.values() if log.front is not None)


@pytest.mark.parametrize("seed", range(20, 24))
def test_two_logs_compared_by_page_differ_as_they_do_at_once(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "EXTENTS_MAX", 1 + seed % 3)
    _play(seed, COMPACTED, by_page=True)


def _play(seed: int, also: dict[str, int], *, by_page: bool = False) -> Twins:
    """What goes wrong seldom heals: to compare at some steps lets more steps be taken."""
    twins = Twins(Limits(lineage_segments_max=65_536 if seed % 8 < 4 else 3))
    walk = Walk(twins, seed)
    walk.temper = {**walk.temper, **also}
    walk.by_page = by_page
    for _ in range(300):
        walk.step()
        if walk.chance.random() < 0.15:
            twins.compare()
        else:
            walk.glance()
    walk.swap()
    twins.compare()
    twins.replay()
    assert walk.summed, "some records were in a set sum"
    return twins
