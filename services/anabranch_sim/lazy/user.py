"""A program that uses a log with a lazy front as any Bolt log: creates, forks, reads, redeems."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from anabranch.core.bolt.protocol.commands import Description, EngineSettings, Receipt
from anabranch.core.bolt.protocol.fronts import FindReceipt
from anabranch.core.bolt.protocol.messages import (
    Append,
    CreateLog,
    Fork,
    Promote,
    Read,
    Records,
    Redeem,
    SetAppends,
    Squash,
)
from anabranch.core.bolt.protocol.queries import Settled
from anabranch.core.errors import AnabranchError
from anabranch.core.erwin.invariants.account import AppendCall
from anabranch.core.history.calls import RecordId, Verdict
from anabranch.core.history.lazy import NOOP, StableRead
from anabranch.core.records.origins import deliveries
from anabranch.core.records.record import Record, encode
from anabranch.core.types import MS, Kind, LogId, Position
from anabranch_sim.bolt import client as bolt
from anabranch_sim.erwin.history import record_id
from anabranch_sim.lazy.deployment import LazyDeployment

NAME = "orders"
_FORKED = b"forked"
"""The value of records that come from a fork."""
_PAGE = 1_000


class LogUser:
    """One Bolt client. What isn't answered for good is asked again."""

    def __init__(self, deployment: LazyDeployment) -> None:
        self.deployment = deployment
        self.world = deployment.world
        account = bolt.Account(Random(self.world.seed + 1))
        self.client = bolt.SimClient(deployment, account, 1)
        self.reads: list[StableRead] = []
        self.forks: list[LogId] = []
        """Those that are undecided, as far as is known here."""
        self.promoted = 0
        self.unanswered = 0
        self.put_off = ""
        """What a call was told last that is asked again."""
        self.refused: list[str] = []
        """What was refused for good, and shouldn't have been."""

    def create(self, then: Callable[[LogId], None]) -> None:
        options = self.deployment.lazy
        durability = "fsync" if options.fsync else "memory"
        front = EngineSettings(sequencers=options.sequencers, durability=durability)
        message = CreateLog(NAME, self._id(), front=front)

        def told(answer: Any) -> None:
            assert isinstance(answer, Description)
            then(answer.id)

        self._until_answered("create", message, told)

    def end_front(self) -> None:
        self._until_answered("end", SetAppends(self.deployment.log, None, self._id()), _nothing)

    def fork(self) -> None:
        """A promotable fork with a record or two of its own."""
        log = self.deployment.log
        message = Fork(log, Kind.CONTINUOUS, self._id(), promotable=True)

        def told(answer: Any) -> None:
            if isinstance(answer, Description):
                self.forks.append(answer.id)
                batch = encode([Record(_FORKED)] * self.world.between(1, 2), now=1)
                self.client.ask("append", Append(answer.id, batch, 0), None, _nothing)

        self._until_answered("fork", message, told)

    def decide(self) -> None:
        """About the oldest fork. Siblings of one that was promoted are found to be gone."""
        if not self.forks:
            return
        fork = self.forks[0]
        promotes = self.world.chance(0.6)
        message = Promote(fork, self._id()) if promotes else Squash(fork, self._id())

        def told(answer: Any) -> None:
            if promotes and not isinstance(answer, AnabranchError):
                self.promoted += 1
            if fork in self.forks:
                self.forks.remove(fork)

        self._until_answered("decide", message, told)

    def read(
        self, start: Position, then: Callable[[Position, Position], None] | None = None
    ) -> None:
        """What is settled from there on: `then` gets where the next page begins, and the tail."""
        invoked = self.world.stamp()
        message = Read(self.deployment.log, start, _PAGE, 1 << 20)

        def told(answer: Any) -> None:
            if isinstance(answer, Records):
                self._note(answer, start, invoked)
                if then is not None:
                    then(answer.next, answer.tail)
            elif then is not None:
                self.read(start, then)

        self._until_answered("read", message, told)

    def redeem(self, call: AppendCall) -> None:
        """An offset of the front becomes a position of the log."""
        assert call.receipt is not None

        def redeemed(answer: Any) -> None:
            if isinstance(answer, Settled):
                call.receipt, call.redeemed = answer.position, self.world.stamp()
            else:
                self.refused.append(f"E7: {call.id} has no position: {answer}")

        def found(answer: Any) -> None:
            if isinstance(answer, Receipt):
                self._until_answered("redeem", Redeem(answer), redeemed)
            else:
                self.refused.append(f"E7: {call.id} has no receipt: {answer}")

        message = FindReceipt(self.deployment.log, call.receipt)
        self._until_answered("find a receipt", message, found)

    def _note(self, answer: Records, start: Position, invoked: int) -> None:
        positions: list[Position] = []
        records: list[RecordId] = []
        for position, _, _, record in deliveries(answer.runs, answer.batches):
            value = record.value or b""
            positions.append(position)
            records.append(NOOP if value == _FORKED else record_id(value))
        read = StableRead(
            client=0,
            invoked=invoked,
            returned=self.world.stamp(),
            verdict=Verdict.OK,
            start=start,
            upto=answer.next,
            positions=positions,
            records=records,
            stable=answer.settled,
        )
        self.reads.append(read)

    def _until_answered(self, what: str, message: Any, then: Callable[[Any], None]) -> None:
        self.unanswered += 1
        self._ask(what, message, then)

    def _ask(self, what: str, message: Any, then: Callable[[Any], None]) -> None:
        def told(answer: Any) -> None:
            if isinstance(answer, AnabranchError) and answer.may_pass:
                self.put_off = f"{what}: {answer.message}"
                again = partial(self._ask, what, message, then)
                self.world.after(self.world.between(10 * MS, 100 * MS), again)
                return
            self.unanswered -= 1
            then(answer)

        self.client.ask(what, message, None, told)

    def _id(self) -> bytes:
        return self.world.rng.randbytes(16)


def _nothing(_: object) -> None:
    """A fork may have been squashed meanwhile."""
