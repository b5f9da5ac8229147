"""A stage for brokers: the test plays their clock, their store and the metadata."""

from collections.abc import Callable
from typing import Any

import pytest

from anabranch.core.bolt.broker.broker import Broker
from anabranch.core.bolt.broker.control import OtherEngines
from anabranch.core.bolt.protocol.commands import (
    CommitObject,
    Committed,
    Epoch,
    Outcome,
    RegisterBroker,
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
from anabranch.core.bolt.protocol.messages import Append, Delivered, Records
from anabranch.core.bolt.protocol.queries import Resolve, Resolved, Slice
from anabranch.core.errors import AnabranchError
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Effects,
    Event,
    GetFailed,
    GetObject,
    ObjectPut,
    ObjectRead,
    PutFailed,
    PutObject,
    Received,
    Replies,
    Reply,
    Request,
    Rest,
    Send,
    SetTimer,
    TimerFired,
)
from anabranch.core.records.objects import object_id
from anabranch.core.records.origins import deliveries
from anabranch.core.records.record import Record, encode
from anabranch.core.types import MS, LogId, ObjectId

LOG = LogId(7)


class Stage:
    """Everything the broker decided, by kind, in order."""

    def __init__(
        self,
        limits: Limits,
        epoch: int | None = 1,
        others: OtherEngines = OtherEngines.NOBODY,
    ) -> None:
        self.broker = Broker("b", "cluster", limits, life=b"a life", others=others)
        self.now = 1_000_000 * MS
        self.timers: dict[str, int] = {}
        self.sent: list[Any] = []
        self.puts: list[PutObject] = []
        self.gets: list[GetObject] = []
        self.replies: list[tuple[int, Any]] = []
        self.version = 0
        self._take(self.broker.start(self.now))
        if epoch is not None:
            self.apply(self.proposed(RegisterBroker), Epoch(epoch))

    def _take(self, effects: Effects) -> None:
        for effect in effects:
            match effect:
                case Send("metadata", message):
                    self.sent.append(message)
                case Reply(to, message):
                    self.replies.append((to, message))
                case Replies(tokens, messages):
                    self.replies += zip(tokens, messages, strict=True)
                case PutObject():
                    self.puts.append(effect)
                case GetObject():
                    self.gets.append(effect)
                case SetTimer(key, at):
                    self.timers[key] = at
                case Rest():
                    assert self.broker.fenced is not None, "nobody told it to end"
                case _:
                    raise AssertionError(effect)

    def tell(self, event: Event) -> None:
        self._take(self.broker.step(self.now, event))

    def turn(self) -> None:
        """The queue is drained: whatever is due fires."""
        while due := [key for key, at in self.timers.items() if at <= self.now]:
            del self.timers[due[0]]
            self.tell(TimerFired(due[0]))

    def wait(self, ms: int) -> None:
        """Let time pass, timer by timer."""
        self.turn()
        until = self.now + ms * MS
        while self.timers and min(self.timers.values()) <= until:
            self.now = max(self.now, min(self.timers.values()))
            self.turn()
        self.now = until

    def request(self, token: int, message: object) -> None:
        self.tell(Request(token, message))

    def append(
        self,
        token: int,
        value: bytes = b"v",
        log: LogId = LOG,
        *,
        producer: int = -1,
        sequence: int = -1,
        count: int = 1,
        wait_ms: int = -1,
    ) -> bytes:
        batch = encode(
            [Record(value) for _ in range(count)],
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            base_sequence=sequence,
            now=1,
        )
        self.request(token, Append(log, batch, wait_ms))
        return batch

    def put(self, turn: int = 0, error: AnabranchError | None = None) -> ObjectId:
        """One of the PUTs in flight ends; which object it was."""
        put = self.puts.pop(turn)
        self.tell(PutFailed(put.object, error) if error else ObjectPut(put.object))
        return put.object

    def pending(self, kind: type) -> list[Any]:
        """Messages of this kind, or about it, that were sent and not yet looked at."""
        return [each for each in self.sent if kind in (type(each), type(_inner(each)))]

    def proposed(self, kind: type) -> Any:
        """The oldest such message, which is then looked at."""
        found = self.pending(kind)[0]
        self.sent.remove(found)
        return found

    def commits(self) -> list[Propose]:
        return self.pending(CommitObject)

    def apply(self, proposal: Propose, outcome: Outcome) -> None:
        self.tell(Received("metadata", Applied(proposal.token, outcome)))

    def commit(self, *rows: Any) -> CommitObject:
        """The oldest commit is sequenced with these results; what it asked."""
        proposal = self.proposed(CommitObject)
        self.apply(proposal, Committed(list(rows)))
        return proposal.command

    def answer(self, answer: Any, kind: type = Resolve) -> Any:
        """The oldest question of this kind gets this answer; what it asked."""
        question: Ask = self.proposed(kind)
        self.tell(Received("metadata", QueryAnswer(question.token, answer)))
        return question.query

    def told(self, question: Ask, answer: Any) -> None:
        self.tell(Received("metadata", QueryAnswer(question.token, answer)))

    def moved(self, tail: int, settled: int | None = None, **more: Any) -> int:
        self.version += 1
        known: dict[str, Any] = {"log": LOG, "generation": 0, "diverges": 0, **more}
        settled = tail if settled is None else settled
        self.tell(
            Received("metadata", Moved(version=self.version, tail=tail, settled=settled, **known))
        )
        return self.version

    def read_object(self, content: bytes, turn: int = 0) -> GetObject:
        get = self.gets.pop(turn)
        self.tell(ObjectRead(get.token, content[get.start : get.start + get.length]))
        return get

    def get_failed(self, error: AnabranchError) -> GetObject:
        get = self.gets.pop(0)
        self.tell(GetFailed(get.token, error))
        return get

    def take_replies(self) -> list[tuple[int, Any]]:
        taken, self.replies = self.replies, []
        return taken

    def codes(self) -> list[tuple[int, str]]:
        """The refusals among the replies, by request."""
        return [(token, reply.code) for token, reply in self.take_replies()]


