"""Stream processors: versions in parts, with writer marks, by attempts of which some are killed.

A killed attempt is forgotten by its driver, and what it has sent may arrive at any later time.
"""

from functools import partial
from random import Random

import msgspec

from anabranch.core.bolt.protocol.marks import (
    AlreadyAppended,
    AppendMarked,
    CompleteVersion,
    WriterMark,
)
from anabranch.core.bolt.protocol.messages import Appended
from anabranch.core.errors import AnabranchError, Mistake
from anabranch.core.history.calls import Append, Final, RecordId, Redeem, Verdict
from anabranch.core.records.record import Record, encode
from anabranch.core.types import MS, Kind, Nanoseconds
from anabranch_sim.bolt.client import SimClient
from anabranch_sim.bolt.directory import Directory, Known
from anabranch_sim.bolt.workload import Answer

_KILLED = 0.2
"""Of all answers, so many come to an attempt that has been killed meanwhile."""
_TWICE = 0.2
"""Of all parts have two attempts side by side, and of all versions are written once more."""
_PAUSE: Nanoseconds = 100 * MS


class _Batch(msgspec.Struct):
    """The same records whoever appends them, and their place in the history."""

    records: list[Record]
    call: Append


class _Version:
    """One version as the processor computes it, each time the same."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.parts: dict[int, list[_Batch]] = {}
        self.missing: set[int] = set()
        """Parts that no attempt of the present driver has brought to their end."""
        self.run = 0
        """Counts the drivers that wrote it: an attempt of an earlier one reports to nobody."""


class StreamWriter:
    """One query: its driver, and clients that run its tasks."""

    def __init__(
        self, name: str, clients: list[SimClient], directory: Directory, *, versions: int
    ) -> None:
        assert clients, "somebody runs the tasks"
        self.name = name
        self.done = False
        self._clients = clients
        self._directory = directory
        self._world = clients[0].world
        self._rng: Random = self._world.rng
        self._account = clients[0].account
        self._left = versions
        self._log: Known | None = None
        self._written: list[_Version] = []

    def start(self) -> None:
        """Write the first version once there is a log."""
        roots = [known for known in self._directory.living() if known.kind is Kind.ROOT]
        if not roots:
            self._world.after(_PAUSE, self.start)
            return
        self._log = self._rng.choice(roots)
        self._next()

    def _next(self) -> None:
        if not self._left:
            self.done = True
            return
        self._left -= 1
        version = _Version(len(self._written))
        self._written.append(version)
        for part in range(self._rng.choice((1, 1, 2, 3))):
            # The history holds each client to its order, and a part to its own as if it were one.
            client = 1_000 * (self._clients[0].number + len(self._written)) + part
            batches = self._rng.choice((1, 1, 2, 4))
            version.parts[part] = [self._batch(client) for _ in range(batches)]
        self._write(version)

    def _batch(self, client: int) -> _Batch:
        made = [self._account.record() for _ in range(self._rng.choice((1, 1, 3)))]
        call = Append(
            client=client,
            log=self._known.log,
            invoked=self._world.stamp(),
            records=[number for number, _ in made],
        )
        self._account.history.calls.append(call)
        return _Batch([record for _, record in made], call)

    @property
    def _known(self) -> Known:
        assert self._log is not None, "it has begun"
        return self._log

    def _write(self, version: _Version) -> None:
        """As a driver that knows nothing of any before."""
        version.run += 1
        version.missing = set(version.parts)
        for part in version.parts:
            for _ in range(2 if self._rng.random() < _TWICE else 1):
                self._attempt(version, part)

    def _attempt(self, version: _Version, part: int) -> None:
        _Attempt(self, version, part, self._rng.choice(self._clients)).send()

    def killed(self) -> bool:
        return self._rng.random() < _KILLED

    def again(self, version: _Version, part: int, run: int) -> None:
        """An attempt was killed, or has had no answer."""
        if version.run == run and part in version.missing:
            pause = self._world.between(0, _PAUSE)
            self._world.after(pause, partial(self._attempt, version, part))

    def ended(self, version: _Version, part: int, run: int) -> None:
        """An attempt has brought its part into the log."""
        if version.run != run or part not in version.missing:
            return
        version.missing.discard(part)
        if not version.missing:
            self._complete(version)

    def _complete(self, version: _Version) -> None:
        client = self._clients[0]
        parts = [(part, len(batches)) for part, batches in version.parts.items()]
        message = CompleteVersion(
            self._known.log, self.name, version.number, parts, self._rng.randbytes(16)
        )
        told = partial(self._completed, version)
        client.ask(f"complete {version.number} of {self.name}", message, None, told)

    def _completed(self, version: _Version, answer: Answer) -> None:
        if isinstance(answer, Mistake):
            self.fault(f"version {version.number} can't be completed: {answer.message}")
            self.done = True
        elif isinstance(answer, AnabranchError):
            self._world.after(_PAUSE, partial(self._complete, version))
        elif self._rng.random() < _TWICE:
            self._write(version)
        else:
            self._next()

    def message(self, version: _Version, part: int, number: int) -> AppendMarked:
        batch = version.parts[part][number]
        content = encode(batch.records, now=self._world.now // MS, retried=True)
        mark = WriterMark(self.name, version.number, part, number)
        return AppendMarked(self._known.log, content, mark)

    def noted(
        self,
        batch: _Batch,
        answer: Appended | AlreadyAppended,
        asked: int,
        client: SimClient,
    ) -> None:
        """The batch is in the log: once, and at one position."""
        call = batch.call
        if isinstance(answer, AlreadyAppended) and answer.complete >= len(self._written):
            self.fault(f"version {answer.complete} is complete, which nobody wrote yet")
        now = self._world.stamp()
        if call.verdict is not Verdict.OK:
            call.verdict, call.returned, call.position = Verdict.OK, now, answer.position
        elif answer.position is not None:
            told = Redeem(
                client=client.number,
                log=call.log,
                invoked=asked,
                returned=now,
                verdict=Verdict.OK,
                records=call.records,
                into=call.log,
                position=answer.position,
            )
            self._account.history.calls.append(told)
        if answer.receipt is not None:
            client.receipts.append((answer.receipt, call.records))

    def fault(self, says: str) -> None:
        self._account.faults.append(f"writer {self.name}: {says}")

    def check(self, finals: list[Final]) -> None:
        """All parts are in the log, and each part's batches in their order."""
        records = next((each.records for each in finals if each.log == self._known.log), None)
        if records is None:
            return
        places: dict[RecordId, int] = {number: place for place, number in enumerate(records)}
        for version in self._written:
            for part, batches in version.parts.items():
                numbers = [number for batch in batches for number in batch.call.records]
                found = [places[number] for number in numbers if number in places]
                if found != sorted(found):
                    self.fault(f"part {part} of version {version.number} is out of order")


