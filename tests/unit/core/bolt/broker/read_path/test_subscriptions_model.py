"""Whatever happens to a log, and whatever gets lost on the way, a subscriber ends with the log.

The model is one list of values; a promotable fork freezes what is settled, a promotion puts values
in between, a squash settles. Moves may be lost; answers may come late.
"""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from anabranch.core.bolt.protocol.letters import Moved, QueryAnswer, Watch
from anabranch.core.bolt.protocol.messages import Confirmed, Delivered, Failed, Subscribe
from anabranch.core.bolt.protocol.queries import Resolve, Resolved, Slice
from anabranch.core.limits import Limits
from anabranch.core.machine import ObjectRead, Received
from anabranch.core.records.objects import object_id
from anabranch.core.records.origins import deliveries
from anabranch.core.records.record import Record, encode
from anabranch.core.types import LogId, ObjectId
from anabranch.core.wire.session import Credit

LOG = LogId(7)


class Consumer:
    """An application that believes what it is told, and checks that it may."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.view: list[bytes | None] = []
        self.final = start

    @property
    def next(self) -> int:
        return self.start + len(self.view)

    def take(self, message: Any) -> None:
        match message:
            case Delivered():
                for position, _, _, record in deliveries(message.runs, message.batches):
                    assert position == self.next, "in order, without a hole, nothing twice"
                    self.view.append(record.value)
                if not message.speculative:
                    assert self.final >= self.next - sum(run.count for run in message.runs), (
                        "what is final doesn't follow what may still fail"
                    )
                    self.final = self.next
            case Confirmed(up_to):
                assert self.final < up_to <= self.next
                self.final = up_to
            case Failed(since):
                assert self.final <= since < self.next, "what is final never fails"
                del self.view[since - self.start :]
            case _:
                raise AssertionError(message)


class Subscribers(RuleBasedStateMachine):
    stage_type: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.log: list[bytes] = []
        self.objects: dict[bytes, ObjectId] = {}
        self.contents: dict[ObjectId, bytes] = {}
        self.settled: int | None = None
        self.generation = 0
        self.version = 0
        self.serial = 0
        self.heard = 0
        self.stage = self.stage_type(Limits())
        self.consumers: dict[int, Consumer] = {}

    def new(self) -> bytes:
        self.serial += 1
        value = b"%d" % self.serial
        self.objects[value] = object_id(9, self.serial)
        self.contents[self.objects[value]] = encode([Record(value)], now=1)
        return value

    def moved(self) -> Moved:
        tail = len(self.log)
        settled = tail if self.settled is None else self.settled
        return Moved(LOG, self.version, tail, settled, self.generation, tail)

    @initialize(values=st.integers(0, 3), speculative=st.booleans())
    def subscribe(self, values: int, speculative: bool) -> None:
        for _ in range(values):
            self.log.append(self.new())
        self.version += 1
        self.consumers[1] = Consumer(0)
        self.stage.request(1, Subscribe(LOG, 0, speculative, credit_bytes=200))

    @rule(speculative=st.booleans(), start=st.integers(0, 6))
    def another(self, speculative: bool, start: int) -> None:
        token = len(self.consumers) + 1
        if start <= len(self.log) and token <= 4:
            self.consumers[token] = Consumer(start)
            self.stage.request(token, Subscribe(LOG, start, speculative, credit_bytes=300))

    @rule(count=st.integers(1, 3))
    def append(self, count: int) -> None:
        self.log += [self.new() for _ in range(count)]
        self.version += 1

    @precondition(lambda self: self.settled is None)
    @rule()
    def fork(self) -> None:
        self.settled = len(self.log)
        self.version += 1

    @precondition(lambda self: self.settled is not None)
    @rule()
    def squash(self) -> None:
        self.settled = None
        self.version += 1

    @precondition(lambda self: self.settled is not None)
    @rule(data=st.data(), nested=st.booleans())
    def promote(self, data: st.DataObject, nested: bool) -> None:
        """A nested undecided fork keeps what lies after its own point provisional."""
        fork_point = self.settled or 0
        for _ in range(data.draw(st.integers(0, 3))):
            at = data.draw(st.integers(fork_point, len(self.log)))
            self.log.insert(at, self.new())
        self.settled = data.draw(st.integers(fork_point, len(self.log))) if nested else None
        self.generation += data.draw(st.integers(1, 2))
        self.version += 1

    @rule()
    def tell(self) -> None:
        """Not told is lost: the next that comes speaks of the last state only."""
        if self.heard < self.version:
            self.heard = self.version
            self.stage.tell(Received("metadata", self.moved()))
        self.consume()

    @rule()
    def answer(self) -> None:
        for question in self.stage.pending(Resolve)[:1]:
            self.stage.sent.remove(question)
            told = QueryAnswer(question.token, self.resolve(question.query))
            self.stage.tell(Received("metadata", told))
        self.consume()

    @rule()
    def get(self) -> None:
        for get in self.stage.gets[:1]:
            self.stage.gets.remove(get)
            self.stage.tell(ObjectRead(get.token, self.contents[get.object]))
        self.consume()

    @rule(token=st.integers(1, 4), size=st.integers(1, 500))
    def credit(self, token: int, size: int) -> None:
        self.stage.request(99, Credit(token, size))

    def resolve(self, query: Resolve) -> Resolved:
        now = self.moved()
        end = now.tail if query.speculative else now.settled
        slices = [self.slice(at) for at in range(query.start, min(end, query.start + 3))]
        return Resolved(slices, 0, now.tail, now.settled, now.generation, None)

    def slice(self, at: int) -> Slice:
        object = self.objects[self.log[at]]
        return Slice(at, 1, object, 0, len(self.contents[object]), 0, LOG, at)

    def consume(self) -> None:
        for token, message in self.stage.take_replies():
            consumer = self.consumers[token]
            consumer.take(message)
            settled = len(self.log) if self.settled is None else self.settled
            assert consumer.final <= max(settled, consumer.start)
            for at in range(consumer.start, consumer.final):
                assert consumer.view[at - consumer.start] == self.log[at], "B2"

    def teardown(self) -> None:
        """When nothing is lost any more, everybody ends with the whole log, all of it final."""
        self.settled = None
        self.version += 1
        for _ in range(400):
            for token in self.consumers:
                self.stage.request(99, Credit(token, 10_000))
            for watch in self.stage.pending(Watch):
                self.stage.sent.remove(watch)
                self.stage.tell(Received("metadata", self.moved()))
            self.answer()
            self.get()
            self.stage.wait(100)
        for consumer in self.consumers.values():
            assert consumer.view == self.log[consumer.start :]
            assert consumer.final == max(len(self.log), consumer.start)


def test_every_subscriber_ends_with_the_log(stage: Any) -> None:
    Subscribers.stage_type = type(stage)
    run_state_machine_as_test(Subscribers)
