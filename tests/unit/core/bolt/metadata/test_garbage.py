"""What the leader deletes while scans are planned (decision 75)."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from anabranch.core.bolt.metadata.leader import Metadata
from anabranch.core.bolt.protocol.commands import (
    Batch,
    Command,
    CommitObject,
    CreateLog,
    ForkLog,
    Promote,
    RegisterBroker,
    Row,
    Squash,
    Trim,
)
from anabranch.core.bolt.protocol.compaction import Joined, SwapExtents, Swapped
from anabranch.core.bolt.protocol.letters import Ask, Propose
from anabranch.core.bolt.protocol.queries import PlanPage
from anabranch.core.bolt.protocol.scans import (
    AS_FAR,
    BeginPlan,
    EndPlan,
    Erased,
    EraseGarbage,
    ListPlans,
    Plan,
    PlanId,
    ReadPlan,
    RenewPlan,
)
from anabranch.core.bolt.state import snapshot
from anabranch.core.bolt.state.state import State
from anabranch.core.bolt.state.swap import copied
from anabranch.core.errors import StorageFull
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    DeleteObjects,
    Effect,
    Event,
    ObjectsDeleted,
    Persist,
    Persisted,
    PersistFailed,
    Received,
    Send,
    SetTimer,
    TimerFired,
)
from anabranch.core.records.objects import object_id
from anabranch.core.types import MS, NEVER, Kind, LogId, Milliseconds

ORDERS = LogId(1)
BROKER = "broker-0"
GRACE_MS, GC_MS, LEASE_MS = 5_000, 500, 2_000
BATCH_BYTES = 100


class Stage:
    """A leader whose journal and store do at once what they are asked."""

    def __init__(self, **limits: Any) -> None:
        self.limits = Limits(grace_ms=GRACE_MS, gc_interval_ms=GC_MS, **limits)
        self.leader = Metadata(State("test", self.limits), self.limits, 0)
        self.now = 1_000_000 * MS
        self.timers: dict[str, int] = {}
        self.entries: list[bytes] = []
        self.answers: list[Any] = []
        self.deleted: set[int] = set()
        self.refusing = False
        """The journal fails."""
        self.objects = self.serial = 0
        self.take(self.leader.start(self.now))
        self.do(RegisterBroker(BROKER))
        self.do(CreateLog("orders"))

    @property
    def state(self) -> State:
        return self.leader.state

    def take(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            match effect:
                case SetTimer(key, at):
                    self.timers[key] = at
                case Persist(entries) if self.refusing:
                    self.give(PersistFailed(StorageFull("the journal")))
                case Persist(entries):
                    self.entries.extend(entries)
                    self.give(Persisted(self.leader.index + 1))
                case DeleteObjects(objects):
                    assert len(objects) <= 1_000
                    self.deleted.update(objects)
                    self.give(ObjectsDeleted(objects))
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

    def do(self, command: Command) -> Any:
        self.serial += 1
        self.give(Received(BROKER, Propose(self.serial, b"", command)))
        self.wait(1)
        return self.answers.pop().outcome

    def append(self, log: LogId = ORDERS, batches: int = 1) -> int:
        """One object of so many batches."""
        self.objects += 1
        row = Row(log, 0, [Batch(BATCH_BYTES, 1)] * batches)
        object = object_id(1, self.objects)
        self.do(CommitObject(BROKER, object, [row]))
        return object

    def compact(self, log: LogId = ORDERS) -> int:
        """All extents of the log become one."""
        index = self.state.replica.forest.logs[log].index
        extents = [copied(index, turn) for turn in range(len(index))]
        self.objects += 1
        object = object_id(1, self.objects)
        joined = [Joined(len(extents), 0, sum(each.length for each in extents))]
        done = self.do(SwapExtents(BROKER, object, log, extents, joined))
        assert done == Swapped(len(extents) - 1)
        return object

    def plan(self, log: LogId = ORDERS, lease_ms: int = LEASE_MS, **more: Any) -> Plan:
        self.serial += 1
        asked = {"start": AS_FAR, "end": AS_FAR, "speculative": False, "by": "test", **more}
        made = self.do(BeginPlan(PlanId(self.serial), b"s" * 16, log, lease_ms, **asked))
        assert isinstance(made, Plan), made
        return made

    def page(self, plan: Plan, start: int | None = None, slices_max: int = 100) -> Any:
        query = ReadPlan(plan.log, plan.id, plan.start if start is None else start, slices_max)
        self.give(Received(BROKER, Ask(1, query)))
        return self.answers.pop().answer

    def keep(self, plan: Plan, ms: Milliseconds) -> None:
        """Wait, as a reader does that renews its plan."""
        for _ in range(ms * 2 // LEASE_MS + 1):
            self.wait(LEASE_MS // 2)
            assert isinstance(self.do(RenewPlan(plan.log, plan.id, LEASE_MS)), Plan)

    def listed(self) -> list[Plan]:
        self.give(Received(BROKER, Ask(1, ListPlans())))
        return self.answers.pop().answer.plans


def objects(page: PlanPage) -> set[int]:
    return {each.object for each in page.slices}


def compacted(stage: Stage, fork: LogId) -> None:
    stage.compact(fork)


def trimmed(stage: Stage, fork: LogId) -> None:
    assert not isinstance(stage.do(Trim(fork, 3)), Refused)


def squashed(stage: Stage, fork: LogId) -> None:
    assert not isinstance(stage.do(Squash(fork)), Refused)


@pytest.mark.parametrize("change", [compacted, trimmed, squashed])
def test_objects_that_a_live_plan_names_outlive_their_grace_and_go_when_it_ends(
    change: Callable[[Stage, LogId], None],
) -> None:
    stage = Stage()
    fork = stage.do(ForkLog(ORDERS, Kind.SEVERED, "f")).id
    written = {stage.append(fork) for _ in range(3)}
    plan = stage.plan(fork)
    page = stage.page(plan)
    assert objects(page) == written
    assert page.next == plan.end == 3
    change(stage, fork)
    stage.keep(plan, 4 * GRACE_MS)
    assert not stage.deleted & written, "the scan still reads them"
    assert stage.do(EndPlan(fork, plan.id))
    stage.wait(2 * GC_MS)
    assert stage.deleted >= written
    assert stage.do(RenewPlan(fork, plan.id, LEASE_MS)).code == "plan-ended"


def test_garbage_that_is_older_than_every_plan_goes_after_its_grace() -> None:
    stage = Stage()
    before = {stage.append() for _ in range(2)}
    stage.compact()
    plan = stage.plan()
    later = objects(stage.page(plan)) | {stage.append()}
    stage.compact()
    stage.keep(plan, 2 * GRACE_MS)
    assert stage.deleted == before
    younger = stage.plan()
    stage.do(EndPlan(ORDERS, plan.id))
    stage.keep(younger, 2 * GC_MS)
    assert stage.deleted == before | later, "the younger plan names none of them"


def test_a_plan_that_nobody_renews_lapses_and_says_so() -> None:
    stage = Stage()
    stage.append()
    stage.append()
    plan = stage.plan()
    written = objects(stage.page(plan))
    stage.compact()
    stage.refusing = True
    stage.wait(LEASE_MS + 2 * GRACE_MS)
    assert stage.state.replica.plans.live
    assert not stage.deleted, "nothing goes before the journal knows that the plan has ended"
    stage.refusing = False
    stage.wait(3 * GC_MS)
    assert stage.deleted == written
    refused = stage.page(plan)
    assert refused.code == "plan-ended"
    assert "lease" in refused.message


def test_no_renewal_makes_a_plan_older_than_it_may_be() -> None:
    stage = Stage(plan_age_ms_max=3 * LEASE_MS)
    stage.wait(GC_MS)
    stage.append()
    plan = stage.plan()
    stage.keep(plan, 2 * LEASE_MS)
    renewed = stage.do(RenewPlan(ORDERS, plan.id, LEASE_MS))
    assert renewed.expires == plan.began + 3 * LEASE_MS
    stage.wait(LEASE_MS + GC_MS)
    assert "plan_age_ms_max" in stage.do(RenewPlan(ORDERS, plan.id, LEASE_MS)).message


def test_the_oldest_plans_end_when_they_hold_back_too_much_and_no_others() -> None:
    stage = Stage(plan_held_bytes_max=10 * BATCH_BYTES)
    plans: list[Plan] = []
    for _ in range(3):
        stage.append()
        plans.append(stage.plan(lease_ms=600_000))
        stage.wait(10)
        stage.append()
        stage.compact()
    oldest, older, youngest = plans
    stage.wait(GRACE_MS - GC_MS)
    assert len(stage.state.replica.plans.live) == 3, "nothing of it is past its grace"
    stage.wait(4 * GC_MS)
    assert [*stage.state.replica.plans.live] == [older.id, youngest.id], "they hold 1,000 bytes"
    assert stage.state.replica.references.held(older.began, NEVER) == (6, 1_000)
    assert "plan_held_bytes_max" in stage.page(oldest).message


def test_erasure_ends_every_plan_and_deletes_garbage_without_its_grace() -> None:
    stage = Stage()
    for _ in range(2):
        stage.append()
    plan = stage.plan(lease_ms=600_000)
    written = objects(stage.page(plan))
    stage.compact()
    stage.wait(2)
    assert stage.do(EraseGarbage()) == Erased(1, 2)
    stage.wait(1)
    assert stage.deleted == written
    assert "erased" in stage.page(plan).message
    fresh = stage.plan()
    named = objects(stage.page(fresh))
    stage.append()
    stage.compact()
    stage.wait(GRACE_MS // 2)
    assert not stage.deleted & named, "an erasure concerns what was garbage then"


def test_erasure_deletes_more_than_one_request_takes_without_waiting() -> None:
    stage = Stage()
    garbage = stage.state.replica.references.garbage
    for number in range(2_500):
        garbage[object_id(1, 10_000 + number)] = stage.now // MS  # type: ignore[index]
    stage.do(EraseGarbage())
    stage.wait(5)
    assert len(stage.deleted) == 2_500


def test_pages_go_on_where_the_last_ended_whatever_was_compacted_between() -> None:
    stage = Stage()
    for _ in range(6):
        stage.append(batches=2)
    plan = stage.plan()
    first = stage.page(plan, slices_max=3)
    assert (first.next, len(first.slices)) == (6, 3)
    made = stage.compact()
    stage.append()
    second = stage.page(plan, first.next)
    assert [(each.object, each.first, each.count, each.skip) for each in second.slices] == [
        (made, 6, 6, 6)
    ]
    assert second.next == plan.end == 12
    assert stage.page(plan, 12).slices == []
    assert stage.page(plan, 13).code == "out-of-range"


def test_positions_past_the_settled_one_are_planned_only_as_speculative() -> None:
    stage = Stage()
    stage.append(batches=2)
    fork = stage.do(ForkLog(ORDERS, Kind.CONTINUOUS, "f", promotable=True)).id
    stage.append(fork)
    stage.append()
    assert stage.plan().end == 2
    begin = BeginPlan(PlanId(99), b"s" * 16, ORDERS, LEASE_MS, AS_FAR, 3, False, "")
    assert stage.do(begin).code == "read-blocked"
    plan = stage.plan(speculative=True)
    assert (plan.settled, plan.end) == (2, 3)
    assert stage.page(plan, slices_max=1).next == 2
    settled = stage.plan()
    stage.do(Promote(fork))
    assert stage.page(plan, 2).code == "plan-outdated"
    assert stage.page(settled).next == 2, "below the settled position nothing has moved"


def test_a_log_that_was_trimmed_past_a_page_or_is_gone_says_so() -> None:
    stage = Stage()
    fork = stage.do(ForkLog(ORDERS, Kind.SEVERED, "f")).id
    for _ in range(4):
        stage.append(fork)
    plan = stage.plan(fork)
    stage.do(Trim(fork, 2))
    assert stage.page(plan, 1).code == "plan-outdated"
    assert stage.page(plan, 2).next == 4
    stage.do(Squash(fork))
    assert stage.page(plan, 2).code == "squashed"
    assert isinstance(stage.do(RenewPlan(fork, plan.id, LEASE_MS)), Plan), "its objects are kept"


def test_plans_are_bounded_and_ask_for_what_they_may() -> None:
    stage = Stage(plans_max=3, plans_per_log_max=2, plan_lease_ms_max=LEASE_MS)
    stage.wait(GC_MS)
    other = stage.do(CreateLog("other")).id
    begin = BeginPlan(PlanId(70), b"s" * 16, ORDERS, LEASE_MS, AS_FAR, AS_FAR, False, "")
    longer = replace(begin, lease_ms=LEASE_MS + 1)
    assert stage.do(longer).code == "bad-request"
    assert stage.do(replace(begin, start=1)).code == "out-of-range"
    assert stage.do(replace(begin, log=LogId(9))).code == "unknown-log"
    stage.plan()
    stage.plan()
    assert stage.do(begin).facts["setting"] == "plans_per_log_max"
    plan = stage.plan(other)
    assert stage.do(replace(begin, log=other)).facts["setting"] == "plans_max"
    assert stage.do(RenewPlan(ORDERS, plan.id, LEASE_MS)).code == "plan-ended", "of another log"
    stage.do(EndPlan(ORDERS, plan.id))
    assert plan.id in stage.state.replica.plans.live
    stage.do(EndPlan(other, plan.id))
    stage.do(EndPlan(other, plan.id))
    assert len(stage.listed()) == 2


def test_a_new_leader_keeps_what_the_plans_of_the_one_before_name() -> None:
    stage = Stage()
    for _ in range(2):
        stage.append()
    plan = stage.plan()
    page = stage.page(plan)
    stage.compact()
    image = snapshot.save(stage.state.replica)
    last, then = len(stage.entries), stage.now
    leaders = (
        Metadata.recovered("test", stage.limits, image, (), last),
        Metadata.recovered("test", stage.limits, None, stage.entries, last),
    )
    for leader in leaders:
        assert snapshot.save(leader.state.replica) == image
        stage.leader, stage.timers, stage.now = leader, {}, then
        stage.take(leader.start(stage.now))
        stage.keep(plan, 2 * GRACE_MS)
        assert not stage.deleted & objects(page)