class _Attempt:
    """A task that appends a part from its first batch on."""

    def __init__(
        self, writer: StreamWriter, version: _Version, part: int, client: SimClient
    ) -> None:
        self._writer = writer
        self._version, self._part, self._run = version, part, version.run
        self._client = client
        self._number = 0

    def send(self) -> None:
        number = self._number
        message = self._writer.message(self._version, self._part, number)
        what = f"append {self._version.number}.{self._part}.{number} of {self._writer.name}"
        asked = self._client.world.stamp()
        self._client.ask(what, message, None, partial(self._answered, number, asked))
        if self._writer.killed():
            self._writer.again(self._version, self._part, self._run)
            self._number = -1

    def _answered(self, number: int, asked: int, answer: Answer) -> None:
        writer, version, part = self._writer, self._version, self._part
        batches = version.parts[part]
        if isinstance(answer, Appended | AlreadyAppended):
            writer.noted(batches[number], answer, asked, self._client)
        elif isinstance(answer, Mistake):
            writer.fault(f"batch {number} was refused: {answer.message}")
        if self._number < 0:
            return
        if isinstance(answer, AnabranchError):
            writer.again(version, part, self._run)
        elif number + 1 < len(batches):
            self._number = number + 1
            self.send()
        else:
            writer.ended(version, part, self._run)
