"""What clients do: everything the service offers, in random order over a random forest."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from msgspec.structs import replace

from anabranch.core.bolt.protocol import messages
from anabranch.core.bolt.protocol.commands import BOLT, Description, Promotion
from anabranch.core.bolt.protocol.messages import Records, ServerMessage
from anabranch.core.bolt.protocol.queries import Cursors, Listing, Pool, Settled
from anabranch.core.bolt.state.placement import READY
from anabranch.core.errors import AnabranchError
from anabranch.core.history.calls import (
    UNTOLD,
    Create,
    Fork,
    Look,
    MarkCursor,
    Promote,
    Read,
    ReadCursor,
    Redeem,
    Squash,
    Trim,
)
from anabranch.core.types import MS, NEVER, Kind, LogId, Nanoseconds, OnParentDelete, Position
from anabranch_sim.bolt.client import SimClient
from anabranch_sim.bolt.directory import Directory, Known
from anabranch_sim.world.node import EPOCH

Answer = ServerMessage | AnabranchError
Then = Callable[[], None]

LOGS_MAX = 14
UNDECIDED_MAX = 3
TTL_MS_MAX = 8_000
CURSORS = ("reader", "writer")


class Caller:
    """Every call of the service, put in a history as it is made; `then` follows its answer."""

    def __init__(self, client: SimClient, directory: Directory) -> None:
        self.client = client
        self.directory = directory
        self.rng: Random = client.world.rng
        self.clock_error: Nanoseconds = 0
        """How far the clocks of nodes may be off: times to live are that much shorter or longer."""

    def _request(self) -> bytes:
        """Some take their turn first: who is overtaken on the way has changed nothing."""
        if self.client.number % 2:
            self.client.take_turn(self.directory.turn())
        return self.rng.randbytes(16)

    def _call(self, make: Callable[..., Any], log: LogId, **more: object) -> Any:
        return make(client=self.client.number, log=log, invoked=0, **more)

    def _ended(self, log: LogId, then: Then, answer: Answer) -> None:
        if isinstance(answer, AnabranchError):
            self.directory.over(log, answer)
        then()

    def create(self, name: str, then: Then) -> None:
        call: Create = self._call(Create, UNTOLD, name=name)

        def told(answer: Answer) -> None:
            if isinstance(answer, Description):
                call.log = self.directory.learn(answer).log
            then()

        message = messages.CreateLog(name, self._request(), self.client.name)
        self.client.ask(f"create {name}", message, call, told)

    def fork(self, of: Known, then: Then, **asked: Any) -> None:
        short = self.directory.fork_name()
        name = f"{of.name.split('--')[0]}--{short}"
        kind: Kind = asked["kind"]
        ttl_ms: int | None = asked.get("ttl_ms")
        policy: OnParentDelete = asked.get("on_parent_delete", OnParentDelete.ORPHAN)
        call: Fork = self._call(
            Fork,
            UNTOLD,
            name=name,
            parent=of.log,
            kind=kind,
            past=asked.get("past"),
            timed="at" in asked,
            promotable=asked.get("promotable", False),
            lives=NEVER if ttl_ms is None else max(0, (ttl_ms - 1) * MS - self.clock_error),
            cascades=policy is OnParentDelete.CASCADE,
        )

        def told(answer: Answer) -> None:
            if isinstance(answer, Description):
                call.log, call.fork_point = answer.id, answer.fork_point
                self.directory.learn(answer)
                if answer.name != call.name:
                    self.client.account.faults.append(f"{call.name} was made as {answer.name}")
                if answer.owner:
                    self._declare_again(message, answer)
                then()
            else:
                self._ended(of.log, then, answer)

        owner = f"sim/{short}" if of.kind is Kind.ROOT else ""
        message = messages.Fork(of.log, request=self._request(), name=short, owner=owner, **asked)
        self.client.ask(f"fork {of.name}", message, call, told)

    def _declare_again(self, first: messages.Fork, made: Description) -> None:
        """As another request, as who has forgotten that it was made does."""

        def told(answer: Answer) -> None:
            if isinstance(answer, Description) and answer.id != made.id:
                fault = f"{made.owner} has {made.name}, and was given {answer.name} as well"
                self.client.account.faults.append(fault)

        message = replace(first, request=self._request(), name=f"{first.name}-again")
        self.client.ask(f"declare {made.name} again", message, None, told)

    def promote(self, fork: Known, then: Then) -> None:
        call: Promote = self._call(Promote, fork.log)

        def told(answer: Answer) -> None:
            if isinstance(answer, Promotion):
                call.squashed = answer.squashed
                fork.over = True
                for name in answer.squashed:
                    if name in self.directory.ids:
                        self.directory.logs[self.directory.ids[name]].over = True
            self._ended(fork.log, then, answer)

        message = messages.Promote(fork.log, self._request())
        self.client.ask(f"promote {fork.name}", message, call, told)

    def squash(self, fork: Known, then: Then) -> None:
        call: Squash = self._call(Squash, fork.log)

        def told(answer: Answer) -> None:
            fork.over |= not isinstance(answer, AnabranchError)
            self._ended(fork.log, then, answer)

        message = messages.Squash(fork.log, self._request(), self.client.name)
        self.client.ask(f"squash {fork.name}", message, call, told)

    def trim(self, of: Known, before: Position, then: Then) -> None:
        call: Trim = self._call(Trim, of.log, before=before)
        message = messages.Trim(of.log, before, self._request())
        told = partial(self._ended, of.log, then)
        self.client.ask(f"trim {of.name}", message, call, told)

    def describe(self, of: Known, then: Callable[[Answer], None]) -> None:
        call: Look = self._call(Look, of.log)

        def told(answer: Answer) -> None:
            if isinstance(answer, Description):
                call.start, call.tail, call.settled = answer.start, answer.tail, answer.settled
                self.directory.learn(answer)
            else:
                assert isinstance(answer, AnabranchError)
                self.directory.over(of.log, answer)
            then(answer)

        self.client.ask(f"describe {of.name}", messages.Describe(of.log), call, told)

    def read(
        self, of: Known, first: Position, count: int, wait_ms: int, then: Callable[[Answer], None]
    ) -> None:
        call: Read = self._call(Read, of.log, first=first, records=[])

        def told(answer: Answer) -> None:
            if isinstance(answer, Records):
                call.records, call.origins = self.client.account.read(answer, first)
                call.start, call.tail, call.settled = answer.start, answer.tail, answer.settled
                of.tail, of.start = max(of.tail, answer.tail), max(of.start, answer.start)
                self._check_page(call, answer)
            else:
                assert isinstance(answer, AnabranchError)
                self.directory.over(of.log, answer)
            then(answer)

        message = messages.Read(of.log, first, count, 1 << 20, wait_ms)
        self.client.ask(f"read {of.name}", message, call, told, wait_ms)

    def _check_page(self, call: Read, page: Records) -> None:
        end = call.first + len(call.records)
        if page.next != end or (call.records and end > page.settled):
            self.client.account.faults.append(
                f"a read of {call.log} from {call.first} gave up to {end}, says next is {page.next}"
                f" and settled {page.settled}"
            )

    def redeem(self, wait_ms: int, then: Then) -> None:
        receipt, records = self.client.receipts.pop(0)
        call: Redeem = self._call(Redeem, receipt.log, records=records)

        def told(answer: Answer) -> None:
            if isinstance(answer, Settled):
                call.into, call.position = self.directory.ids[answer.log], answer.position
            elif isinstance(answer, AnabranchError) and answer.code != "squashed":
                self.client.receipts.append((receipt, records))
            then()

        message = messages.Redeem(receipt, wait_ms)
        self.client.ask("redeem a receipt", message, call, told, wait_ms)

    def mark(self, of: Known, name: str, position: Position, then: Then) -> None:
        call: MarkCursor = self._call(MarkCursor, of.log, name=name, position=position)
        message = messages.CommitCursor(of.log, name, position, self._request())
        self.client.ask(f"mark {of.name}", message, call, partial(self._ended, of.log, then))

    def read_cursors(self, of: Known, then: Callable[[Answer], None]) -> None:
        calls: list[ReadCursor] = [self._call(ReadCursor, of.log, name=name) for name in CURSORS]

        def told(answer: Answer) -> None:
            if isinstance(answer, Cursors):
                for call in calls:
                    call.position = answer.positions.get(call.name)
                for other in calls[1:]:
                    other.returned, other.verdict = calls[0].returned, calls[0].verdict
            then(answer)

        for other in calls[1:]:
            other.invoked = self.client.world.stamp()
            self.client.account.history.calls.append(other)
        message = messages.ReadCursors(of.log)
        self.client.ask(f"cursors of {of.name}", message, calls[0], told)

    def tend(self, then: Callable[[Answer], None]) -> None:
        """As whoever looks after the pool: forget the brokers that are over."""

        def told(answer: Answer) -> None:
            for each in answer.brokers if isinstance(answer, Pool) else ():
                if each.state != READY:
                    message = messages.ForgetBroker(each.name, each.epoch, self._request())
                    self.client.ask(f"forget {each.name}", message, None, lambda _: None)
            then(answer)

        self.client.ask("list brokers", messages.ListBrokers(), None, told)

    def discover(self, then: Callable[[Answer], None]) -> None:
        """All logs of Bolt's own, those among them whose making was never answered."""

        def told(answer: Answer) -> None:
            if isinstance(answer, Listing):
                for each in answer.logs:
                    self.directory.learn(each)
            then(answer)

        self.client.ask("list", messages.ListLogs(engine=BOLT), None, told)


