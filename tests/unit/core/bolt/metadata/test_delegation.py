"""Which logs a leader searches for small extents, and whom it asks to copy them, as traces."""

from __future__ import annotations

from typing import Any

from anabranch.core.bolt.metadata.compaction import SCANNED_MAX
from anabranch.core.bolt.metadata.delegation import IN_HAND_MAX, Delegation
from anabranch.core.bolt.metadata.leader import TEND, Metadata
from anabranch.core.bolt.protocol.commands import (
    Batch,
    Command,
    CommitObject,
    CreateLog,
    DeleteLog,
    Entry,
    Epoch,
    ForkLog,
    Outcome,
    Promote,
    RegisterBroker,
    Row,
    Squash,
)
from anabranch.core.bolt.protocol.compaction import Joined, SwapExtents, Swapped
from anabranch.core.bolt.protocol.letters import CopyExtents, Propose
from anabranch.core.bolt.state.state import State
from anabranch.core.limits import Limits
from anabranch.core.machine import Persist, Persisted, Received, Send, SetTimer, TimerFired
from anabranch.core.records.objects import object_id
from anabranch.core.types import MS, Kind, LogId

LIMITS: dict[str, int] = {"compact_extents_min": 3, "compact_age_ms": 1_000}


class Stage:
    """A state, a leader's notes beside it, and the brokers' epochs."""

    def __init__(self, brokers: int = 1, logs: int = 1, **limits: Any) -> None:
        self.limits = Limits(**{**LIMITS, **limits})
        self.state = State("test", self.limits)
        self.now = 1_000_000
        self.delegation = Delegation(self.state.replica, self.limits)
        self.objects = 0
        self.brokers = {f"b{number}": self.register(f"b{number}") for number in range(brokers)}
        self.logs = [LogId(1 + number) for number in range(logs)]
        for id in self.logs:
            self.do(CreateLog(f"log{id}"))

    def register(self, broker: str) -> int:
        epoch = self.do(RegisterBroker(broker))
        assert isinstance(epoch, Epoch)
        return epoch.epoch

    def do(self, command: Command, request: bytes = b"") -> Outcome:
        outcome = self.state.apply(Entry(self.now, request, command))
        self.delegation.applied(command, outcome, self.now)
        return outcome

    def append(self, log: LogId, times: int = 3) -> None:
        broker, epoch = next(iter(self.brokers.items()))
        for _ in range(times):
            self.objects += 1
            rows = [Row(log, 0, [Batch(100, 1)])]
            self.do(CommitObject(broker, object_id(epoch, self.objects), rows))

    def letters(self, after_ms: int = 0) -> list[tuple[str, LogId, int]]:
        """Whom the leader asks, for which log, and how many extents."""
        self.now += after_ms
        sent = self.delegation.letters(self.now)
        self.sent = [each.message for each in sent]
        return [(each.to, each.message.log, len(each.message.extents)) for each in sent]

    def swap(self, broker: str, asked: CopyExtents) -> Swapped:
        self.objects += 1
        lengths = [extent.length for extent in asked.extents]
        joined = [Joined(len(lengths), 0, sum(lengths))]
        object = object_id(self.brokers[broker], self.objects)
        outcome = self.do(SwapExtents(broker, object, asked.log, asked.extents, joined))
        assert isinstance(outcome, Swapped)
        return outcome


def test_a_log_with_enough_extents_is_searched_when_they_are_old_enough() -> None:
    stage = Stage()
    (log,) = stage.logs
    stage.append(log, 2)
    assert stage.letters(2_000) == []
    stage.append(log, 1)
    assert stage.letters(900) == []
    assert stage.letters(101) == [("b0", log, 3)]
    assert stage.letters(2_000) == [], "it was asked for"


def test_when_it_is_swapped_the_next_is_looked_for() -> None:
    stage = Stage(object_bytes_max=400)
    (log,) = stage.logs
    stage.append(log, 10)
    assert stage.letters(1_001) == [("b0", log, 4)]
    assert stage.swap("b0", stage.sent[0]).fewer == 3
    assert stage.letters() == [("b0", log, 4)]
    stage.swap("b0", stage.sent[0])
    assert stage.letters() == [], "two are left, too few"


