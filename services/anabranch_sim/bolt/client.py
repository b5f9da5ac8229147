"""A simulated client: drives the real client core, and writes down all it asks and hears."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, TypeVar

from anabranch.client.bolt.call import Call as ClientCall
from anabranch.client.bolt.producer import Pledge
from anabranch.client.bolt.session import Session
from anabranch.client.bolt.subscription import Subscription, size_of
from anabranch.client.session import parts
from anabranch.client.session.effects import Asked, Opened, Taken, Written
from anabranch.client.session.pledge import Promise
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
from anabranch.core.records.codecs import Codec
from anabranch.core.records.origins import deliveries
from anabranch.core.records.record import Record
from anabranch.core.types import LogId, Position
from anabranch_sim.bolt.cluster import Cluster
from anabranch_sim.world.node import Node
from anabranch_sim.world.session import SessionDriver

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
        self.scanned = 0
        """Records of scans whose plans lived as long as they should."""

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


class SimClient(SessionDriver):
    """One session and its calls."""

    def __init__(self, cluster: Cluster, account: Account, number: int) -> None:
        super().__init__(cluster, f"client-{number}")
        self.cluster = cluster
        self.account = account
        self.number = number
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
        self._pledges: dict[Pledge, Append] = {}
        self.drive(self._session)

    def find(self, address: str) -> Node | None:
        return self.cluster.at(address)

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
        self.step(Asked(asked))

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
            self.step(Written())
            return False
        self.step(Written())
        return True

    def subscribe(self, log: LogId, start: Position, *, speculative: bool) -> None:
        stream = Stream(client=self.number, log=log, invoked=0, start=start)
        self._note(stream)
        subscription = Subscription(log, start, speculative=speculative)
        self.streams.append((subscription, stream))
        self.step(Opened(subscription))

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

    def _answered(self, call: Call | None, then: Then, asked: ClientCall) -> None:
        error = asked.error
        if call is not None:
            # A refusal that may pass is not remembered: an earlier try may still be on its way.
            doubtful = error is not None and (error.may_pass or isinstance(error, UNSURE))
            self._finish(call, error, doubtful=doubtful)
        outcome = error if error is not None else asked.answer
        assert outcome is not None
        self.world.at(self.world.now, partial(then, outcome))

    def on_settled(self, pledge: Promise[Any]) -> None:
        assert isinstance(pledge, Pledge)
        append, outcome = self._pledges.pop(pledge), pledge.outcome
        if isinstance(outcome, Appended):
            append.position = outcome.position
            if outcome.receipt is not None:
                self.receipts.append((outcome.receipt, append.records))
            self._finish(append, None, doubtful=False)
        else:
            self._finish(append, outcome, doubtful=pledge.in_doubt)

    def on_arrived(self, subscription: parts.Subscription) -> None:
        assert isinstance(subscription, Subscription)
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
            taken = partial(self.step, Taken(subscription, size))
            self.world.after(self.world.between(0, 1_000_000), taken)
        if subscription.error is not None:
            stream.code = subscription.error.code
            self._judge(subscription.error)
