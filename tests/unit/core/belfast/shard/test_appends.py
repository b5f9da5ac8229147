"""Appends are answered once, with their places, when a cut covers all of them: a list of who waits
for what says the same.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.belfast.shard.shard_stage import batch

from anabranch.core.alarms import Alarms
from anabranch.core.belfast.ledger.placements import Placements, Row
from anabranch.core.belfast.protocol.messages import Appended, Elsewhere
from anabranch.core.belfast.shard.appends import Acknowledging
from anabranch.core.belfast.shard.counters import ShardCounters
from anabranch.core.belfast.shard.duplicates import Retries
from anabranch.core.errors import Overloaded, RecordVoided, RequestForgotten
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import Effect, Reply
from anabranch.core.records.batch import peek
from anabranch.core.replication.config import ReplicaConfig
from anabranch.core.replication.replica import Replica
from anabranch.core.types import NEVER

PLACED = 10_000
ELSEWHERE = Elsewhere("a2")
VOID = RecordVoided("a")


@dataclass
class Waits:
    """A batch that is in the log and not confirmed."""

    end: int
    bytes: int
    tokens: list[int]


@dataclass
class Batch:
    producer: int
    sequence: int
    first: int
    content: bytes

    @property
    def end(self) -> int:
        return self.first + peek(self.content).count


@dataclass
class Desk:
    """A primary's appends, and beside them the same kept as plain lists."""

    limits: Limits = field(default_factory=Limits)
    effects: list[Effect] = field(default_factory=list[Effect])
    counters: ShardCounters = field(default_factory=ShardCounters)
    confirmed: int = 0
    logged: list[Batch] = field(default_factory=list[Batch])
    waiting: dict[int, Waits] = field(default_factory=dict[int, Waits])
    expected: list[tuple[int, object]] = field(default_factory=list[tuple[int, object]])
    tokens: int = 0

    def __post_init__(self) -> None:
        config = ReplicaConfig(group="a", node="a1", nodes=("a1",))
        self.replica = Replica(config, self.effects, Alarms(self.effects))
        self.placements = Placements()
        self.placements.add(Row(base=0, count=PLACED, quota=2, stride=5, first=3))
        retries = Retries("a", 100)
        self.replica.log.on_logged = retries.logged
        self.replica.log.on_cut_back = retries.cut_back
        self.replica.start()
        self.replica.arrange(1, "a1", ("a1",))
        self.tried = Acknowledging(
            self.limits,
            "a",
            self.replica,
            self.placements,
            retries,
            self.effects,
            self.counters,
        )

    def token(self) -> int:
        self.tokens += 1
        return self.tokens

    def append(self, producer: int, count: int) -> int:
        """The producer's next batch, which nobody has sent before."""
        mine = [each for each in self.logged if each.producer == producer]
        sequence = mine[-1].sequence + mine[-1].end - mine[-1].first if mine else 0
        content = batch(*map(str, range(count)), producer=producer, sequence=sequence)
        token, first = self.token(), self.replica.log.last
        assert not self.tried.repeats(token, content, peek(content), self.confirmed)
        self.tried.append(token, content, peek(content))
        self.logged.append(Batch(producer, sequence, first, content))
        self.waiting[first] = Waits(first + count, len(content), [token])
        return token

    def repeat(self, sent: Batch) -> int:
        token = self.token()
        assert self.tried.repeats(token, sent.content, peek(sent.content), self.confirmed)
        if sent.end <= self.confirmed:
            self.expected.append((token, self.places(sent.first, sent.end)))
        else:
            self.waiting.setdefault(sent.first, Waits(sent.end, 0, [])).tokens.append(token)
        return token

    def cut(self, more: int) -> None:
        self.confirmed = min(self.confirmed + more, self.replica.log.last)
        self.tried.settle(self.confirmed)
        done = [first for first, each in self.waiting.items() if each.end <= self.confirmed]
        for first in sorted(done):
            answered = self.waiting.pop(first)
            told = self.places(first, answered.end)
            self.expected += [(token, told) for token in answered.tokens]

    def leave(self, token: int) -> None:
        self.tried.drop(token)
        for each in self.waiting.values():
            if token in each.tokens:
                each.tokens.remove(token)

    def fail(self, beyond: int) -> None:
        """From here on records have no places any more."""
        beyond = max(beyond, self.confirmed)
        self.replica.truncate(beyond)
        self.tried.void(beyond, VOID)
        for first, each in list(self.waiting.items()):
            if each.end > beyond:
                code = "outcome-unknown" if first < beyond else VOID.code
                self.expected += [(token, code) for token in each.tokens]
                del self.waiting[first]
        self.logged = [each for each in self.logged if each.first < self.replica.log.last]

    def hand_over(self) -> None:
        self.tried.abandon(ELSEWHERE)
        for _, each in sorted(self.waiting.items()):
            self.expected += [(token, ELSEWHERE) for token in each.tokens]
        self.waiting.clear()

    def places(self, first: int, end: int) -> tuple[int, ...]:
        row = self.placements.rows[0]
        return tuple(row.position(local) for local in range(first, end))

    def check(self) -> None:
        assert sorted(map(str, self.answers())) == sorted(map(str, self.expected))
        assert self.tried.idle == (not self.waiting)
        assert self.tried.held_bytes == sum(each.bytes for each in self.waiting.values())
        oldest = min(self.waiting, default=NEVER, key=lambda first: self.waiting[first].end)
        assert self.tried.oldest == oldest

    def answers(self) -> list[tuple[int, object]]:
        replies = [each for each in self.effects if isinstance(each, Reply)]
        return [(each.to, said(each.message)) for each in replies]