def test_a_broker_has_few_in_hand_and_all_get_some() -> None:
    stage = Stage(brokers=2, logs=6)
    for log in stage.logs:
        stage.append(log)
    asked = stage.letters(1_001)
    assert len(asked) == 2 * IN_HAND_MAX
    assert sorted(broker for broker, _, _ in asked) == ["b0", "b0", "b1", "b1"]
    assert [log for _, log, _ in asked] == stage.logs[:4]
    broker = asked[0][0]
    stage.swap(broker, stage.sent[0])
    assert stage.letters() == [(broker, stage.logs[4], 3)]


def test_one_that_doesnt_come_is_another_brokers() -> None:
    stage = Stage(brokers=2, compact_wait_ms=5_000)
    (log,) = stage.logs
    stage.append(log)
    first = stage.letters(1_001)
    assert stage.letters(4_999) == []
    second = stage.letters(1)
    assert len(first) == len(second) == 1
    assert first[0][0] != second[0][0]


def test_one_that_couldnt_be_written_is_asked_for_later() -> None:
    stage = Stage(compact_wait_ms=5_000)
    (log,) = stage.logs
    stage.append(log)
    stage.letters(1_001)
    stage.do(SwapExtents("b0", object_id(1, 90), log, [], []))
    assert stage.letters() == []
    assert stage.letters(5_000) == [("b0", log, 3)]


def test_a_swap_by_a_broker_that_was_given_up_is_as_good() -> None:
    stage = Stage(brokers=2, compact_wait_ms=5_000)
    (log,) = stage.logs
    stage.append(log)
    ((first, _, _),) = stage.letters(1_001)
    late = stage.sent[0]
    ((second, _, _),) = stage.letters(5_000)
    assert stage.swap(first, late).fewer == 2
    assert stage.swap(second, late).why
    assert stage.letters() == []


def test_without_a_broker_that_is_ready_nothing_is_asked() -> None:
    stage = Stage(brokers=0)
    (log,) = stage.logs
    stage.brokers["b0"] = stage.register("b0")
    stage.append(log)
    stage.state.replica.placement.seats["b0"].state = "draining"
    assert stage.letters(1_001) == []
    stage.state.replica.placement.seats["b0"].state = "ready"
    assert stage.letters() == [("b0", log, 3)]


def test_a_new_leader_looks_at_every_log_once() -> None:
    stage = Stage(logs=3)
    for log, extents in zip(stage.logs, (4, 2, 7), strict=True):
        stage.append(log, extents)
    stage.delegation = Delegation(stage.state.replica, stage.limits)
    assert stage.letters(1_001) == [("b0", stage.logs[0], 4), ("b0", stage.logs[2], 7)]


def test_a_log_that_got_a_forks_extents_is_looked_at() -> None:
    stage = Stage()
    (log,) = stage.logs
    stage.do(ForkLog(log, Kind.CONTINUOUS, "fork", promotable=True))
    fork = LogId(2)
    stage.append(fork, 2)
    stage.append(log, 2)
    assert stage.letters(2_000) == []
    stage.do(Promote(fork))
    assert stage.letters() == [("b0", log, 4)]


def test_a_promotion_that_is_asked_for_again_after_its_parent_is_gone() -> None:
    stage = Stage()
    (log,) = stage.logs
    stage.do(ForkLog(log, Kind.CONTINUOUS, "fork", promotable=True))
    stage.do(Promote(LogId(2)), b"a request")
    stage.do(DeleteLog(log))
    stage.do(Promote(LogId(2)), b"a request")
    assert stage.letters(2_000) == []


def test_a_log_that_is_gone_is_forgotten() -> None:
    stage = Stage(logs=2)
    for log in stage.logs:
        stage.append(log)
    stage.do(DeleteLog(stage.logs[0]))
    assert stage.letters(1_001) == [("b0", stage.logs[1], 3)]


