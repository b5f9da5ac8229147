"""A simulated client: drives the real client core, and writes down all it asks and hears."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import TypeVar

from anabranch.client.bolt.call import Call as ClientCall
from anabranch.client.bolt.producer import Pledge
from anabranch.client.bolt.session import Effect, Event, Session
from anabranch.client.bolt.subscription import Subscription, size_of
from anabranch.client.session.effects import (
    Answered,
    Arrived,
    Asked,
    Connected,
    Dial,
    Disconnected,
    HangUp,
    Heard,
    Opened,
    Roomy,
    Settled,
    Taken,
    Transmit,
    Written,
)
from anabranch.client.session.settings import Settings
from anabranch.core.bolt.protocol.commands import Receipt
from anabranch.core.bolt.protocol.messages import (
    Appended,
    ClientMessage,
    Confirmed,
    Delivered,
    Failed,
    Records,
    ServerMessage,
)
from anabranch.core.errors import AnabranchError, OutcomeUnknown, RequestForgotten
from anabranch.core.history.calls import (
    Append,
    Call,
    Confirmation,
    Delivery,
    Failure,
    History,
    RecordId,
    Stream,
    Verdict,
)
from anabranch.core.limits import KIB
from anabranch.core.machine import SetTimer, TimerFired
from anabranch.core.records.codecs import Codec
from anabranch.core.records.origins import deliveries
from anabranch.core.records.record import Record
from anabranch.core.types import LogId, Nanoseconds, Position
from anabranch_sim.bolt.cluster import Cluster
from anabranch_sim.world.connection import Connection, Replies
from anabranch_sim.world.node import EPOCH

AnyCall = TypeVar("AnyCall", bound=Call)
Then = Callable[[ServerMessage | AnabranchError], None]

DAMAGE = {
    "corrupt-batch",
    "corrupt-object",
    "object-missing",
    "records-damaged",
    "damage",
    "error",
    "bad-frame",
}
"""Errors that no client of a cluster without damage should ever see."""

UNSURE = (OutcomeUnknown, RequestForgotten)


class Account:
    """What all clients together did and saw, and the records by their ids."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.history = History()
        self.records: list[Record] = []
        self.faults: list[str] = []
        """What is wrong whatever the history says: a damaged record, a hole in an answer."""

    def record(self) -> tuple[RecordId, Record]:
        """A new record, unlike all others."""
        rng, number = self.rng, len(self.records)
        filling = rng.choice((0, 0, 20, 200, 2_000))
        value = number.to_bytes(8, "big") + bytes(filling)
        key = None if rng.random() < 0.7 else b"k%d" % (number % 7)
        headers = (("h", b"x"), ("n", None)) if rng.random() < 0.1 else ()
        record = Record(value, key, headers)
        self.records.append(record)
        return number, record

    def identify(self, record: Record) -> RecordId:
        value = record.value or b""
        number = int.from_bytes(value[:8], "big")
        if number >= len(self.records):
            self.faults.append(f"a record {value[:16]!r} came that nobody sent")
            return number
        sent = self.records[number]
        if (record.value, record.key, record.headers) != (sent.value, sent.key, sent.headers):
            self.faults.append(f"record {number} came back changed")
        return number

    def read(
        self, records: Records | Delivered, first: Position
    ) -> tuple[list[RecordId], list[tuple[LogId, Position]]]:
        """Ids and origins, from `first` on without a hole."""
        ids: list[RecordId] = []
        origins: list[tuple[LogId, Position]] = []
        for position, origin, there, record in deliveries(records.runs, records.batches):
            if position != first + len(ids):
                self.faults.append(f"{position} was delivered where {first + len(ids)} was due")
            ids.append(self.identify(record))
            origins.append((origin, there))
        return ids, origins