def said(message: Any) -> object:
    if isinstance(message, Appended):
        return tuple(place for run in message.runs for place in range(run.first, run.end))
    return message.code if isinstance(message, Refused) else message


steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["append"] * 6 + ["repeat"] * 3 + ["cut"] * 4 + ["leave", "fail", "hand over"]
        ),
        st.integers(0, 30),
        st.integers(1, 4),
    ),
    min_size=15,
    max_size=60,
)


@given(steps)
def test_every_append_gets_one_answer_and_the_right_one(done: list[tuple[str, int, int]]) -> None:
    desk = Desk()
    for what, which, count in done:
        match what:
            case "append":
                desk.append(which % 3, count)
            case "repeat" if desk.logged:
                # A producer's last batches are remembered, and a client keeps no more in flight.
                desk.repeat(desk.logged[-1 - which % min(5, len(desk.logged))])
            case "cut":
                desk.cut(which % 7)
            case "leave" if desk.tokens:
                desk.leave(1 + which % desk.tokens)
            case "fail":
                desk.fail(desk.replica.log.last - which % 5)
            case "hand over":
                desk.hand_over()
            case _:
                pass
        desk.check()


@given(steps)
def test_nobody_is_told_of_a_place_before_the_cuts_have_come_to_it(
    done: list[tuple[str, int, int]],
) -> None:
    """F7: an append is acknowledged only when its position is confirmed."""
    desk = Desk()
    for what, which, count in done:
        if what == "cut":
            desk.cut(which % 7)
        else:
            desk.append(which % 3, count)
        last = desk.placements.rows[0].position(desk.confirmed)
        told = [answer for _, answer in desk.answers() if isinstance(answer, tuple)]
        assert all(place < last for answer in told for place in answer)


def test_who_sends_a_batch_again_while_it_waits_is_answered_with_it() -> None:
    desk = Desk()
    first = desk.append(1, 3)
    again = desk.repeat(desk.logged[0])
    assert desk.answers() == []
    desk.cut(3)
    assert desk.answers() == [(first, (3, 4, 8)), (again, (3, 4, 8))]
    assert (desk.counters.appends, desk.counters.repeated, desk.counters.appended) == (1, 1, 1)


def test_appends_beyond_the_limit_are_refused_until_others_are_confirmed() -> None:
    size = len(batch("0", producer=1))
    desk = Desk(limits=Limits(queue_bytes_max=2 * size))
    desk.append(1, 1)
    desk.append(1, 1)
    content = batch("0", producer=2)
    with pytest.raises(Overloaded, match="queue_bytes_max"):
        desk.tried.append(9, content, peek(content))
    assert desk.replica.log.last == 2, "what is refused isn't logged"
    desk.cut(1)
    desk.append(2, 1)
    desk.check()


def test_a_batch_of_which_some_is_confirmed_and_some_void_is_neither() -> None:
    """Its sender can't know what is in the log."""
    desk = Desk()
    token = desk.append(1, 3)
    desk.cut(1)
    desk.fail(2)
    assert desk.answers() == [(token, "outcome-unknown")]


def test_a_batch_that_was_trimmed_is_said_to_be_forgotten() -> None:
    desk = Desk()
    token = desk.append(1, 3)
    desk.placements.cut_back(3)
    desk.placements.forget(3)
    desk.confirmed = 3
    desk.tried.settle(3)
    assert desk.answers() == [(token, RequestForgotten("").code)]
    sent = desk.logged[0]
    with pytest.raises(RequestForgotten, match="trimmed"):
        desk.tried.repeats(9, sent.content, peek(sent.content), 3)


def test_who_has_gone_is_not_answered_and_its_batch_is_logged_all_the_same() -> None:
    desk = Desk()
    token = desk.append(1, 2)
    desk.leave(token)
    desk.cut(2)
    assert desk.answers() == []
    assert desk.counters.appended_records == 2
    assert desk.tried.idle
