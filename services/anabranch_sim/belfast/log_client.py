"""A simulated program: drives the client's own machine, appends to shards and follows the log."""

from collections.abc import Callable
from functools import partial
from random import Random

from anabranch.client.belfast.appends import Pledge
from anabranch.client.belfast.event_queue import EventQueue
from anabranch.client.belfast.session import Effect, Event, Session
from anabranch.client.belfast.subscriber import Subscriber
from anabranch.client.session import records
from anabranch.client.session.effects import (
    Answered,
    Arrived,
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
from anabranch.client.session.records import Confirm, Deliver, Fail
from anabranch.client.session.settings import Settings
from anabranch.core.belfast.invariants.witness import Witness
from anabranch.core.belfast.protocol.messages import (
    Appended,
    ToServer,
    Where,
)
from anabranch.core.errors import AnabranchError, UnknownShard
from anabranch.core.history import foretold
from anabranch.core.history.calls import Verdict
from anabranch.core.history.foretold import Placing, Watching
from anabranch.core.machine import SetTimer, TimerFired
from anabranch.core.types import MS, Nanoseconds, Position
from anabranch_sim.belfast.deployment import BelfastDeployment
from anabranch_sim.belfast.message_clients import Archive, is_wanted, record_of
from anabranch_sim.belfast.wire import CLUSTER
from anabranch_sim.world.connection import Connection, Replies
from anabranch_sim.world.node import EPOCH

TIMEOUT_MS = 20_000
_LOOK: Nanoseconds = 20 * MS


class LogClient:
    """One session of the real client."""

    def __init__(
        self, deployment: BelfastDeployment, archive: Archive, witness: Witness, number: int
    ) -> None:
        self.deployment, self.witness = deployment, witness
        self.world = deployment.world
        self.archive = archive
        self.number = number
        self.name = f"client-{number}"
        self.finished = False
        """Nothing more will be appended."""
        self.fails = 0
        self._connections: dict[int, Connection] = {}
        """By the number of the line, as are the dials."""
        self._dials: dict[int, int] = {}
        self._timers = 0
        self._pledges: dict[Pledge, Placing] = {}
        self._followed: dict[Subscriber, tuple[EventQueue, Watching, Where | None]] = {}
        # Its habits are drawn apart, so that they leave all else in a seed as it was.
        self._habits = Random(f"{deployment.options.seed} {number}")
        self._speculative = self._habits.random() < 0.6
        self._pauses = self._habits.random() < 0.5
        """It doesn't always take everything that is at hand."""
        rng = self.world.rng
        settings = Settings(
            client=self.name,
            batches_in_flight_max=rng.choice((1, 2, 8)),
            window_bytes=rng.choice((300, 1 << 20)),
            silence_ms=200,
            directory_ms=100,
            backoff_ms=10,
            backoff_ms_max=50,
        )
        self._session = Session(CLUSTER, settings, rng.getrandbits, deployment.members)
        self._perform(self._session.start(self._now()))

    @property
    def idle(self) -> bool:
        return not self._pledges

    @property
    def settled(self) -> Position:
        """All below was delivered, and is final."""
        return min((queue.final for queue, _, _ in self._followed.values()), default=0)

    @property
    def follows(self) -> bool:
        return bool(self._followed)

    def follow(self, start: Position, where: Where | None, shards: tuple[str, ...]) -> None:
        watching = Watching(self.name, start, shards, speculative=self._speculative)
        if where is not None:
            watching.wanted = partial(is_wanted, where)
        self.archive.account.watchings.append(watching)
        self._subscribe(watching, where)

    def _subscribe(self, watching: Watching, where: Where | None) -> None:
        only = frozenset(watching.shards) or None
        subscriber = Subscriber(watching.start, where, None, only, speculative=self._speculative)
        self._followed[subscriber] = EventQueue(subscriber), watching, where
        self._step(Opened(subscriber))
        self._look(subscriber)

    def _look(self, subscriber: Subscriber) -> None:
        """Where there are no records nothing arrives, and yet it goes on."""
        if subscriber in self._followed:
            self._take(subscriber)
            self.world.after(_LOOK, partial(self._look, subscriber))

    def append(self, count: int) -> None:
        """One record after the other, where the session likes or at a shard that is named; what is
        sent as one batch is the session's affair.
        """
        rng = self.world.rng
        shard = rng.choice(list(self.deployment.shards)) if rng.random() < 0.6 else None
        for _ in range(count):
            placing = self.archive.placing(self.number, shard or "", 1)
            placing.invoked = self.world.stamp()
            if shard is None:
                placing.client = -len(self.archive.account.placings)  # no order is promised
            pledge = self._session.appender.add(record_of(placing.records[0]), TIMEOUT_MS, shard)
            known = self._pledges.setdefault(pledge, placing)
            if known is not placing:
                known.records += placing.records
                self.archive.account.placings.pop()
        self._step(Written())

    def reset(self, reason: str) -> None:
        """The network breaks one of its connections."""
        if self._connections:
            self.world.rng.choice(list(self._connections.values())).broken(reason)

    def _now(self) -> Nanoseconds:
        return EPOCH + self.world.now

    def _step(self, event: Event) -> None:
        self._perform(self._session.step(self._now(), event))

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Transmit(request, message, line):
                    self._transmit(line, request, message)
                case Dial(line, node):
                    dial = self._dials[line] = self._dials.get(line, 0) + 1
                    delay = self.world.between(MS // 100, 2 * MS)
                    self.world.after(delay, partial(self._dial, line, node, dial))
                case HangUp(line):
                    self._dials[line] = self._dials.get(line, 0) + 1
                    if line in self._connections:
                        self._connections.pop(line).hang_up()
                case SetTimer(_, at):
                    self._timers += 1
                    self.world.late(at - EPOCH, partial(self._fire, self._timers))
                case Settled(pledge):
                    assert isinstance(pledge, Pledge)
                    self._placed(pledge)
                case Arrived(subscriber):
                    assert isinstance(subscriber, Subscriber)
                    delay = self.world.between(0, MS)
                    self.world.after(delay, partial(self._take, subscriber))
                case Answered() | Roomy():
                    pass

    def _transmit(self, line: int, request: int, message: ToServer) -> None:
        connection = self._connections.get(line)
        if connection is not None and connection.open:
            connection.transmit(request, message)

    def _dial(self, line: int, name: str, dial: int) -> None:
        if dial != self._dials[line]:
            return
        node = self.deployment.around.nodes.get(name)
        if node is None or not node.alive:
            self._step(Disconnected(f"{name} is down", line))
            return
        self._connections[line] = connection = Connection(
            self.deployment.network,
            self.name,
            node,
            self._if_current(line, dial, partial(self._heard, line)),
            self._if_current(line, dial, partial(self._broken, line)),
        )
        connected = partial(self._step, Connected(line))
        connection.connect(self._if_current(line, dial, connected))

    def _if_current(self, line: int, dial: int, action: Callable[..., None]) -> Callable[..., None]:
        """Of a connection that was hung up nothing is reported."""

        def reported(*told: object) -> None:
            if self._dials[line] == dial:
                action(*told)

        return reported

    def _heard(self, line: int, replies: Replies) -> None:
        if self.world.tracing:
            self.world.note(self.name, "hears", replies)
        self._step(Heard(replies, line))

    def _broken(self, line: int, reason: str) -> None:
        self._connections.pop(line, None)
        self._step(Disconnected(reason, line))

    def _fire(self, timer: int) -> None:
        if timer == self._timers:
            self._step(TimerFired("wake"))

    def _placed(self, pledge: Pledge) -> None:
        placing, outcome = self._pledges.pop(pledge), pledge.outcome
        placing.shard = pledge.shard
        if isinstance(outcome, Appended):
            placing.positions = [p for run in outcome.runs for p in range(run.first, run.end)]
            placing.returned, placing.verdict = self.world.stamp(), Verdict.OK
        elif outcome is not None and outcome.code in {"record-voided", "shard-left"}:
            placing.verdict = Verdict.REFUSED
        if self.world.tracing:
            self.world.note(self.name, "knows", placing, outcome)

    def _take(self, subscriber: Subscriber) -> None:
        if subscriber not in self._followed:
            return
        queue, watching, _ = self._followed[subscriber]
        if queue.empty:
            queue.take(1_000)
        self._see(queue, watching, None)
        count = 3 if self._pauses and self._habits.random() < 0.3 else 1_000
        while count and (event := queue.pop()) is not None:
            self._see(queue, watching, event)
            count -= 1
        if subscriber.error is not None:
            self._ended(subscriber, subscriber.error)
        self._step(Taken(subscriber))

    def _see(self, queue: EventQueue, watching: Watching, event: records.Event | None) -> None:
        match event:
            case Deliver(record, speculative):
                at, number = record.position, int(record.value or b"-1")
                watching.sights.append(foretold.Shown(at + 1, [at], [number], speculative))
                self.witness.on_delivery(self.name, at, speculative=speculative)
            case Confirm(up_to):
                watching.sights.append(foretold.Settled(up_to))
            case Fail(since):
                self.fails += 1
                watching.sights.append(foretold.Voided(since))
            case None:
                pass
        watching.sights.append(foretold.Resumable(queue.final))
        if event is not None and self.world.tracing:
            self.world.note(self.name, "takes", event)

    def _ended(self, subscriber: Subscriber, error: AnabranchError) -> None:
        _, watching, where = self._followed[subscriber]
        if isinstance(error, UnknownShard):
            # It may join yet: a program that knows so asks again.
            del self._followed[subscriber]
            self.world.after(_LOOK, partial(self._subscribe, watching, where))
        else:
            self.archive.faults.append(f"{self.name}'s subscription has ended: {error.message}")