class Workload(Caller):
    """One client's random calls, one after the other, but for appends that aren't waited for."""

    def __init__(
        self, client: SimClient, directory: Directory, calls: int, pause: Nanoseconds
    ) -> None:
        super().__init__(client, directory)
        self.left = calls
        self.over = False
        self.pause = pause
        self._choices = [
            (40, self._append),
            (20, self._read),
            (5, self._describe),
            (6, self._cfork),
            (6, self._promotable),
            (5, self._sfork),
            (9, self._decide),
            (2, self._squash),
            (2, self._trim),
            (2, self._mark),
            (2, self._read_cursors),
            (4, self._redeem),
            (6, self._subscribe),
            (1, self._list),
            (1, self._tend),
        ]
        self._actions = [action for _, action in self._choices]
        self._weights = [weight for weight, _ in self._choices]

    @property
    def done(self) -> bool:
        return self.over and not self.client.unfinished

    def next(self) -> None:
        """Think, then do something."""
        if self.left <= 0:
            self.over = True
            return
        self.left -= 1
        pause = self.pause if self.rng.random() < 0.5 else MS
        self.client.world.after(self.client.world.between(0, pause), self._act)

    def _act(self) -> None:
        of = self.directory.any(self.rng)
        if of is None or (of.kind is Kind.ROOT and self.rng.random() < 0.01):
            self.create(f"root{len(self.directory.logs)}-{self.client.number}", self.next)
            return
        self.rng.choices(self._actions, self._weights)[0](of)

    def _after(self, answer: Answer) -> None:
        self.next()

    def _append(self, of: Known) -> None:
        """One batch, or a burst of them without waiting for any."""
        self._burst(of, self.rng.choice((1, 1, 1, 5)))

    def _burst(self, of: Known, left: int) -> None:
        self.client.append(of.log, of.name, self.rng.choice((1, 1, 2, 5)))
        if left > 1:
            self.client.world.after(
                self.client.world.between(0, 3 * MS), partial(self._burst, of, left - 1)
            )
        elif not self.client.unfinished or (self.rng.random() < 0.5 and self.client.unfinished < 6):
            self.next()
        else:
            self.client.when_idle = self.next

    def _read(self, of: Known) -> None:
        first = self._somewhere(of)
        count = self.rng.choice((1, 10, 1_000))
        self.read(of, first, count, self.rng.choice((0, 0, 500)), self._after)

    def _somewhere(self, of: Known) -> Position:
        """Rather near the tail, where forks begin and promotions change things."""
        low = max(of.start, of.tail - 8) if self.rng.random() < 0.6 else of.start
        return self.rng.randint(low, max(low, of.tail))

    def _describe(self, of: Known) -> None:
        self.describe(of, self._after)

    def _room(self) -> bool:
        return len(self.directory.living()) < LOGS_MAX

    def _cfork(self, of: Known) -> None:
        if self._room():
            self.fork(of, self.next, kind=Kind.CONTINUOUS, **self._ttl())
        else:
            self._squash(of)

    def _promotable(self, of: Known) -> None:
        if self._room() and len(self.directory.undecided()) < UNDECIDED_MAX:
            self.fork(of, self.next, kind=Kind.CONTINUOUS, promotable=True, **self._ttl())
        else:
            self._decide(of)

    def _sfork(self, of: Known) -> None:
        if not self._room():
            self._squash(of)
            return
        asked: dict[str, Any] = {"kind": Kind.SEVERED}
        way = self.rng.random()
        if way < 0.5:
            asked["past"] = self.rng.randint(of.start, max(of.start, of.tail - 1))
        elif way < 0.65:
            now = (EPOCH + self.client.world.now) // MS
            asked["at"] = now - self.rng.randint(0, 3_000)
        if self.rng.random() < 0.3:
            asked["on_parent_delete"] = OnParentDelete.CASCADE
        self.fork(of, self.next, **asked, **self._ttl())

    def _ttl(self) -> dict[str, Any]:
        return {"ttl_ms": self.rng.randint(200, TTL_MS_MAX)} if self.rng.random() < 0.1 else {}

    def _decide(self, of: Known) -> None:
        undecided = self.directory.undecided()
        fork = self.rng.choice(undecided) if undecided else of
        if self.rng.random() < 0.3:
            self.squash(fork, self.next)
        elif self.rng.random() < 0.5:
            self.promote(fork, self.next)
        else:
            self._look_around(
                fork, lambda: self.promote(fork, lambda: self._look_around(fork, self.next))
            )

    def _look_around(self, fork: Known, then: Then) -> None:
        """Read the parent where the fork left it: what a promotion changes."""
        parent = self.directory.logs.get(fork.parent) if fork.parent is not None else None
        if parent is None or parent.over:
            then()
        else:
            first = max(parent.start, fork.fork_point - 1)
            self.read(parent, first, 1_000, 0, lambda _answer: then())

    def _squash(self, of: Known) -> None:
        if of.kind is Kind.ROOT and self.rng.random() < 0.9:
            self._append(of)
        else:
            self.squash(of, self.next)

    def _trim(self, of: Known) -> None:
        self.trim(of, self.rng.randint(0, of.tail), self.next)

    def _mark(self, of: Known) -> None:
        self.mark(of, self.rng.choice(CURSORS), self.rng.randint(0, of.tail), self.next)

    def _read_cursors(self, of: Known) -> None:
        self.read_cursors(of, self._after)

    def _redeem(self, of: Known) -> None:
        if self.client.receipts:
            self.redeem(self.rng.choice((0, 1_000)), self.next)
        else:
            self._append(of)

    def _subscribe(self, of: Known) -> None:
        undecided = self.directory.undecided()
        if undecided and self.rng.random() < 0.5:
            parent = self.rng.choice(undecided).parent
            of = self.directory.logs.get(parent, of) if parent is not None else of
        start = self._somewhere(of)
        self.client.subscribe(of.log, start, speculative=self.rng.random() < 0.8)
        self.next()

    def _tend(self, of: Known) -> None:
        """At times it also has a broker end, which places elsewhere what is on it first."""

        def told(answer: Answer) -> None:
            if isinstance(answer, Pool) and answer.brokers and self.rng.random() < 0.5:
                each = self.rng.choice(answer.brokers)
                message = messages.DrainBroker(each.name, each.epoch, self._request())
                ends = self.client.cluster.process_of(each.name).drain
                self.client.ask(f"drain {each.name}", message, None, lambda _: ends())
            self._after(answer)

        if self.client.cluster.is_group:
            self.tend(told)
        else:
            self._append(of)

    def _list(self, of: Known) -> None:
        self.discover(self._after)
