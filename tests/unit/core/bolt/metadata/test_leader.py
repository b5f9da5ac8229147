"""The metadata leader as traces: what it journals, when it applies, whom it tells (spec 4, 6,
10).
"""

from typing import Any

import pytest

from anabranch.core.bolt.metadata.leader import Metadata
from anabranch.core.bolt.protocol.commands import (
    Batch,
    Command,
    CommitObject,
    CreateLog,
    Description,
    Epoch,
    ForkLog,
    Guarded,
    Promote,
    RegisterBroker,
    Row,
    Squash,
)
from anabranch.core.bolt.protocol.letters import (
    Applied,
    Ask,
    Moved,
    Propose,
    QueryAnswer,
    Unwatch,
    Watch,
)
from anabranch.core.bolt.protocol.queries import Describe
from anabranch.core.bolt.state import snapshot
from anabranch.core.bolt.state.state import State
from anabranch.core.errors import StorageFull
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    DeleteObjects,
    Effect,
    Event,
    ListObjects,
    ObjectsDeleted,
    ObjectsListed,
    ObjectsQuarantined,
    Persist,
    Persisted,
    PersistFailed,
    QuarantineObjects,
    Received,
    SaveSnapshot,
    Send,
    SetTimer,
    SnapshotSaved,
    TimerFired,
)
from anabranch.core.records.objects import object_id
from anabranch.core.types import MS, Kind, LogId

BROKER = "broker-0"
ORDERS = LogId(1)
START = 1_000_000 * MS


