"""Programs with the real client of an Erwin log, in a simulated deployment under faults: they
append with short timeouts, repeat one another's requests, are refused by quotas, and die at any
moment.

The simulation's own clients (`anabranch_sim/erwin`) speak the protocol themselves, and never give
up: so what a program is told of an append that didn't come to an end is checked here.
"""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from msgspec.structs import replace
from tests.simulation.lazy_history import History, Try, faults_of

from anabranch.client.erwin.call import Call, ShardCall
from anabranch.client.erwin.link import CODECS
from anabranch.client.erwin.pledge import Pledge
from anabranch.client.erwin.session import Session
from anabranch.client.erwin.tail import TailCall
from anabranch.client.session import parts
from anabranch.client.session.effects import Asked, Event, Written
from anabranch.client.session.pledge import Promise
from anabranch.client.session.settings import Settings
from anabranch.core.errors import (
    AnabranchError,
    DeadlineExceeded,
    OutcomeUnknown,
    QuotaExceeded,
    RequestForgotten,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.protocol.messages import Read, Records
from anabranch.core.machine import Reply, Request
from anabranch.core.records.record import Record, decode
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.messages import (
    Append,
    AppendMeta,
    FindPosition,
    Found,
    Tail,
)
from anabranch_sim.erwin.options import Options
from anabranch_sim.erwin.plugin import ErwinPlugin
from anabranch_sim.erwin.wire import CLUSTER
from anabranch_sim.world.node import Node
from anabranch_sim.world.session import SessionDriver

PATIENT_MS = 25_000
_UNSURE = (OutcomeUnknown, RequestForgotten, DeadlineExceeded)


class Program(SessionDriver):
    """One client, until it dies."""

    def __init__(self, world: "Programs", name: str, settings: Settings) -> None:
        super().__init__(world.deployment, name)
        self.dead = False
        self._programs = world
        self._tries: dict[Pledge, tuple[Try, bool]] = {}
        self._calls = 0
        nodes = list(world.deployment.sequencers)
        self._session = Session(CLUSTER, settings, self.world.rng.getrandbits, nodes, CODECS)
        self.drive(self._session)

    @property
    def idle(self) -> bool:
        return self.dead or not (self._tries or self._calls)

    def find(self, address: str) -> Node | None:
        return self._programs.deployment.node(address)

    def on_arrived(self, subscription: parts.Subscription) -> None:
        raise AssertionError("no program subscribes")

    def step(self, event: Event[Any]) -> None:
        if not self.dead:
            super().step(event)

    def reset(self, reason: str) -> None:
        if not self.dead:
            super().reset(reason)

    def die(self) -> None:
        """In the midst of whatever it writes: nobody knows what became of it."""
        self.dead = True
        for line, connection in self._connections.items():
            connection.hang_up()
            self._dials[line] += 1

    def append(self, values: list[bytes], timeout_ms: int, request: str, *, finds: bool) -> None:
        made = Try(values, self.world.stamp(), request)
        self._programs.history.tries.append(made)
        records = [Record(value) for value in values]
        try:
            pledge = self._session.appender.add_batch(records, timeout_ms, request or None)
        except AnabranchError as error:
            self._failed(made, error)
            return
        self._tries[pledge] = made, finds
        self.step(Written())

    def on_settled(self, pledge: Promise[Any]) -> None:
        assert isinstance(pledge, Pledge)
        made, finds = self._tries.pop(pledge)
        if isinstance(pledge.outcome, AppendId):
            made.returned, made.acknowledged = self.world.stamp(), True
            if finds:
                self._find(made, pledge.outcome)
        elif pledge.outcome is not None:
            self._failed(made, pledge.outcome)

    def ask_tail(self) -> None:
        asked = self.world.stamp()

        def told(answer: object) -> None:
            if isinstance(answer, Tail):
                self._programs.history.tails.append((asked, self.world.stamp(), answer.tail))

        self._call(TailCall(3_000), told)

    def read(self, shard: str, start: int, then: Callable[[Records | None], None]) -> None:
        message = Read(shard=shard, start=start, bytes_max=1 << 20, records_max=1_000, wait_ms=100)

        def told(answer: object) -> None:
            then(answer if isinstance(answer, Records) else None)

        self._call(ShardCall(message, "read", 3_000, 100), told)

    def _find(self, made: Try, id: AppendId) -> None:
        def told(answer: object) -> None:
            if isinstance(answer, Found):
                self._programs.history.receipts.append((made, answer.position))

        self._call(Call(FindPosition(id), "find", 5_000), told)

    def _call(self, call: Any, told: Callable[[object], None]) -> None:
        self._calls += 1

        def answered(call: Any) -> None:
            self._calls -= 1
            told(call.answer)

        call.waiter = answered
        self.step(Asked(call))

    def _failed(self, made: Try, error: AnabranchError) -> None:
        """A request may be repeated whatever is said: then it is what the last try was told."""
        made.returned = self.world.stamp()
        if not made.request and not isinstance(error, _UNSURE):
            made.refused = error.message


class Programs(ErwinPlugin):
    """A run of the simulation with these programs in place of its own clients."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.history = History()
        self.programs: list[Program] = []
        self._requests: list[tuple[str, list[bytes]]] = []
        self._values = 0
        self._random = Random(options.seed)
        self._refused = self._random.choice((0.0, 0.05, 0.3))
        self.deployment.limits = replace(
            self.deployment.limits,
            noop_ms=self._random.choice((20, 200)),
            waits_max=self._random.choice((3, 100)),
            ring_waiting_bytes_max=self._random.choice((1_000, 1 << 20)),
        )
        for name in self.deployment.sequencers:
            self._have_quota(self.deployment.node(name))

    def start(self) -> None:
        self.deployment.start()
        rng = self.world.rng
        for number in range(3):
            settings = Settings(
                backoff_ms_max=rng.choice((50, 300)),
                silence_ms=rng.choice((100, 400)),
                directory_ms=rng.choice((50, 300)),
                batches_in_flight_max=rng.choice((1, 8)),
            )
            program = Program(self, f"program-{number}", settings)
            self.programs.append(program)
            self.clients.append(program)  # pyright: ignore[reportArgumentType]  # to be reset
            for _ in range(40):
                self.world.at(self.world.between(0, self.chaos), partial(self._act, program))
        self.world.at(self.world.between(0, self.chaos), self.programs[0].die)

    def converge(self) -> bool:
        self._refused = 0.0
        if not self.come(self._is_well):
            self.fail("liveness: programs wait for something")
            return False
        last = Program(self, "last", Settings(backoff_ms_max=100, silence_ms=400))
        self.programs.append(last)
        last.append(self._new(1), PATIENT_MS, "", finds=True)
        for request, values in self._requests:
            last.append(values, PATIENT_MS, request, finds=True)
        if not self.come(self._is_well):
            self.fail("liveness: the last appends")
            return False
        last.ask_tail()
        return self.come(self._is_well) and self.come(
            lambda: self._end <= self.witness.order.stable
        )

    def check(self) -> None:
        read: set[str] = set()

        def scan(shard: str, start: int) -> None:
            def then(answer: Records | None) -> None:
                upto = self._take(answer, start) if answer is not None else start
                if upto < self._end:
                    scan(shard, upto)
                else:
                    read.add(shard)

            self.programs[-1].read(shard, start, then)

        for name in self.deployment.shard_names:
            scan(name, 0)
        if not self.come(lambda: read == {*self.deployment.shard_names}):
            self.fail("liveness: the log can't be read")
            return
        for fault in faults_of(self.history):
            self.fail(fault)

    @property
    def _end(self) -> int:
        return self.history.tails[-1][2]

    def _is_well(self) -> bool:
        alive = all(process.alive for process in self.deployment.processes.values())
        return alive and all(program.idle for program in self.programs)

    def _take(self, answer: Records, start: int) -> int:
        batches = zip(answer.firsts, answer.counts, answer.batches, strict=True)
        for first, count, batch in batches:
            values = [record.value for record in decode(batch)] if batch else [None] * count
            for position, value in enumerate(values, first):
                if start <= position < min(answer.upto, self._end):
                    self.history.log[position] = value
        return answer.upto

    def _new(self, count: int) -> list[bytes]:
        self._values += count
        return [b"%d" % (self._values - nth) for nth in range(count)]

    def _act(self, program: Program) -> None:
        rng = self.world.rng
        if program.dead:
            return
        timeout_ms, finds = rng.choice((30, 200, 1_000, 20_000)), rng.random() < 0.4
        match rng.randrange(4):
            case 0:
                program.ask_tail()
            case 1 if self._requests and rng.random() < 0.6:
                request, values = rng.choice(self._requests[-4:])
                program.append(values, timeout_ms, request, finds=finds)
            case 1:
                self._requests.append((f"request {len(self._requests)}", self._new(2)))
                request, values = self._requests[-1]
                program.append(values, timeout_ms, request, finds=finds)
            case _:
                program.append(self._new(rng.choice((1, 3))), timeout_ms, "", finds=finds)

    def _have_quota(self, node: Node) -> None:
        """Refuse some appends in front of the node, as its process does."""
        deliver = node.deliver

        def delivered(life: int, event: Any) -> None:
            asked = isinstance(event, Request) and isinstance(event.message, Append | AppendMeta)
            if asked and self._random.random() < self._refused:
                error = QuotaExceeded("the log", "append_records_per_s", 1, 1, 20)
                refusal = (Reply(event.token, Refused.of(error)),)
                refuse = partial(node._perform, refusal)  # pyright: ignore[reportPrivateUsage]
                node.act(life, refuse)
            else:
                deliver(life, event)

        node.deliver = delivered  # pyright: ignore[reportAttributeAccessIssue]