class SimClient:
    """One session and its calls."""

    def __init__(self, cluster: Cluster, account: Account, number: int) -> None:
        self.cluster = cluster
        self.world = cluster.world
        self.account = account
        self.number = number
        self.name = f"client-{number}"
        self.receipts: list[tuple[Receipt, list[RecordId]]] = []
        """Promises that were not redeemed yet."""
        self.streams: list[tuple[Subscription, Stream]] = []
        self.unfinished = 0
        self.when_idle: Callable[[], None] | None = None
        """Called once, when nothing is unfinished."""
        rng = self.world.rng
        settings = Settings(
            client=self.name,
            codec=rng.choice(list(Codec)) if cluster.options.compressed else Codec.NONE,
            batches_in_flight_max=rng.choice((1, 2, 8)),
            subscription_bytes=rng.choice((KIB, 64 * KIB)),
            timeout_ms=8_000,
            route_ms=rng.choice((200, 1_000, 60_000)),
            backoff_ms=20,
            backoff_ms_max=2_000,
            silence_ms=3_000,
        )
        self.timeout_ms = settings.timeout_ms
        self._session = Session(settings, rng.getrandbits, cluster.addresses)
        self._connections: dict[int, Connection] = {}
        """By the number of the line, as are the dials."""
        self._dials: dict[int, int] = {}
        self._timers = 0
        self._pledges: dict[Pledge, Append] = {}
        self._perform(self._session.start(self._now()))

    def take_turn(self, number: int) -> None:
        """What is changed from here on is refused if a later turn has come before it."""
        self._session.guard("sim", number)

    def ask(
        self,
        what: str,
        message: ClientMessage,
        call: Call | None,
        then: Then,
        wait_ms: int = 0,
    ) -> None:
        """Put a call into the history, if it belongs there, and its outcome when it is known."""
        if call is not None:
            self._begin(call)
        asked = ClientCall(message, what, self.timeout_ms, wait_ms)
        asked.waiter = partial(self._answered, call, then)
        self._step(Asked(asked))

    def append(self, log: LogId, name: str, count: int) -> bool:
        """Records, in one batch or with what waits to be sent; False if there is no room."""
        producer = self._session.producer(log, name)
        try:
            for _ in range(count):
                number, record = self.account.record()
                pledge = producer.add(record, self.timeout_ms)
                append = self._pledges.get(pledge)
                if append is None:
                    append = Append(client=self.number, log=log, invoked=0, records=[])
                    self._begin(append)
                    self._pledges[pledge] = append
                append.records.append(number)
        except AnabranchError:
            self._step(Written())
            return False
        self._step(Written())
        return True

    def subscribe(self, log: LogId, start: Position, *, speculative: bool) -> None:
        stream = Stream(client=self.number, log=log, invoked=0, start=start)
        self._note(stream)
        subscription = Subscription(log, start, speculative=speculative)
        self.streams.append((subscription, stream))
        self._step(Opened(subscription))

    def reset(self, reason: str) -> None:
        """The network breaks the connection."""
        if self._connections:
            self.world.rng.choice(list(self._connections.values())).broken(reason)

    def _note(self, call: Call) -> None:
        call.invoked = self.world.stamp()
        self.account.history.calls.append(call)  # pyright: ignore[reportArgumentType]
        if self.world.tracing:
            self.world.note(self.name, "asks", call)

    def _begin(self, call: Call) -> None:
        self._note(call)
        self.unfinished += 1

    def _finish(self, call: Call, error: AnabranchError | None, *, doubtful: bool) -> None:
        self.unfinished -= 1
        if error is None:
            call.verdict = Verdict.OK
        elif not doubtful:
            call.verdict = Verdict.REFUSED
        if call.verdict is not Verdict.UNKNOWN:
            call.returned = self.world.stamp()
        if error is not None:
            call.code = error.code
            self._judge(error)
        if self.world.tracing:
            self.world.note(self.name, "knows", call)
        if not self.unfinished and self.when_idle is not None:
            then, self.when_idle = self.when_idle, None
            self.world.at(self.world.now, then)

    def _judge(self, error: AnabranchError) -> None:
        if error.code in DAMAGE:
            self.account.faults.append(f"{self.name} was told: {error.message}")

    def _now(self) -> Nanoseconds:
        return EPOCH + self.world.now

    def _step(self, event: Event) -> None:
        self._perform(self._session.step(self._now(), event))

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Transmit(request, message, line):
                    connection = self._connections.get(line)
                    if connection is not None and connection.open:
                        connection.transmit(request, message)
                case Dial(line, address):
                    dial = self._dials[line] = self._dials.get(line, 0) + 1
                    delay = self.world.between(10_000, 2_000_000)
                    self.world.after(delay, partial(self._dial, line, dial, address))
                case HangUp(line):
                    self._dials[line] = self._dials.get(line, 0) + 1
                    if line in self._connections:
                        self._connections.pop(line).hang_up()
                case SetTimer(_, at):
                    self._timers += 1
                    self.world.late(at - EPOCH, partial(self._fire, self._timers))
                case Answered(call):
                    assert callable(call.waiter)
                    call.waiter(call)
                case Settled(pledge):
                    assert isinstance(pledge, Pledge)
                    self._settled(pledge)
                case Arrived(subscription):
                    assert isinstance(subscription, Subscription)
                    self._arrived(subscription)
                case Roomy():
                    pass

    def _dial(self, line: int, dial: int, address: str) -> None:
        if dial != self._dials[line]:
            return
        node = self.cluster.at(address)
        if node is None or not node.alive:
            self._step(Disconnected(f"{address} is down", line))
            return
        self._connections[line] = connection = Connection(
            self.cluster.network,
            self.name,
            node,
            partial(self._heard, line),
            partial(self._broken, line),
        )
        connection.connect(partial(self._step, Connected(line)))

    def _heard(self, line: int, replies: Replies) -> None:
        self._step(Heard(replies, line))

    def _broken(self, line: int, reason: str) -> None:
        self._connections.pop(line, None)
        self._step(Disconnected(reason, line))

    def _fire(self, timer: int) -> None:
        if timer == self._timers:
            self._step(TimerFired("wake"))

    def _answered(self, call: Call | None, then: Then, asked: ClientCall) -> None:
        error = asked.error
        if call is not None:
            # A refusal that may pass is not remembered: an earlier try may still be on its way.
            doubtful = error is not None and (error.may_pass or isinstance(error, UNSURE))
            self._finish(call, error, doubtful=doubtful)
        outcome = error if error is not None else asked.answer
        assert outcome is not None
        self.world.at(self.world.now, partial(then, outcome))

    def _settled(self, pledge: Pledge) -> None:
        append, outcome = self._pledges.pop(pledge), pledge.outcome
        if isinstance(outcome, Appended):
            append.position = outcome.position
            if outcome.receipt is not None:
                self.receipts.append((outcome.receipt, append.records))
            self._finish(append, None, doubtful=False)
        else:
            self._finish(append, outcome, doubtful=pledge.in_doubt)

    def _arrived(self, subscription: Subscription) -> None:
        stream = next(each for known, each in self.streams if known is subscription)
        while subscription.news:
            news = subscription.news.popleft()
            at = self.world.stamp()
            match news:
                case Delivered():
                    first = news.runs[0].first
                    ids, _ = self.account.read(news, first)
                    stream.pushes.append(
                        Delivery(at=at, first=first, records=ids, speculative=news.speculative)
                    )
                case Confirmed(up_to):
                    stream.pushes.append(Confirmation(at=at, up_to=up_to))
                case Failed(since):
                    stream.pushes.append(Failure(at=at, since=since))
            size = size_of(news)
            taken = partial(self._step, Taken(subscription, size))
            self.world.after(self.world.between(0, 1_000_000), taken)
        if subscription.error is not None:
            stream.code = subscription.error.code
            self._judge(subscription.error)
