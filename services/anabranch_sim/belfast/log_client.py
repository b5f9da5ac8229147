"""A simulated program: drives the client's own machine, appends to shards and follows the log."""

from functools import partial
from random import Random
from typing import Any

from anabranch.client.belfast.appends import Pledge
from anabranch.client.belfast.event_queue import EventQueue
from anabranch.client.belfast.session import Session
from anabranch.client.belfast.subscriber import Subscriber
from anabranch.client.session import parts, records
from anabranch.client.session.effects import Opened, Taken, Written
from anabranch.client.session.pledge import Promise
from anabranch.client.session.records import Confirm, Deliver, Fail
from anabranch.client.session.settings import Settings
from anabranch.core.belfast.invariants.witness import Witness
from anabranch.core.belfast.protocol.messages import Appended, Where
from anabranch.core.errors import AnabranchError, UnknownShard
from anabranch.core.history import foretold
from anabranch.core.history.calls import Verdict
from anabranch.core.history.foretold import Placing, Watching
from anabranch.core.types import MS, Nanoseconds, Position
from anabranch_sim.belfast.deployment import BelfastDeployment
from anabranch_sim.belfast.message_clients import Archive, is_wanted, record_of
from anabranch_sim.belfast.wire import CLUSTER
from anabranch_sim.world.node import Node
from anabranch_sim.world.session import SessionDriver

TIMEOUT_MS = 20_000
_LOOK: Nanoseconds = 20 * MS


class LogClient(SessionDriver):
    """One session of the real client."""

    def __init__(
        self, deployment: BelfastDeployment, archive: Archive, witness: Witness, number: int
    ) -> None:
        super().__init__(deployment, f"client-{number}")
        self.deployment, self.witness = deployment, witness
        self.archive = archive
        self.number = number
        self.finished = False
        """Nothing more will be appended."""
        self.fails = 0
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
        self.drive(self._session)

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
        self.step(Opened(subscriber))
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
        self.step(Written())

    def find(self, address: str) -> Node | None:
        return self.deployment.around.nodes.get(address)

    def on_arrived(self, subscription: parts.Subscription) -> None:
        assert isinstance(subscription, Subscriber)
        self.world.after(self.world.between(0, MS), partial(self._take, subscription))

    def on_settled(self, pledge: Promise[Any]) -> None:
        assert isinstance(pledge, Pledge)
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
        self.step(Taken(subscriber))

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
