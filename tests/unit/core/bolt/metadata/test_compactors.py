"""What the leader does for compactors: their epochs, what they are given, and when both end."""

from typing import Any

import pytest
from msgspec.structs import replace

from anabranch.core.bolt.metadata.leader import Metadata
from anabranch.core.bolt.metadata.orphans import orphans
from anabranch.core.bolt.protocol.commands import (
    Batch,
    Command,
    CommitObject,
    CreateLog,
    Done,
    Epoch,
    RegisterBroker,
    Row,
)
from anabranch.core.bolt.protocol.compaction import Joined, SwapExtents, Swapped
from anabranch.core.bolt.protocol.compactors import (
    Compactor,
    EndCompactor,
    FindCompactor,
    ListCompactors,
    RegisterCompactor,
    RenewCompactor,
    TakeCopies,
    TakenCopies,
)
from anabranch.core.bolt.protocol.letters import Ask, CopyExtents, Propose
from anabranch.core.bolt.protocol.queries import ListBrokers
from anabranch.core.bolt.protocol.scans import BeginPlan, Plan, PlanId
from anabranch.core.bolt.state import snapshot
from anabranch.core.bolt.state.invariants import broken
from anabranch.core.bolt.state.state import State
from anabranch.core.errors import StorageFull
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Effect,
    Event,
    ListObjects,
    ObjectsListed,
    Persist,
    Persisted,
    PersistFailed,
    Received,
    Send,
    SetTimer,
    TimerFired,
)
from anabranch.core.records.objects import object_id
from anabranch.core.types import MS, LogId, Milliseconds

LOG, OTHER = LogId(1), LogId(2)
BROKER = "broker-0"
LEASE_MS, URL_MS, GC_MS, AGE_MS = 2_000, 3_000, 500, 1_000