def _inner(message: Any) -> Any:
    match message:
        case Propose():
            return message.command
        case Ask():
            return message.query
        case Watch() | Unwatch():
            return message
    raise AssertionError(message)


class Content:
    """Batches laid one after the other in an object of another life, one extent."""

    def __init__(self, *values: bytes, sequence: int = 0, first: int = 0) -> None:
        self.object = object_id(9, sequence)
        self.batches = [encode([Record(value)], now=1) for value in values]
        self.bytes = b"".join(self.batches)
        self.first = first

    def slice(self, first: int | None = None, count: int | None = None, skip: int = 0) -> Slice:
        return Slice(
            self.first if first is None else first,
            len(self.batches) - skip if count is None else count,
            self.object,
            0,
            len(self.bytes),
            skip,
            LOG,
            (self.first if first is None else first),
        )


def resolved(*slices: Slice, tail: int, settled: int | None = None, **more: Any) -> Resolved:
    settled = tail if settled is None else settled
    known: dict[str, Any] = {"start": 0, "generation": 0, "undecided": None, **more}
    return Resolved(slices=list(slices), tail=tail, settled=settled, **known)


def values(reply: Records | Delivered) -> list[tuple[int, bytes | None]]:
    """Position and value of every record."""
    found = deliveries(reply.runs, reply.batches)
    return [(position, record.value) for position, _, _, record in found]


class Props:
    """What tests of brokers share beside the stage."""

    LOG = LOG
    Content = Content
    resolved = staticmethod(resolved)
    values = staticmethod(values)


@pytest.fixture
def props() -> type[Props]:
    return Props


@pytest.fixture
def stage() -> Stage:
    return Stage(Limits())


@pytest.fixture
def stage_of() -> Callable[..., Stage]:
    """A stage with limits of the test's own."""

    def build(
        epoch: int | None = 1, others: OtherEngines = OtherEngines.NOBODY, **limits: int
    ) -> Stage:
        return Stage(Limits(**limits), epoch, others)

    return build