class Stage:
    """A leader, its clock, a journal in a list, and what it said to whom."""

    def __init__(self, **limits: Any) -> None:
        self.limits = Limits(**limits)
        self.leader = Metadata(State("test", self.limits), self.limits, 0)
        self.now = START
        self.timers: dict[str, int] = {}
        self.journal: list[bytes] = []
        self.unwritten: list[Persist] = []
        self.said: list[Any] = []
        self.asked: list[Effect] = []
        self.fired = 0
        self.requests = 0
        self.objects = 0
        self.take(self.leader.start(self.now))

    def take(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            match effect:
                case SetTimer(key, at):
                    self.timers[key] = at
                case Persist():
                    self.unwritten.append(effect)
                case Send(_, message):
                    self.said.append(message)
                case _:
                    self.asked.append(effect)

    def give(self, event: Event) -> None:
        """One event, and the end of its turn."""
        self.take(self.leader.step(self.now, event))
        self.ring()

    def ring(self) -> None:
        while due := sorted((at, key) for key, at in self.timers.items() if at <= self.now):
            self.fired += 1
            assert self.fired < 1_000, "timers set for now for ever"
            del self.timers[due[0][1]]
            self.take(self.leader.step(self.now, TimerFired(due[0][1])))

    def propose(self, *commands: Command) -> None:
        """All in one turn."""
        for command in commands:
            self.requests += 1
            request = (
                b"" if isinstance(command, CommitObject) else self.requests.to_bytes(16, "big")
            )
            message = Propose(self.requests, request, command)
            self.take(self.leader.step(self.now, Received(BROKER, message)))
        self.ring()

    def write(self) -> None:
        """The journal is as fast as one wishes: every group is durable."""
        while self.unwritten:
            self.journal.extend(self.unwritten.pop(0).entries)
            self.give(Persisted(len(self.journal)))

    def do(self, *commands: Command) -> list[Any]:
        self.propose(*commands)
        self.write()
        return [each.outcome for each in self.heard(Applied)]

    def heard(self, kind: type) -> list[Any]:
        found = [each for each in self.said if isinstance(each, kind)]
        self.said = [each for each in self.said if not isinstance(each, kind)]
        return found

    def orders(self) -> None:
        self.do(RegisterBroker(BROKER), CreateLog("orders"))

    def commit(self, log: int = ORDERS, count: int = 1) -> CommitObject:
        self.objects += 1
        row = Row(LogId(log), 0, [Batch(100, count)])
        return CommitObject(BROKER, object_id(1, self.objects), [row])

    def wait(self, ms: int) -> None:
        self.now += ms * MS
        self.ring()


@pytest.fixture
def stage() -> Stage:
    made = Stage()
    made.orders()
    return made


def test_r1_nothing_is_applied_or_answered_before_its_group_is_durable(stage: Stage) -> None:
    stage.propose(CreateLog("late"))
    assert len(stage.unwritten) == 1
    assert not stage.heard(Applied)
    stage.give(Received(BROKER, Ask(7, Describe("late"))))
    assert stage.heard(QueryAnswer)[0].answer.code == "unknown-log"
    stage.write()
    assert isinstance(stage.heard(Applied)[0].outcome, Description)


def test_commands_of_one_turn_are_one_group_and_of_one_flight_the_next(stage: Stage) -> None:
    stage.propose(CreateLog("a"), CreateLog("b"))
    stage.propose(CreateLog("c"))
    stage.propose(CreateLog("d"))
    assert len(stage.unwritten) == 1
    before = len(stage.journal)
    stage.write()
    assert len(stage.journal) == before + 2
    assert [each.outcome.name for each in stage.heard(Applied)] == ["a", "b", "c", "d"]


def test_a_group_has_a_bound() -> None:
    stage = Stage(group_commands_max=2)
    stage.propose(*(CreateLog(f"log{n}") for n in range(5)))
    stage.write()
    assert len(stage.journal) == 3


def test_a_group_has_a_bound_in_bytes() -> None:
    stage = Stage(group_bytes_max=1_000)
    stage.do(RegisterBroker(BROKER))
    written = len(stage.journal)
    stage.propose(*(stage.commit(log) for log in range(1, 101)))
    stage.write()
    groups = stage.journal[written:]
    assert len(groups) > 1
    assert max(map(len, groups)) <= 1_000


def test_limits_that_could_not_be_journaled_at_the_start_are_journaled_later() -> None:
    stage = Stage()
    stage.limits = Limits(logs_max=1)
    stage.leader = Metadata(State("test", Limits()), stage.limits, 0)
    stage.take(stage.leader.start(stage.now))
    stage.ring()
    stage.unwritten.clear()
    stage.give(PersistFailed(StorageFull("the journal")))
    stage.wait(stage.limits.gc_interval_ms)
    stage.write()
    assert stage.leader.state.replica.limits.logs_max == 1
    assert len(stage.journal) == 1
    stage.wait(stage.limits.gc_interval_ms)
    assert not stage.unwritten


def test_past_the_queue_commands_are_refused_at_once() -> None:
    stage = Stage(proposals_max=2, group_commands_max=1)
    stage.ring()
    stage.write()
    stage.propose(CreateLog("flying"))
    stage.propose(CreateLog("one"), CreateLog("two"), CreateLog("three"))
    refused = stage.heard(Applied)
    assert [(each.token, each.outcome.code) for each in refused] == [(4, "overloaded")]
    stage.write()
    assert [each.outcome.name for each in stage.heard(Applied)] == ["flying", "one", "two"]


def test_a_group_that_was_not_written_changes_nothing_and_can_be_asked_for_again(
    stage: Stage,
) -> None:
    before = snapshot.save(stage.leader.state.replica)
    message = Propose(50, b"r" * 16, CreateLog("full"))
    stage.give(Received(BROKER, message))
    stage.unwritten.clear()
    stage.give(PersistFailed(StorageFull("the journal")))
    assert stage.heard(Applied)[0].outcome.code == "storage-full"
    assert snapshot.save(stage.leader.state.replica) == before
    stage.give(Received(BROKER, message))
    stage.write()
    assert stage.heard(Applied)[0].outcome.name == "full"


def test_d4_a_request_asked_twice_is_done_once(stage: Stage) -> None:
    message = Propose(50, b"r" * 16, CreateLog("once"))
    stage.give(Received(BROKER, message))
    stage.give(Received(BROKER, message))
    stage.write()
    first, second = stage.heard(Applied)
    assert first.outcome == second.outcome


def test_b12_what_was_journaled_gives_the_same_state_again(stage: Stage) -> None:
    stage.do(stage.commit(count=3), ForkLog(ORDERS, Kind.CONTINUOUS, "f", promotable=True))
    stage.do(stage.commit(2), stage.commit(), Promote(LogId(2)))
    image = snapshot.save(stage.leader.state.replica)
    again = Metadata.recovered("test", stage.limits, None, stage.journal, len(stage.journal))
    assert snapshot.save(again.state.replica) == image
    half = Metadata.recovered("test", stage.limits, None, stage.journal[:2], 2)
    rest = Metadata.recovered(
        "test",
        stage.limits,
        snapshot.save(half.state.replica),
        stage.journal[2:],
        len(stage.journal),
    )
    assert snapshot.save(rest.state.replica) == image


@pytest.mark.parametrize("guarded", [False, True])
def test_d7_a_fork_is_squashed_when_its_time_to_live_has_passed(
    stage: Stage, guarded: bool
) -> None:
    fork = ForkLog(ORDERS, Kind.CONTINUOUS, "brief", ttl_ms=500)
    stage.do(Guarded("scope", 1, fork) if guarded else fork)
    stage.wait(499)
    assert not stage.unwritten
    stage.wait(1)
    stage.write()
    stage.give(Received(BROKER, Ask(7, Describe("orders--brief"))))
    assert stage.heard(QueryAnswer)[0].answer.code == "squashed"


def test_expiry_is_proposed_once_however_long_the_journal_takes(stage: Stage) -> None:
    stage.do(ForkLog(ORDERS, Kind.CONTINUOUS, "brief", ttl_ms=5))
    stage.wait(5)
    stage.wait(100_000)
    stage.wait(100_000)
    before = len(stage.journal)
    stage.write()
    entries = b"".join(stage.journal[before:])
    assert entries.count(b"expire") == 1


def test_expiry_behind_a_full_queue_lets_the_queue_drain() -> None:
    stage = Stage(proposals_max=1, group_commands_max=1)
    stage.do(RegisterBroker(BROKER))
    stage.do(CreateLog("orders"))
    stage.do(ForkLog(ORDERS, Kind.CONTINUOUS, "brief", ttl_ms=5))
    stage.propose(CreateLog("flying"))
    stage.propose(CreateLog("queued"))
    stage.wait(5)
    stage.write()
    stage.wait(1_000)
    stage.write()
    stage.give(Received(BROKER, Ask(7, Describe("orders--brief"))))
    assert stage.heard(QueryAnswer)[-1].answer.code == "squashed"


def test_expiry_that_was_not_written_is_proposed_again(stage: Stage) -> None:
    stage.do(ForkLog(ORDERS, Kind.CONTINUOUS, "brief", ttl_ms=5))
    stage.wait(5)
    stage.unwritten.clear()
    stage.give(PersistFailed(StorageFull("the journal")))
    stage.wait(stage.limits.gc_interval_ms)
    stage.write()
    stage.give(Received(BROKER, Ask(7, Describe("orders--brief"))))
    assert stage.heard(QueryAnswer)[0].answer.code == "squashed"


def test_a_watcher_is_told_at_once_and_then_of_every_move(stage: Stage) -> None:
    stage.give(Received(BROKER, Watch([(ORDERS, 0)])))
    first = stage.heard(Moved)[0]
    assert (first.tail, first.settled, first.after) == (0, 0, -1)
    stage.do(stage.commit(count=2))
    second = stage.heard(Moved)[0]
    assert (second.tail, second.settled, second.after) == (2, 2, first.version)
    stage.do(CreateLog("other"))
    assert not stage.heard(Moved)


def test_a_repeated_watch_is_answered_only_if_something_was_missed(stage: Stage) -> None:
    stage.give(Received(BROKER, Watch([(ORDERS, 0)])))
    known = stage.heard(Moved)[0].version
    stage.give(Received(BROKER, Watch([(ORDERS, known)])))
    assert not stage.heard(Moved)
    stage.do(stage.commit())
    stage.heard(Moved)
    stage.give(Received(BROKER, Watch([(ORDERS, known)])))
    assert stage.heard(Moved)[0].tail == 1


def test_a_watch_that_is_not_repeated_lapses(stage: Stage) -> None:
    stage.give(Received(BROKER, Watch([(ORDERS, 0)])))
    stage.heard(Moved)
    stage.wait(stage.limits.gc_interval_ms)
    stage.do(stage.commit())
    assert not stage.heard(Moved)
    assert not stage.leader.watches.families


def test_whoever_no_longer_watches_is_told_nothing(stage: Stage) -> None:
    stage.give(Received(BROKER, Watch([(ORDERS, 0)])))
    stage.heard(Moved)
    stage.give(Received(BROKER, Unwatch([ORDERS])))
    stage.do(stage.commit())
    assert not stage.heard(Moved)


def test_4_1_a_watcher_of_a_fork_hears_of_its_parents_appends(stage: Stage) -> None:
    stage.do(ForkLog(ORDERS, Kind.CONTINUOUS, "f"))
    stage.give(Received(BROKER, Watch([(LogId(2), 0)])))
    stage.heard(Moved)
    stage.do(stage.commit(count=4))
    assert stage.heard(Moved)[0].tail == 4


def test_5_6_a_promotion_tells_watchers_from_where_on_records_moved(stage: Stage) -> None:
    stage.do(stage.commit(count=3), ForkLog(ORDERS, Kind.CONTINUOUS, "f", promotable=True))
    stage.do(stage.commit(count=2), stage.commit(2, count=1), stage.commit(count=1))
    stage.give(Received(BROKER, Watch([(ORDERS, 0), (LogId(2), 0)])))
    before = stage.heard(Moved)[0]
    assert (before.tail, before.settled, before.undecided) == (6, 3, "orders--f")
    stage.do(Promote(LogId(2)))
    parent, child = stage.heard(Moved)
    assert (parent.settled, parent.diverges, parent.after) == (7, 5, before.version)
    assert parent.generation > before.generation
    assert isinstance(child.ended, Refused)
    assert child.ended.code == "promoted"


def test_a_promotion_leaves_a_blocked_siblings_watcher_with_what_was_settled(
    stage: Stage,
) -> None:
    stage.do(stage.commit(count=3), ForkLog(ORDERS, Kind.CONTINUOUS, "plain"))
    stage.do(stage.commit(2, count=2), ForkLog(ORDERS, Kind.CONTINUOUS, "f", promotable=True))
    stage.do(stage.commit(count=2), stage.commit(3, count=1))
    stage.give(Received(BROKER, Watch([(LogId(2), 0)])))
    before = stage.heard(Moved)[0]
    assert (before.tail, before.settled, before.append_blocked) == (7, 5, "orders--f")
    stage.do(Promote(LogId(3)))
    after = stage.heard(Moved)[0]
    assert (after.tail, after.settled, after.append_blocked) == (8, 8, None)
    assert after.diverges == 5
    assert after.generation > before.generation


def test_a_watch_of_a_log_that_is_gone_says_so(stage: Stage) -> None:
    stage.do(ForkLog(ORDERS, Kind.CONTINUOUS, "f"), Squash(LogId(2)))
    stage.give(Received(BROKER, Watch([(LogId(2), 0), (LogId(99), 0)])))
    assert [each.ended.code for each in stage.heard(Moved)] == ["squashed", "unknown-log"]


def test_b12_a_snapshot_is_taken_when_the_journal_has_grown_and_one_at_a_time() -> None:
    stage = Stage(snapshot_bytes=200)
    stage.orders()
    for _ in range(20):
        stage.do(stage.commit())
    saves = [each for each in stage.asked if isinstance(each, SaveSnapshot)]
    assert len(saves) == 1
    replica = snapshot.load(saves[0].image, stage.limits)
    assert replica.applied <= stage.leader.state.replica.applied
    stage.give(SnapshotSaved(saves[0].index))
    for _ in range(20):
        stage.do(stage.commit())
    assert len([each for each in stage.asked if isinstance(each, SaveSnapshot)]) == 2


def test_d6_garbage_is_deleted_after_its_grace_and_then_forgotten(stage: Stage) -> None:
    stage.do(ForkLog(ORDERS, Kind.CONTINUOUS, "f"), stage.commit(2), Squash(LogId(2)))
    stage.wait(stage.limits.grace_ms - stage.limits.gc_interval_ms)
    assert not [each for each in stage.asked if isinstance(each, DeleteObjects)]
    stage.wait(2 * stage.limits.gc_interval_ms)
    stage.wait(stage.limits.gc_interval_ms)
    deletes = [each for each in stage.asked if isinstance(each, DeleteObjects)]
    assert [list(each.objects) for each in deletes] == [[object_id(1, 1)]]
    stage.give(ObjectsDeleted(deletes[0].objects))
    stage.write()
    assert not stage.leader.state.replica.references.garbage


def test_d6_orphans_of_a_broker_life_that_is_over_go_to_quarantine_and_no_others(
    stage: Stage,
) -> None:
    stage.do(stage.commit())
    stage.wait(stage.limits.gc_interval_ms)
    assert any(isinstance(each, ListObjects) for each in stage.asked)
    assert stage.do(RegisterBroker(BROKER)) == [Epoch(2)]
    kept, orphan, flying, foreign = (
        object_id(1, 1),
        object_id(1, 2),
        object_id(2, 0),
        object_id(9, 0),
    )
    stage.asked.clear()
    stage.give(ObjectsListed([kept, orphan, flying, foreign]))
    assert stage.asked == [QuarantineObjects([orphan])]


def test_orphans_are_looked_for_again_only_when_those_found_were_moved(stage: Stage) -> None:
    orphan = object_id(1, 2)
    answers = [None, ObjectsListed([orphan]), ObjectsQuarantined([orphan])]
    for answer, looks in zip(answers, (1, 1, 2), strict=True):
        if answer is not None:
            stage.give(answer)
        stage.do(RegisterBroker(BROKER))
        stage.wait(stage.limits.gc_interval_ms)
        assert sum(isinstance(each, ListObjects) for each in stage.asked) == looks


def test_what_the_leader_itself_proposes_is_nobodys_to_answer(stage: Stage) -> None:
    stage.do(ForkLog(ORDERS, Kind.CONTINUOUS, "brief", ttl_ms=5))
    stage.said.clear()
    stage.wait(5)
    stage.write()
    assert not stage.said


def test_b12_a_replay_under_other_limits_gives_the_same_state() -> None:
    stage = Stage()
    few = Limits(depth_max=1)
    strict = Metadata.recovered("test", few, None, [], 0)
    stage.leader, stage.limits = strict, few
    stage.take(strict.start(stage.now))
    stage.write()
    stage.do(CreateLog("orders"), ForkLog(ORDERS, Kind.CONTINUOUS, "f"))
    refused = stage.do(ForkLog(LogId(2), Kind.CONTINUOUS, "too-deep"))
    assert refused[0].code == "too-many"
    image = snapshot.save(strict.state.replica)
    again = Metadata.recovered("test", Limits(), None, stage.journal, len(stage.journal))
    assert snapshot.save(again.state.replica) == image
    stage.leader, stage.limits = again, Limits()
    stage.take(again.start(stage.now))
    assert stage.do(ForkLog(LogId(2), Kind.CONTINUOUS, "deep"))[0].name == "orders--deep"


def test_d4_a_refusal_that_says_to_try_again_can_be_tried_again(stage: Stage) -> None:
    stage.do(ForkLog(ORDERS, Kind.CONTINUOUS, "open", promotable=True))
    message = Propose(50, b"r" * 16, ForkLog(ORDERS, Kind.CONTINUOUS, "plain"))
    stage.give(Received(BROKER, message))
    stage.write()
    assert stage.heard(Applied)[0].outcome.code == "fork-blocked"
    stage.do(Squash(LogId(2)))
    stage.give(Received(BROKER, message))
    stage.write()
    assert stage.heard(Applied)[0].outcome.name == "orders--plain"