def test_what_isnt_settled_is_looked_at_again() -> None:
    stage = Stage()
    (log,) = stage.logs
    stage.do(ForkLog(log, Kind.CONTINUOUS, "fork", promotable=True))
    stage.append(log, 3)
    assert stage.letters(1_001) == []
    assert stage.letters(1_001) == []
    stage.do(Squash(LogId(2)))
    assert stage.letters(1_001) == [("b0", log, 3)]


def test_few_are_looked_at_when_more_have_come() -> None:
    stage = Stage(object_bytes_max=300)
    (log,) = stage.logs
    stage.append(log, 4)
    stage.letters(1_001)
    stage.swap("b0", stage.sent[0])
    assert stage.letters(10_000) == []
    stage.append(log, 1)
    assert stage.letters(10_000) == []
    stage.append(log, 1)
    assert stage.letters(1_001) == [("b0", log, 3)]


def test_more_than_a_turn_has_time_for_is_looked_at_soon() -> None:
    stage = Stage(logs=4, compact_extent_bytes_max=90)
    for log in stage.logs:
        stage.append(log, SCANNED_MAX // 2)
    stage.delegation = Delegation(stage.state.replica, stage.limits)
    stage.letters(1_001)
    assert stage.delegation.is_behind
    stage.letters()
    assert not stage.delegation.is_behind, "none has anything to copy"


def test_zero_turns_it_off() -> None:
    for limits in ({"compact_extents_min": 0}, {"compact_extent_bytes_max": 0}):
        stage = Stage(**limits)
        stage.append(stage.logs[0], 50)
        assert stage.letters(100_000) == []


class Leader:
    """The machine, with a journal that is as fast as one wishes."""

    def __init__(self) -> None:
        limits = Limits(**LIMITS, gc_interval_ms=500)
        self.machine = Metadata(State("test", limits), limits, 0)
        self.now = 1_000_000 * MS
        self.timers: dict[str, int] = {}
        self.index = 0
        self.tokens = 0
        self.letters: list[Send] = []
        self.take(self.machine.start(self.now))

    def take(self, effects: tuple[Any, ...]) -> None:
        for effect in effects:
            match effect:
                case SetTimer(key, at):
                    self.timers[key] = at
                case Persist():
                    self.index += 1
                    self.take(self.machine.step(self.now, Persisted(self.index)))
                case Send(_, CopyExtents()):
                    self.letters.append(effect)
                case _:
                    pass

    def wait(self, ms: int) -> None:
        self.now += ms * MS
        for key in [key for key, at in self.timers.items() if at <= self.now]:
            del self.timers[key]
            self.take(self.machine.step(self.now, TimerFired(key)))

    def do(self, command: Command) -> None:
        self.tokens += 1
        message = Propose(self.tokens, b"", command)
        self.take(self.machine.step(self.now, Received("b0", message)))
        self.wait(0)


def test_the_leader_asks_when_it_tends_and_again_after_every_swap() -> None:
    leader = Leader()
    leader.do(RegisterBroker("b0"))
    leader.do(CreateLog("orders"))
    for object in range(50):
        rows = [Row(LogId(1), 0, [Batch(100_000, 1)])]
        leader.do(CommitObject("b0", object_id(1, object), rows))
    assert TEND in leader.timers
    for _ in range(4):
        leader.wait(500)
    (letter,) = leader.letters
    asked: CopyExtents = letter.message
    assert (letter.to, len(asked.extents)) == ("b0", 41)
    joined, offset = list[Joined](), 0
    for together in asked.joined:
        joined.append(Joined(together, offset, 100_000 * together))
        offset += 100_000 * together
    leader.do(SwapExtents("b0", object_id(1, 99), asked.log, asked.extents, joined))
    assert [len(each.message.extents) for each in leader.letters[1:]] == [9]
    leader.wait(500)
    assert len(leader.letters) == 2