class Stage:
    """A leader whose journal does at once what it is asked."""

    def __init__(self, **limits: Any) -> None:
        given: dict[str, Any] = {
            "gc_interval_ms": GC_MS,
            "signed_url_ms": URL_MS,
            "compact_age_ms": AGE_MS,
            "compact_extents_min": 2,
            "compact_wait_ms": 4_000,
            **limits,
        }
        self.limits = Limits(**given)
        self.leader = Metadata(State("test", self.limits), self.limits, 0)
        self.now = 1_000_000 * MS
        self.timers: dict[str, int] = {}
        self.answers: list[Any] = []
        self.copies: list[CopyExtents] = []
        self.sweeps = 0
        self.refusing = False
        self.objects = self.serial = 0
        self.take(self.leader.start(self.now))
        assert self.do(RegisterBroker(BROKER)) == Epoch(1)
        self.do(CreateLog("orders"))
        self.do(CreateLog("others"))
        self.wait(2 * GC_MS)
        self.sweeps = 0

    @property
    def replica(self) -> Any:
        return self.leader.state.replica

    def take(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            match effect:
                case SetTimer(key, at):
                    self.timers[key] = at
                case Persist() if self.refusing:
                    self.give(PersistFailed(StorageFull("the journal")))
                case Persist():
                    self.give(Persisted(self.leader.index + 1))
                case ListObjects():
                    self.sweeps += 1
                    self.give(ObjectsListed([]))
                case Send(_, CopyExtents() as copy):
                    self.copies.append(copy)
                case Send(_, message):
                    self.answers.append(message)
                case _:
                    pass

    def give(self, event: Event) -> None:
        self.take(self.leader.step(self.now, event))

    def wait(self, ms: Milliseconds) -> None:
        end = self.now + ms * MS
        while due := sorted((at, key) for key, at in self.timers.items() if at <= end):
            at, key = due[0]
            self.now = max(self.now, at)
            del self.timers[key]
            self.give(TimerFired(key))
        self.now = end
        assert not broken(self.replica)

    def do(self, command: Command) -> Any:
        self.serial += 1
        self.give(Received(BROKER, Propose(self.serial, b"", command)))
        self.wait(1)
        return self.answers.pop().outcome

    def ask(self, query: Any) -> Any:
        self.give(Received(BROKER, Ask(1, query)))
        return self.answers.pop().answer

    def register(self, lease_ms: Milliseconds = LEASE_MS) -> Compactor:
        made = self.do(RegisterCompactor("a job", lease_ms))
        assert isinstance(made, Compactor), made
        return made

    def append(self, log: LogId = LOG, total: int = 77) -> None:
        self.objects += 1
        row = Row(log, 0, [Batch(100, 1)], sum=total)
        self.do(CommitObject(BROKER, object_id(1, self.objects), [row]))

    def grown(self, log: LogId = LOG, extents: int = 4) -> None:
        for _ in range(extents):
            self.append(log)
        self.wait(AGE_MS + GC_MS)

    def plan(self, log: LogId = LOG) -> Plan:
        self.serial += 1
        made = self.do(BeginPlan(PlanId(self.serial), b"s" * 16, log, 600_000, -1, -1, False, "me"))
        assert isinstance(made, Plan)
        return made

    def taken(self, compactor: Compactor, plan: Plan, since: int = 0, **more: int) -> Any:
        return self.ask(TakeCopies(compactor.id, plan.log, plan.id, since, **more))

    def swap(
        self, compactor: Compactor, taken: TakenCopies, sequence: int = 1, total: int = 77
    ) -> Any:
        (copy,) = taken.copies
        extents = [replace(each, sum=total) for each in copy.extents]
        size = sum(each.length for each in extents)
        object = object_id(compactor.id, sequence)
        joined = [Joined(len(extents), 0, size)]
        return self.do(SwapExtents(compactor.key, object, LOG, extents, joined))


QUIET: dict[str, Any] = {"compact_extents_min": 0}
"""Brokers are asked for no copies."""


def test_a_compactor_has_an_epoch_and_no_seat() -> None:
    stage = Stage()
    first, second = stage.register(), stage.register()
    assert (first.id, second.id) == (2, 3)
    assert [each.name for each in stage.ask(ListBrokers()).brokers] == [BROKER]
    assert stage.ask(ListCompactors()).compactors == [first, second]
    assert stage.ask(FindCompactor(first.id)) == first
    assert stage.do(RegisterBroker("other")) == Epoch(4)
    assert stage.do(RegisterBroker("compactor/9")).code == "bad-request"


def test_a_compactor_that_nobody_renews_lapses_and_is_forgotten_after_its_last_url() -> None:
    stage = Stage()
    compactor = stage.register()
    written = [object_id(compactor.id, 1)]
    stage.wait(LEASE_MS // 2)
    renewed = stage.do(RenewCompactor(compactor.id, LEASE_MS))
    assert renewed.expires > compactor.expires
    assert stage.ask(FindCompactor(compactor.id)) == renewed
    stage.wait(LEASE_MS + GC_MS)
    assert stage.ask(FindCompactor(compactor.id)).code == "compactor-ended"
    assert stage.do(RenewCompactor(compactor.id, LEASE_MS)).code == "compactor-ended"
    assert not orphans(stage.replica, written), "a PUT may still be under way"
    assert stage.sweeps == 0
    stage.wait(URL_MS + 2 * GC_MS)
    assert orphans(stage.replica, written) == written
    assert stage.sweeps == 1, "what it left is looked for"
    assert stage.ask(ListCompactors()).compactors == []


def test_one_that_ends_early_is_remembered_until_its_lease_and_its_urls_are_over() -> None:
    stage = Stage()
    compactor = stage.register(10 * LEASE_MS)
    assert stage.do(EndCompactor(compactor.id)) == Done()
    assert stage.do(EndCompactor(compactor.id)) == Done()
    assert stage.ask(FindCompactor(compactor.id)).code == "compactor-ended"
    stage.wait(10 * LEASE_MS + URL_MS - 2 * GC_MS)
    assert not orphans(stage.replica, [object_id(compactor.id, 1)])
    stage.wait(4 * GC_MS)
    assert orphans(stage.replica, [object_id(compactor.id, 1)])


def test_nothing_lapses_before_the_journal_knows() -> None:
    stage = Stage()
    compactor = stage.register()
    stage.refusing = True
    stage.wait(LEASE_MS + URL_MS + 4 * GC_MS)
    assert compactor.key in stage.replica.brokers
    stage.refusing = False
    stage.wait(URL_MS + 4 * GC_MS)
    assert compactor.key not in stage.replica.brokers


def test_only_so_many_are_remembered_with_names_and_leases_within_bounds() -> None:
    stage = Stage(compactors_max=2)
    assert stage.do(RegisterCompactor("", LEASE_MS)).code == "bad-request"
    assert stage.do(RegisterCompactor("x" * 1_001, LEASE_MS)).code == "bad-request"
    for lease_ms in (0, -1, stage.limits.compactor_lease_ms_max + 1):
        refused = stage.do(RegisterCompactor("a job", lease_ms))
        assert "compactor_lease_ms_max" in refused.message
    stage.register()
    last = stage.register(stage.limits.compactor_lease_ms_max)
    assert stage.do(RegisterCompactor("a job", LEASE_MS)).code == "too-many"
    assert "compactor_lease_ms_max" in stage.do(RenewCompactor(last.id, 0)).message


def test_a_compactor_commits_nothing() -> None:
    stage = Stage()
    compactor = stage.register()
    row = Row(LOG, 0, [Batch(100, 1)])
    refused = stage.do(CommitObject(compactor.key, object_id(compactor.id, 1), [row]))
    assert refused.code == "bad-request"
    assert stage.replica.forest.logs[LOG].index.records == 0


def test_what_is_worth_copying_is_taken_in_order_and_its_swap_is_told_again() -> None:
    stage = Stage(**QUIET)
    stage.grown()
    plan, compactor = stage.plan(), stage.register()
    taken = stage.taken(compactor, plan)
    assert [each.first for each in taken.copies[0].extents] == [0, 1, 2, 3]
    assert (taken.next, taken.more, taken.secret) == (4, False, b"s" * 16)
    assert stage.swap(compactor, taken) == Swapped(3)
    assert stage.swap(compactor, taken) == Swapped(3), "as the first time"
    assert len(stage.replica.forest.logs[LOG].index) == 1
    late = stage.swap(compactor, taken, sequence=2)
    assert "no longer as they were copied" in late.why
    assert stage.swap(compactor, taken, sequence=1).code == "bad-request", "a later one is decided"
    image = snapshot.save(stage.replica)
    assert snapshot.save(snapshot.load(image, stage.limits)) == image


def test_copies_end_where_the_plan_did_and_answers_are_bounded() -> None:
    stage = Stage(**QUIET, object_bytes_max=200)
    stage.grown(extents=6)
    plan, compactor = stage.plan(), stage.register()
    stage.grown(extents=6)
    one = stage.taken(compactor, plan, copies_max=1)
    assert (len(one.copies), one.next, one.more) == (1, 2, True)
    rest = stage.taken(compactor, plan, since=one.next)
    assert [copy.extents[0].first for copy in rest.copies] == [2, 4]
    assert (rest.next, rest.more) == (6, False)


@pytest.mark.parametrize("ended", [True, False])
def test_a_compactor_that_is_over_takes_and_swaps_nothing(ended: bool) -> None:
    stage = Stage(**QUIET)
    stage.grown()
    plan, compactor = stage.plan(), stage.register()
    taken = stage.taken(compactor, plan)
    if ended:
        stage.do(EndCompactor(compactor.id))
    else:
        stage.wait(LEASE_MS + 1)
    assert stage.taken(compactor, plan).code == "compactor-ended"
    assert stage.swap(compactor, taken).code == "compactor-ended"
    stage.wait(20 * LEASE_MS)
    assert stage.swap(compactor, taken).code == "broker-fenced"
    assert len(stage.replica.forest.logs[LOG].index) == 4


def test_extents_whose_sums_nobody_keeps_are_left_to_brokers() -> None:
    stage = Stage(**QUIET)
    stage.append(total=0)
    stage.grown()
    plan, compactor = stage.plan(), stage.register()
    taken = stage.taken(compactor, plan)
    assert not taken.copies
    index = stage.replica.forest.logs[LOG].index
    index.sum[0] = 77
    taken = stage.taken(compactor, plan)
    index.sum[0] = 0
    assert "only brokers copy such" in stage.swap(compactor, taken).why
    assert "isn't what was committed" in stage.swap(compactor, taken, 2, total=78).why


def test_brokers_leave_a_log_to_a_compactor_for_as_long_as_it_goes_on() -> None:
    stage = Stage(object_bytes_max=200)
    compactor = stage.register(60_000)
    for _ in range(8):
        stage.append()
    plan = stage.plan()
    stage.now += (AGE_MS + 1) * MS
    first = stage.taken(compactor, plan, copies_max=1)
    stage.wait(3_500)
    assert stage.swap(compactor, first) == Swapped(1)
    stage.wait(3_500)
    assert not stage.copies, "a swap has shown that it goes on"
    stage.wait(1_500)
    assert stage.copies, "it was silent for compact_wait_ms"


def test_two_compactors_dont_copy_the_same_log() -> None:
    stage = Stage(**QUIET)
    stage.grown()
    plan, one, other = stage.plan(), stage.register(60_000), stage.register(60_000)
    assert stage.taken(one, plan).copies
    assert stage.taken(other, plan).code == "unavailable"
    stage.wait(4_001)
    assert stage.taken(other, plan).copies, "the first has fallen silent"


def test_copies_are_taken_by_a_plan_of_that_log_only() -> None:
    stage = Stage(**QUIET)
    stage.grown()
    plan, compactor = stage.plan(OTHER), stage.register()
    refused = stage.ask(TakeCopies(compactor.id, LOG, plan.id, 0))
    assert refused.code == "plan-ended"
    assert stage.taken(compactor, stage.plan(), since=-1).code == "bad-request"


def test_members_that_dont_know_compactors_may_still_lead() -> None:
    stage = Stage()
    stage.replica.format = 10
    assert stage.do(RegisterCompactor("a job", LEASE_MS)).code == "unavailable"
    assert stage.do(RegisterBroker("compactor/9")) == Epoch(2), "as they would answer"
