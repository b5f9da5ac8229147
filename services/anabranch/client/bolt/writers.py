"""A writer of a log: each part of a version is appended once, however often it is tried."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from anabranch.client.bolt.call import Call
from anabranch.client.bolt.receipts import Receipt, placed
from anabranch.client.bolt.refusals import hold_ms
from anabranch.client.session import arguments
from anabranch.client.session.arguments import VALUES, VALUES_SHOWN
from anabranch.client.session.records import Appended, checked
from anabranch.core.bolt.protocol.commands import Done
from anabranch.core.bolt.protocol.marks import (
    AlreadyAppended,
    AppendMarked,
    CompleteVersion,
    ReadWriters,
    ReleaseWriter,
    WriterMark,
    Writers,
    WriterState,
)
from anabranch.core.bolt.protocol.messages import Appended as Acknowledged
from anabranch.core.errors import BadFrame
from anabranch.core.limits import KIB
from anabranch.core.records.record import Record, encode
from anabranch.core.types import Milliseconds

if TYPE_CHECKING:
    from anabranch.client.bolt.log import Log

R = TypeVar("R")

BATCH_BYTES = 512 * KIB
BATCH_RECORDS = 5_000
"""A part is cut into batches of these sizes, whatever a service or a program is set to: every
attempt must cut it where the one before did.
"""
IN_FLIGHT = 4
"""Batches of one part that may be on their way."""
_VERSION_END = 1 << 53
_PART_END = 1 << 31


class PartAppended(NamedTuple, Generic[R]):
    """A part that is in the log, whoever appended it."""

    batches: int
    """So many it has: what `complete` is told."""
    records: int
    repeated: int
    """Batches, of them, that weren't appended now because the log had them."""
    first: Appended[R] | None
    """Where its first record is: None if the log doesn't know any more, or there is no record."""
    complete: int
    """The writer's highest complete version as of the answers, or -1 if no batch was repeated."""


class Writer:
    """A name under which a program appends versions, each in parts, each part once."""

    def __init__(self, log: "Log", name: str) -> None:
        self.log, self.name = log, arguments.text("a writer's name", name)

    def __repr__(self) -> str:
        return f"<writer {self.name} of {self.log.name}>"

    async def append(
        self,
        values: Iterable[bytes | Record],
        *,
        version: int,
        part: int = 0,
        timeout: float | None = None,
    ) -> PartAppended[Receipt]:
        """Append a whole part of a version, or what of it the log doesn't have.

        Tried again, also by another program and after any time, it must have the same records in
        the same order: PartDiffers if a batch hasn't. `timeout`: of each batch.
        """
        made = arguments.several(VALUES, values, VALUES_SHOWN)
        attempt = self.attempt(version=version, part=part, timeout=timeout)
        try:
            for batch in cut(made):
                await attempt.send(batch)
            return await attempt.result()
        finally:
            await attempt.drop()

    def attempt(self, *, version: int, part: int, timeout: float | None) -> "Attempt":
        """A try of `append` to which the batches are given one by one."""
        arguments.number("a version", version, _VERSION_END)
        arguments.number("a part", part, _PART_END)
        return Attempt(self, version, part, self.log.link.milliseconds(timeout))

    async def complete(
        self, version: int, parts: Mapping[int, int], *, timeout: float | None = None
    ) -> None:
        """Close a version that is in the log whole: `parts` are its parts, each with how many
        batches it has. Done again, it changes nothing.

        WriterConflict if the log has other parts, or a lower version that isn't complete.
        """
        log = self.log
        arguments.number("a version", version, _VERSION_END)
        message = CompleteVersion(
            log.id, self.name, version, sorted(parts.items()), log.link.once()
        )
        await log.ask(message, Done, f"complete version {version} of {self.name} in", timeout)

    async def release(self, *, timeout: float | None = None) -> None:
        """Have the log forget this writer. What is appended under its name afterwards, is new."""
        log = self.log
        message = ReleaseWriter(log.id, self.name, log.link.once())
        await log.ask(message, Done, f"release writer {self.name} of", timeout)

    async def state(self, *, timeout: float | None = None) -> WriterState | None:
        """What the log itself remembers of this writer; None if nothing."""
        found = await writers(self.log, self.name, timeout)
        return found[0] if found else None


async def writers(log: "Log", name: str, timeout: float | None) -> list[WriterState]:
    """Those that the log itself remembers; all without a name."""
    answer = await log.ask(ReadWriters(log.id, name), Writers, "read writers of", timeout)
    return answer.writers


class Attempt:
    """One try to append a part."""

    def __init__(self, writer: Writer, version: int, part: int, timeout_ms: Milliseconds) -> None:
        self._writer = writer
        self._version, self._part = version, part
        self._timeout_ms = timeout_ms
        self._calls: deque[Call] = deque()
        self._batches = self._records = self._repeated = 0
        self._first: Appended[Receipt] | None = None
        self._complete = -1

    async def send(self, batch: list[Record]) -> None:
        """Nothing more is sent of a version that turns out to be complete: it is only counted."""
        number = self._batches
        self._batches += 1
        self._records += len(batch)
        if self._complete >= self._version:
            return
        log = self._writer.log
        session = log.link.session
        for record in batch:
            session.check_record(record.size)
        content = encode(batch, session.settings.codec, now=log.link.now_ms(), retried=True)
        session.check_batch(len(content), len(batch))
        mark = WriterMark(self._writer.name, self._version, self._part, number)
        held_ms = hold_ms(self._timeout_ms, self._timeout_ms)
        what = f"append part {self._part} of version {self._version} to {log.name}"
        message = AppendMarked(log.id, content, mark, held_ms)
        call = Call(message, what, self._timeout_ms - held_ms, held_ms)
        log.link.put(call)
        self._calls.append(call)
        # The first is waited for: it may say that the version is complete.
        if not number or len(self._calls) >= IN_FLIGHT:
            await self._answered()

    async def result(self) -> PartAppended[Receipt]:
        while self._calls:
            await self._answered()
        return PartAppended(
            self._batches, self._records, self._repeated, self._first, self._complete
        )

    async def drop(self) -> None:
        """What is still on its way isn't waited for; it may be appended all the same."""
        for call in self._calls:
            self._writer.log.link.drop(call)

    async def _answered(self) -> None:
        link = self._writer.log.link
        call = self._calls.popleft()
        answer = await link.answered(call, object)
        place: Appended[Receipt] | None = None
        if isinstance(answer, AlreadyAppended):
            self._repeated += 1
            self._complete = max(self._complete, answer.complete)
            if answer.position is not None or answer.receipt is not None:
                place = placed(link, Acknowledged(answer.position, answer.receipt), 0)
        elif isinstance(answer, Acknowledged):
            place = placed(link, answer, 0)
        else:
            raise BadFrame(f"{type(answer).__name__} came where a marked append was asked")
        if self._batches == 1:
            self._first = place


def cut(values: Iterable[bytes | Record]) -> Iterator[list[Record]]:
    """Batches of a part."""
    batch: list[Record] = []
    size = 0
    for value in values:
        record = checked(value)
        if batch and (len(batch) == BATCH_RECORDS or size + record.size > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += record.size
    if batch:
        yield batch
