"""Stream processors: versions in parts, with writer marks, by attempts of which some are killed.

A killed attempt is forgotten by its driver, and what it has sent may arrive at any later time.
Logs are roots and forks of any depth, which others promote and squash meanwhile.
"""

from collections.abc import Callable
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
from anabranch.core.types import MS, Kind, LogId, Nanoseconds
from anabranch_sim.bolt.client import SimClient
from anabranch_sim.bolt.directory import Directory, Known
from anabranch_sim.bolt.workload import Answer

_KILLED = 0.2
"""Of all answers, so many come to an attempt that has been killed meanwhile."""
_TWICE = 0.2
"""Of all parts have two attempts side by side, and of all versions are written once more."""
_PAUSE: Nanoseconds = 100 * MS
_DEPTHS = (0, 0, 1, 1, 2, 3)
"""How many logs a writer wants above its own."""
_LOOKS = 20
"""So often it looks for a log as deep as that before it takes the deepest."""
_LINGERS = 10
"""A writer of a promotable fork that has written all looks so often whether that was promoted."""
_BLOCKED_MAX = 3
"""After so many refusals of a log that takes nothing while others are undecided, it gives up."""
_OVER = {"promoted", "squashed", "unknown-log"}


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
        self._heir: Known | None = None
        """The log that a promotion made of this writer's."""
        self._written: list[_Version] = []
        self._depth = self._rng.choice(_DEPTHS)
        self._looks = 0
        self._blocked = 0

    def start(self) -> None:
        """Write the first version once there is a log."""
        self._looks += 1
        living = self._directory.living()
        wanted = self._depth
        if self._looks > _LOOKS:
            wanted = max(map(self._depth_of, living), default=0)
        found = [known for known in living if self._depth_of(known) == wanted]
        if not found:
            self._world.after(_PAUSE, self.start)
            return
        promotable = [known for known in found if known.promotable]
        self._log = self._rng.choice(promotable or found)
        self._next()

    def _depth_of(self, known: Known) -> int:
        depth, parent = 0, known.parent
        while parent is not None:
            depth, parent = depth + 1, self._directory.logs[parent].parent
        return depth

    def _next(self) -> None:
        if not self._left:
            self._linger(_LINGERS if self._known.promotable else 0)
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

    def _linger(self, looks: int) -> None:
        """Others may decide about the log when all has been written."""
        batches = self._acknowledged(self._written)[:1]
        if self.done or self._heir is not None:
            return
        if not looks or not batches:
            self.done = True
            return

        def told(error: AnabranchError | None) -> None:
            if error is not None and error.code in _OVER:
                self.refused(error)
            else:
                self._world.after(5 * _PAUSE, partial(self._linger, looks - 1))

        _Question(self, self._known, batches, told).ask()

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
    def client(self) -> SimClient:
        """The driver's."""
        return self._clients[0]

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
        if self.done or self._heir is not None:
            return
        if version.run == run and part in version.missing:
            pause = self._world.between(0, _PAUSE)
            self._world.after(pause, partial(self._attempt, version, part))

    def ended(self, version: _Version, part: int, run: int) -> None:
        """An attempt has brought its part into the log."""
        if version.run != run or part not in version.missing or self.done:
            return
        version.missing.discard(part)
        if not version.missing:
            self._complete(version)

    def _complete(self, version: _Version) -> None:
        client = self.client
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
            self.refused(answer)
            if not self.done and self._heir is None:
                self._world.after(_PAUSE, partial(self._complete, version))
        elif self._rng.random() < _TWICE:
            self._write(version)
        else:
            self._ask_forks(version)
            self._next()

    def refused(self, error: AnabranchError) -> None:
        """Notice when the log is no more, or takes nothing for too long."""
        if self.done or self._heir is not None:
            return
        if error.code == "append-blocked":
            self._blocked += 1
            self.done = self._blocked > _BLOCKED_MAX
        elif error.code in _OVER:
            self._directory.over(self._known.log, error)
            into = str(error.facts.get("into", ""))
            self._inherit(self._directory.ids.get(into))

    def _inherit(self, heir: LogId | None) -> None:
        """What was acknowledged before the promotion must be known to the log that has it now."""
        if heir is None:
            self.done = True
            return
        self._heir = self._directory.logs[heir]
        _Question(self, self._heir, self._acknowledged(self._written), self._asked_heir).ask()

    def _asked_heir(self, error: AnabranchError | None) -> None:
        into = "" if error is None else str(error.facts.get("into", ""))
        heir = self._directory.ids.get(into)
        if heir is None:
            self.done = True
        else:
            self._inherit(heir)

    def _ask_forks(self, version: _Version) -> None:
        """A continuous fork has what its parent has, so it takes none of it a second time."""
        own = self._known.log
        forks = [
            known
            for known in self._directory.living()
            if known.parent == own and known.kind is Kind.CONTINUOUS
        ]
        if forks:
            fork = self._rng.choice(forks)
            _Question(self, fork, self._acknowledged([version]), lambda _: None).ask()

    @staticmethod
    def _acknowledged(versions: list[_Version]) -> list[tuple[_Version, int, int]]:
        """Version, part and number of each batch that is certainly in the log."""
        return [
            (version, part, number)
            for version in versions
            for part, batches in version.parts.items()
            for number, batch in enumerate(batches)
            if batch.call.verdict is Verdict.OK
        ]

    def message(
        self, version: _Version, part: int, number: int, log: LogId | None = None
    ) -> AppendMarked:
        batch = version.parts[part][number]
        content = encode(batch.records, now=self._world.now // MS, retried=True)
        mark = WriterMark(self.name, version.number, part, number)
        return AppendMarked(self._known.log if log is None else log, content, mark)

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
        if self._log is None:
            return
        home = (self._heir or self._known).log
        records = next((each.records for each in finals if each.log == home), None)
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
        elif isinstance(answer, AnabranchError):
            writer.refused(answer)
        if self._number < 0:
            return
        if isinstance(answer, AnabranchError):
            writer.again(version, part, self._run)
        elif number + 1 < len(batches):
            self._number = number + 1
            self.send()
        else:
            writer.ended(version, part, self._run)


class _Question:
    """Sends batches to a log that must have them already, one after the other."""

    def __init__(
        self,
        writer: StreamWriter,
        log: Known,
        batches: list[tuple[_Version, int, int]],
        then: Callable[[AnabranchError | None], None],
    ) -> None:
        """`then` is told what became of the log, or nothing if all was asked."""
        self._writer, self._log, self._batches, self._then = writer, log, batches, then
        self._tries = 0

    def ask(self) -> None:
        if not self._batches:
            self._then(None)
            return
        version, part, number = self._batches[0]
        message = self._writer.message(version, part, number, self._log.log)
        what = f"ask {self._log.name} for {version.number}.{part}.{number} of {self._writer.name}"
        self._writer.client.ask(what, message, None, self._answered)

    def _answered(self, answer: Answer) -> None:
        version, part, number = self._batches[0]
        place = f"batch {number} of part {part} of version {version.number}"
        if isinstance(answer, Appended):
            self._writer.fault(f"{place} was appended again, to {self._log.name}")
        elif isinstance(answer, Mistake):
            self._writer.fault(f"{self._log.name} refused {place}: {answer.message}")
        elif isinstance(answer, AnabranchError):
            self._tries += 1
            if answer.code in _OVER or self._tries > _BLOCKED_MAX:
                self._then(answer)
            else:
                self.ask()
            return
        self._batches.pop(0)
        self._tries = 0
        self.ask()
