"""What clients did and saw while the server was killed, in the words of core/history."""

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from hashlib import blake2b
from typing import TypeVar

import msgspec

from anabranch.client.session.records import LogRecord
from anabranch.core.bolt.protocol.commands import Description, Receipt
from anabranch.core.errors import (
    AnabranchError,
    BadFrame,
    CorruptBatch,
    Damage,
    OutcomeUnknown,
    RequestForgotten,
    Retry,
)
from anabranch.core.history import History
from anabranch.core.history.calls import AnyCall, Call, RecordId, Verdict
from anabranch.core.records.record import Record
from anabranch.core.types import LogId

DOUBTFUL = (OutcomeUnknown, RequestForgotten, Retry)
"""After these a call may have happened all the same."""

DAMAGE = (BadFrame, CorruptBatch, Damage)
"""What no client of a server should ever be told whose disk keeps what it was given."""

SERIAL_BITS = 32
SIZES = (0, 0, 20, 200, 2_000)

A = TypeVar("A")


def now() -> int:
    """One clock for all processes of this machine: it only grows."""
    return time.monotonic_ns()


def made(number: RecordId) -> Record:
    """The record of this number, the same in every process and unlike all others."""
    name = number.to_bytes(8, "big")
    filling = blake2b(name).digest() * 32
    key = b"k%d" % (number % 7) if number % 3 == 0 else None
    headers = (("h", name), ("n", None)) if number % 11 == 0 else ()
    return Record(name + filling[: SIZES[number % len(SIZES)]], key, headers)


class Account(msgspec.Struct):
    """Of one process; written to a file when it ends."""

    number: int
    history: History = msgspec.field(default_factory=History)
    faults: list[str] = msgspec.field(default_factory=list[str])
    """What is wrong whatever the history says: a damaged record, a silent subscription."""
    receipts: list[tuple[Receipt, list[RecordId]]] = msgspec.field(
        default_factory=list[tuple[Receipt, list[RecordId]]]
    )
    """Promises that were not redeemed yet."""
    known: dict[LogId, Description] = msgspec.field(default_factory=dict[LogId, Description])
    """Every log that it ever heard of, as it was then."""
    serial: int = 0

    def numbers(self, count: int) -> list[RecordId]:
        """New ones."""
        first = (self.number << SERIAL_BITS) + self.serial
        self.serial += count
        return list(range(first, first + count))

    def identify(self, records: Iterable[LogRecord]) -> list[RecordId]:
        return [self._identify(record) for record in records]

    def _identify(self, found: LogRecord) -> RecordId:
        number = int.from_bytes((found.value or b"")[:8], "big")
        sent = made(number)
        if (found.value, found.key, found.headers) != (sent.value, sent.key, tuple(sent.headers)):
            self.faults.append(f"record {number:x} came back changed, at {found.position}")
        return number

    def dense(self, first: int, records: Sequence[LogRecord], where: str) -> None:
        for expected, record in enumerate(records, first):
            if record.position != expected:
                self.faults.append(f"{where} gave {record.position} where {expected} was due")
                return

    def begin(self, call: AnyCall) -> None:
        call.invoked = now()
        self.history.calls.append(call)

    def succeeded(self, call: Call) -> None:
        call.verdict, call.returned = Verdict.OK, now()

    def failed(self, call: Call, error: AnabranchError, *, doubtful: bool) -> None:
        """`doubtful`: it may have happened all the same."""
        call.code = error.code
        if not doubtful:
            call.verdict, call.returned = Verdict.REFUSED, now()
        if isinstance(error, DAMAGE):
            self.faults.append(f"client {call.client} was told: {error.message}")

    async def ask(
        self, call: AnyCall, work: Awaitable[A], then: Callable[[A], None] | None = None
    ) -> A | AnabranchError:
        """Note the call, and its answer before anybody else's."""
        self.begin(call)
        try:
            answer = await work
            if then is not None:
                then(answer)
        except AnabranchError as error:
            self.failed(call, error, doubtful=isinstance(error, DOUBTFUL))
            return error
        self.succeeded(call)
        return answer
